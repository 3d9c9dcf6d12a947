"""The times that `remit audit` understands, and what it says without a daemon."""

import time
from datetime import datetime

import click
import pytest
from tests.cli.shell import Shell

from remit.cli.audit import Moment


@pytest.mark.parametrize(
    ("text", "seconds"), [("10s", 10), ("10m", 600), ("2h", 7200), ("3d", 259_200), ("1w", 604_800)]
)
def test_a_time_can_be_how_long_ago(text: str, seconds: int) -> None:
    before = time.time()
    found = Moment().convert(text, None, None)
    assert before - seconds <= found <= time.time() - seconds


def test_a_time_can_be_an_iso_time_and_is_local_without_a_zone() -> None:
    assert Moment().convert("1970-01-02T00:00:00+00:00", None, None) == 86_400
    local = datetime(2026, 1, 31, 12).astimezone().timestamp()
    assert Moment().convert("2026-01-31T12:00", None, None) == local


@pytest.mark.parametrize("text", ["", "soon", "10", "10y", "m10", "-5m", "1h30m", "99999-01-01"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Moment().convert(text, None, None)


def test_without_a_daemon_there_is_no_audit_to_look_at(shell: Shell) -> None:
    assert shell.run("audit").code == 3
    assert shell.run("audit", "verify").code == 3


@pytest.mark.parametrize(
    "arguments",
    [("--since", "soon"), ("--limit", "0"), ("--json", "verify"), ("--agent", "a", "verify")],
)
def test_bad_options_are_refused(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run("audit", *arguments).code == 2
