"""Putting edits in force, where no daemon is needed to see the mistake."""

from pathlib import Path

import pytest
from tests.cli.shell import Shell

from remit.cli.reload import _replace_all
from remit.errors import HomeError


@pytest.mark.parametrize("command", [("reload",), ("apply", "--yes")])
def test_without_a_daemon_there_is_nobody_to_reload(shell: Shell, command: tuple[str, ...]) -> None:
    done = shell.run(*command)
    assert done.code in (2, 3)
    assert "daemon" in done.err


def test_the_shipped_definitions_are_not_replaced(shell: Shell) -> None:
    (shell.folder / "next").mkdir()
    done = shell.run("apply", "next", "--yes")
    assert done.code == 2
    assert "shipped" in done.err
    assert "--catalogue" in done.err


def test_apply_wants_a_folder_that_exists(shell: Shell) -> None:
    assert shell.run("apply", "nowhere", "--yes").code == 2


def folder(path: Path, text: str) -> Path:
    (path / "compositions").mkdir(parents=True)
    (path / "capabilities.yaml").write_text(text)
    (path / "compositions" / f"{text}.yaml").write_text(text)
    return path


def test_old_files_are_kept_in_a_folder_of_the_same_form(tmp_path: Path) -> None:
    now, new = folder(tmp_path / "now", "old"), folder(tmp_path / "new", "new")
    backup = _replace_all(new, now / "capabilities.yaml", now / "compositions")
    assert backup.parent == now
    for place, text in ((now, "new"), (backup, "old")):
        assert (place / "capabilities.yaml").read_text() == text
        assert [p.name for p in (place / "compositions").iterdir()] == [f"{text}.yaml"]
    assert (new / "compositions" / "new.yaml").exists(), "the new files are copied, not moved"


def test_a_replacement_that_fails_half_way_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, new = folder(tmp_path / "now", "old"), folder(tmp_path / "new", "new")
    real = Path.replace

    def replace(source: Path, target: Path) -> Path:
        if Path(target) == now / "capabilities.yaml":
            raise OSError(28, "No space left on device", str(source), None, str(target))
        return real(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(HomeError) as caught:
        _replace_all(new, now / "capabilities.yaml", now / "compositions")
    assert "No space left" in str(caught.value)
    assert (now / "capabilities.yaml").read_text() == "old"
    assert [path.name for path in (now / "compositions").iterdir()] == ["old.yaml"]
