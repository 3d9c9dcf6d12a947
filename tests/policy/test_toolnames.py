"""Tool names: readable, reversible, never one name for two events."""

import re

from hypothesis import given
from hypothesis import strategies as st
from tests.policy.texts import event, universe_of

from remit.model.event import EventSpec
from remit.policy.toolnames import conflicts, tool_names

ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")
SEGMENTS = st.from_regex(r"[ab][ab_.-]{0,3}", fullmatch=True)
FIRST = st.from_regex(r"[ab][ab_]{0,3}", fullmatch=True)
NAMES = st.builds(
    lambda first, rest: ":".join([first, *rest]), FIRST, st.lists(SEGMENTS, min_size=1, max_size=2)
)
WISHES = st.sampled_from(["", "a_b", "a__b", "ab", "a.b"])
SPECS = st.lists(st.builds(lambda name, wish: event(name, tool=wish), NAMES, WISHES), max_size=12)


def names_of(*events: str | EventSpec) -> dict[str, str]:
    return tool_names(universe_of(events))


def test_a_colon_is_shown_as_an_underscore() -> None:
    assert names_of("state:get", "state:entity:get") == {
        "state:get": "state_get",
        "state:entity:get": "state_entity_get",
    }


def test_a_handler_may_ask_for_a_name() -> None:
    assert names_of(event("math:add", tool="add")) == {"math:add": "add"}


def test_events_that_would_share_a_name_both_get_the_long_form() -> None:
    assert names_of("async_state:get", "async:state_get") == {
        "async_state:get": "async_state__get",
        "async:state_get": "async__state_get",
    }


def test_a_new_event_may_make_a_tool_name_vanish_but_never_mean_another_event() -> None:
    before = names_of("async_state:get")
    after = names_of("async_state:get", "async:state_get")
    assert before["async_state:get"] not in after.values()


def test_a_name_that_is_given_up_is_not_passed_on() -> None:
    holder = event("x:q", tool="a__b")
    assert names_of(holder)["x:q"] == "a__b"
    rivals = (event("x:r", tool="a__b"), event("x:s", tool="a_b"), "a:b")
    assert "a__b" not in names_of(holder, *rivals).values()


def test_long_and_dotted_names_end_in_a_fingerprint() -> None:
    long = "a:" + "b" * 150
    other = "a:" + "b" * 151
    names = names_of(long, other, "a:b.c")
    assert names[long] != names[other]
    assert names[long].startswith("a_bbbb")
    assert len(names[long]) == 64
    assert names["a:b.c"].startswith("a_b_c_")


def test_nobody_can_choose_a_name_that_equals_anothers_fingerprint() -> None:
    forced = ("x:y_z", "x_y:z", event("n:n", tool="x__y_z"))
    marked = names_of(*forced)["x:y_z"]
    mark = marked.rpartition("_")[2]
    thieves: list[list[str | EventSpec]] = [
        [event("m:m", tool=marked)],
        ["x:y_z_" + mark],
        ["x:y_z_" + mark, "x_y:z_" + mark],
    ]
    for thief in thieves:
        names = names_of(*forced, *thief)
        assert len(set(names.values())) == len(names)
        assert names["x:y_z"] == marked


def test_conflicts_are_reported_with_all_events() -> None:
    universe = universe_of(["a_b:c", "a:b_c", event("z:z", tool="a_b_c"), "q:q"])
    assert conflicts(universe) == [("a_b_c", ["a:b_c", "a_b:c", "z:z"])]


@given(SPECS)
def test_every_event_has_a_name_of_its_own_that_every_host_accepts(specs: list[EventSpec]) -> None:
    universe = universe_of(specs)
    names = tool_names(universe)
    assert set(names) == set(universe.names)
    assert len(set(names.values())) == len(names)
    assert all(ACCEPTED.fullmatch(name) for name in names.values())


@given(SPECS, SPECS)
def test_a_tool_name_never_changes_hands(specs: list[EventSpec], more: list[EventSpec]) -> None:
    known = {spec.name for spec in specs}
    before = tool_names(universe_of(specs))
    after = tool_names(universe_of([*specs, *(one for one in more if one.name not in known)]))
    holders = {name: holder for holder, name in before.items()}
    taken = [(name, holder) for holder, name in after.items() if name in holders]
    assert all(holders[name] == holder for name, holder in taken)
