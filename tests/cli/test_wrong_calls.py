"""Words on the command line that cannot be a request, and files that cannot be used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from remit.app.daemon import first_keys
from remit.app.workbench import read_event_list
from remit.cli.main import main
from remit.config.settings.home import Home, prepare_home
from remit.errors import DefinitionError, HomeError


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(["key=a", "key=b"], "'key' is given twice", id="a-field-twice"),
        pytest.param(["key=" + os.fsdecode(b"\xff")], "is not UTF-8", id="not-utf8"),
        pytest.param(["--data", "[" * 20_000], "--data is not JSON", id="deep-json"),
        pytest.param(
            ["--data", '{"key": 1, "value": [{"b": 1}, {"a": 1, "a": 2}]}'],
            "'a' is given twice at $.value[1] of --data",
            id="a-key-twice-in-json",
        ),
        pytest.param(["--data", '{"key": 1, "key": 2}'], "'key' is given twice at $ of", id="top"),
        pytest.param(
            ["--data", '{"a": {"b": 1, "b": 2}, "a": 1}'], "'a' is given twice at $ of", id="lost"
        ),
        pytest.param(['value={"a": 1, "a": 2}'], "'a' is given twice at $ of", id="in-a-pair"),
        pytest.param(["--timeout", "-1"], "'-1' is no number of seconds", id="no-time"),
        pytest.param(["--timeout", "0"], "'0' is no number of seconds", id="no-time-at-all"),
        pytest.param(["--timeout", "nan"], "'nan' is no number of seconds", id="nan-seconds"),
        pytest.param(["--timeout", "inf"], "'inf' is no number of seconds", id="for-ever"),
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


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["can", "observer", "--json"], "Missing argument 'EVENT'.", "remit can --help"),
        (["can", "--jsno", "--json"], "No such option", "remit can --help"),
        (["cna", "x", "--json"], "there is no command 'cna'.", "remit --help"),
        (["call", "a:b", "--timeout", "-1", "--json"], "no number of seconds", "remit call --help"),
        (["graph", "--svg", "--dot", "--json"], "one picture at a time", "remit graph --help"),
    ],
)
def test_wrong_words_are_told_as_json_to_those_who_asked_for_it(
    words: list[str], message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert (error["code"], error["hint"], error["details"]) == ("invalid_data", hint, {})
    assert message in error["message"]
    assert message in printed.err, "people see it too"


@pytest.mark.parametrize("words", [["can", "observer", "state:get"], ["who-can", "state:get"]])
def test_exit_codes_are_the_same_with_and_without_json(words: list[str]) -> None:
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main([*words, *more])
        assert ended.value.code == 0


@pytest.mark.parametrize("event", ["no:such", "key:addd"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_nobody_can_use_what_is_not_there(event: str, more: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["who-can", event, *more])
    assert ended.value.code == 1


@pytest.mark.parametrize("forms", [["--svg", "--dot"], ["--dot", "--mermaid", "--svg"]])
def test_one_picture_is_drawn_at_a_time(
    forms: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["graph", *forms])
    assert ended.value.code == 2
    assert "one picture at a time" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_ends_a_command_without_a_traceback() -> None:
    command = f"{sys.executable} -m remit resolve administrator --json | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert (done.stdout, done.stderr) == ("{", "")
