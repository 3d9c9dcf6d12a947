"""Words on the command line that cannot be a request, and files that cannot be used."""

import os
from pathlib import Path

import pytest

from remit.app.secrets import first_keys
from remit.app.workbench import read_event_list
from remit.cli.main import main
from remit.config.home import Home, prepare_home
from remit.errors import HomeError
from remit.model.place import DefinitionError


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["key=a", "key=b"], "'key' is given twice", id="a-field-twice"),
        pytest.param(["key=" + os.fsdecode(b"\xff")], "is not UTF-8", id="not-utf8"),
        pytest.param(["--data", "[" * 20_000], "--data is not JSON", id="deep-json"),
        pytest.param(["key"], "not of the form key=value", id="no-value"),
    ],
)
def test_a_request_that_cannot_be_made_is_refused_in_words(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["call", "state:set", *words, "--home", str(tmp_path / "home")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../x", "Bob", "a b", "", "x" * 65])
def test_a_name_that_no_client_can_have_writes_no_file(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["key", "new", name, "--profile", "minimal", "--home", str(tmp_path)])
    assert ended.value.code == 2
    assert "cannot be the name of a client" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_list_of_events_may_begin_with_a_mark_and_must_end(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.write_bytes(b"\xef\xbb\xbfstate:get\n")
    assert [spec.name for spec in read_event_list(events)] == ["state:get"]
    with pytest.raises(DefinitionError) as caught:
        read_event_list(Path("/dev/zero"))
    assert caught.value.problems[0].code == "too_large"
    events.write_bytes(b"state:get\nstate:\xff\n")
    with pytest.raises(DefinitionError) as caught:
        read_event_list(events)
    assert (caught.value.problems[0].code, caught.value.problems[0].place.line) == ("not_utf8", 2)


@pytest.mark.parametrize("name", ["server_key", "operator_key"])
def test_a_broken_key_of_the_installation_is_said_and_not_replaced(
    name: str, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home")
    prepare_home(home)
    first_keys(home)
    path: Path = getattr(home, name)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(HomeError):
        first_keys(home)
    assert path.read_text(encoding="utf-8") == "{}"
