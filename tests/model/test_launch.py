"""A listed command: what a request may fill in, and that no value becomes anything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.errors import InvalidDataError
from remit.model.launch import LaunchEntry, LaunchRequest

ANYTHING = "[^\\0]*"
PARTS = st.sampled_from(["-", "--", "x", "=", " ", "{{a}}", "{{b}}", "$(id)", ";", "é"])
VALUES = st.lists(PARTS, max_size=3).map("".join)


def entry(*args: str, **placeholders: str) -> LaunchEntry:
    return LaunchEntry(name="tool", command="tool", args=args, placeholders=placeholders)


def request(**values: str) -> LaunchRequest:
    return LaunchRequest(command="tool", values=values)


def refused(listed: LaunchEntry, asked: LaunchRequest) -> InvalidDataError:
    with pytest.raises(InvalidDataError) as caught:
        listed.launch(asked)
    return caught.value


def test_values_stand_where_the_operator_wrote_their_names() -> None:
    listed = entry("--in={{file}}", "{{file}}.{{kind}}", file="[a-z]+", kind="md|txt")
    found = listed.launch(request(file="notes", kind="md"))
    assert found.args == ("--in=notes", "notes.md")
    assert (found.command, found.restart) == ("tool", "never")


@given(VALUES, VALUES)
def test_no_value_makes_another_argument_or_an_option(one: str, other: str) -> None:
    listed = entry("--mode={{a}}", "{{b}}", "end", a=ANYTHING, b=ANYTHING)
    if other.startswith("-"):
        assert "begin with '-'" in refused(listed, request(a=one, b=other)).message
    else:
        assert listed.launch(request(a=one, b=other)).args == (f"--mode={one}", other, "end")


@given(VALUES)
def test_a_value_is_put_in_once_and_never_filled_itself(value: str) -> None:
    listed = entry("x{{a}}", a=ANYTHING, b=ANYTHING)
    assert listed.launch(request(a=value, b="inner")).args == (f"x{value}",)


@pytest.mark.parametrize("values", [{}, {"a": "x"}, {"a": "x", "b": "y", "c": "z"}, {"c": "z"}])
def test_every_placeholder_is_given_and_nothing_else(values: dict[str, str]) -> None:
    error = refused(entry("{{a}}", "{{b}}", a=ANYTHING, b=ANYTHING), request(**values))
    assert "a, b" in error.message
    assert error.details == {"path": "$.launch.values"}


@pytest.mark.parametrize("value", ["", "x y", "xy\n", "\nxy", "XY", "x-y"])
def test_a_pattern_is_about_the_whole_value(value: str) -> None:
    error = refused(entry("{{a}}", a="[a-z]+"), request(a=value))
    assert error.details == {"path": "$.launch.values.a"}
    assert value.strip() not in error.message or not value.strip()


def test_a_value_has_an_end_whatever_its_pattern_takes() -> None:
    refused(entry("{{a}}", a=ANYTHING), request(a="x" * 100_000))


def test_a_pattern_of_an_operator_takes_no_time_that_grows_with_the_value() -> None:
    listed = entry("{{a}}", a="(x+x+)+y")
    refused(listed, request(a="x" * 200))


def test_a_request_changes_neither_environment_nor_folder() -> None:
    listed = LaunchEntry(name="tool", command="tool", env={"A": "1"}, cwd="/srv")
    found = listed.launch(LaunchRequest(command="tool", restart="always", max_restarts=2))
    assert (found.env, found.cwd) == ({"A": "1"}, "/srv")
    assert (found.restart, found.max_restarts) == ("always", 2)


@pytest.mark.parametrize("name", ["tool", "claude"])
def test_a_bare_name_is_written_bare_again(name: str) -> None:
    assert LaunchEntry.plain(name).to_json() == name


def test_an_entry_with_more_than_a_name_is_written_with_all_of_it() -> None:
    assert entry("{{a}}", a="x").to_json() == {
        "name": "tool",
        "command": "tool",
        "args": ("{{a}}",),
        "placeholders": {"a": "x"},
    }


def test_what_is_ready_starts_its_own_command() -> None:
    assert LaunchEntry.plain("claude").starts == "claude"
    assert LaunchEntry.plain("claude").command == ""
    assert LaunchEntry.plain("tool").starts == "tool"
