"""Typos and other mistakes: exit code 2, the place, and what was probably meant."""

import pytest
from tests.cli.shell import Shell


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("resolve", "obsever"), "did you mean 'observer'?"),
        (("can", "obsever", "state:get"), "did you mean 'observer'?"),
        (("why", "obsever", "state:get"), "did you mean 'observer'?"),
        (("tools", "obsever"), "did you mean 'observer'?"),
        (("claude-args", "obsever"), "did you mean 'observer'?"),
        (("graph", "--profile", "obsever"), "did you mean 'observer'?"),
        (("gives", "state_raed"), "did you mean 'state_read'?"),
        (("chekc",), "did you mean 'check'?"),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(
    shell: Shell, arguments: tuple[str, ...], meant: str
) -> None:
    done = shell.run(*arguments)
    assert done.code == 2
    assert meant in done.err
    assert done.out == ""


def test_a_failure_is_json_too(shell: Shell) -> None:
    error = shell.json("resolve", "obsever", code=2)["error"]
    assert error == {
        "code": "not_found",
        "message": "there is no profile 'obsever'",
        "hint": "did you mean 'observer'?",
        "details": {},
    }


def test_no_command_at_all_prints_help(shell: Shell) -> None:
    done = shell.run()
    assert done.code == 0
    assert "who-can" in done.out
    assert "May a profile or agent use an event?" in done.out


@pytest.mark.parametrize(
    "arguments",
    [("resolve",), ("can", "observer"), ("check", "--no-such-option"), ("schema", "nothing")],
)
def test_wrong_usage_is_bad_input(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run(*arguments).code == 2


def test_a_broken_catalogue_stops_every_question_at_its_line(shell: Shell) -> None:
    text = "version: 1\ncapabilities:\n  a: {event_patterns: [NoEvent]}\n"
    path = shell.write("capabilities.yaml", text)
    for question in (("resolve", "x"), ("can", "x", "a:b"), ("gives", "a"), ("lint",), ("check",)):
        done = shell.run(*question, "--catalogue", str(path))
        assert done.code == 2
        assert "capabilities.yaml:3:24: " in done.err, question
        assert "^^^^^^^" in done.err


def test_an_event_list_with_a_bad_line_names_the_line(
    shell: Shell, contract: tuple[str, ...]
) -> None:
    shell.write("contract/events.txt", "state:get\n\n  State:Set  # no\nsystem\n")
    done = shell.run("check", *contract)
    assert done.code == 2
    assert "contract/events.txt:3:3: 'State:Set' is not an event name [invalid_name]" in done.err
    assert "contract/events.txt:4:1: " in done.err


@pytest.mark.parametrize("option", ["--catalogue", "--compositions", "--events"])
def test_a_file_that_is_not_there_is_named(
    shell: Shell, contract: tuple[str, ...], option: str
) -> None:
    arguments = list(contract)
    arguments[arguments.index(option) + 1] = "nowhere"
    done = shell.run("check", *arguments)
    assert done.code == 2
    assert "nowhere:1:1: " in done.err


def test_a_catalogue_of_ones_own_does_not_come_with_the_starters_profiles(shell: Shell) -> None:
    path = shell.write("mine/capabilities.yaml", "version: 1\ncapabilities: {}\n")
    assert shell.json("check", "--catalogue", str(path))["counts"]["profiles"] == 0


def test_without_a_daemon_a_call_is_unreachable(shell: Shell) -> None:
    for command in (("call", "system:health"), ("key", "list"), ("key", "revoke", "bob")):
        done = shell.run(*command)
        assert done.code == 3, done
        assert "[unreachable]" in done.err
        assert "remit serve" in done.err
    assert shell.json("call", "system:health", code=3)["error"]["code"] == "unreachable"


@pytest.mark.parametrize(
    "arguments",
    [("noequals",), ("--data", "{"), ("--data", "[1]"), ("a=1", "--data", "{}")],
)
def test_request_data_that_cannot_be_read_are_bad_input(
    shell: Shell, arguments: tuple[str, ...]
) -> None:
    assert shell.run("call", "state:get", *arguments).code == 2


def test_a_setting_that_cannot_be_used_is_bad_input(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_REQUEST_TIMEOUT", "soon")
    done = shell.run("check")
    assert done.code == 2
    assert "REMIT_REQUEST_TIMEOUT" in done.err
