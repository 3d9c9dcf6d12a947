"""Secrets are read from the environment or from files that it names, and never shown."""

from pathlib import Path

from remit.features.upstreams.secrets import MAX_SECRET, find_secret


def test_a_variable_counts_before_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("of the file\n")
    env = {"KEY": "of the variable", "KEY_FILE": str(file)}
    assert find_secret("KEY", env).value == "of the variable"
    assert find_secret("KEY", env | {"KEY": ""}).value == "of the file"


def test_only_the_end_of_the_line_is_taken_off(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(" a\nb \r\n")
    assert find_secret("KEY", {"KEY_FILE": str(file)}).value == " a\nb "


def test_a_secret_that_is_not_there_says_why(tmp_path: Path) -> None:
    empty, binary, large = (tmp_path / name for name in ("empty", "binary", "large"))
    empty.write_text("\n")
    binary.write_bytes(b"\xff")
    large.write_text("x" * (MAX_SECRET + 1))
    for env, told in (
        ({}, "KEY is not set"),
        ({"KEY": "", "KEY_FILE": ""}, "KEY is not set"),
        ({"KEY_FILE": str(tmp_path / "gone")}, "No such file"),
        ({"KEY_FILE": str(tmp_path)}, "directory"),
        ({"KEY_FILE": str(empty)}, "empty"),
        ({"KEY_FILE": str(binary)}, "UTF-8"),
        ({"KEY_FILE": str(large)}, "bytes"),
    ):
        found = find_secret("KEY", env)
        assert found.value is None
        assert told in found.why


def test_a_secret_does_not_show_itself() -> None:
    assert "hunter2" not in repr(find_secret("KEY", {"KEY": "hunter2"}))
    assert "hunter2" not in str(find_secret("KEY", {"KEY": "hunter2"}))
