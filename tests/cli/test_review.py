"""`remit review` without a daemon, and what it refuses before it asks one."""

import pytest
from tests.cli.shell import Shell


@pytest.mark.parametrize(
    "arguments", [("list",), ("approve", "abc"), ("reject", "profile", "capability")]
)
def test_without_a_daemon_nothing_is_decided(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run("review", *arguments).code == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("approve",),
        ("approve", "a", "b", "c"),
        ("list", "--status", "done"),
        ("list", "--kind", "x"),
        ("postpone", "a"),
    ],
)
def test_bad_arguments_are_refused(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run("review", *arguments).code == 2
