"""Tool names for events: readable, reversible, never one name for two events."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.texts import event, universe_of

from remit.model.descriptor import CALL_TOOL, META_TOOL
from remit.model.event import EventSpec
from remit.policy.tool_names import conflicts, tool_names

ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")
MARKED = re.compile(r"_([0-9a-f]{8}|[0-9a-f]{40})$")
SEGMENTS = st.from_regex(r"[ab][ab_.-]{0,3}", fullmatch=True)
FIRST = st.from_regex(r"[ab][ab_]{0,3}", fullmatch=True)
NAMES = st.builds(
    lambda first, rest: ":".join([first, *rest]), FIRST, st.lists(SEGMENTS, min_size=1, max_size=2)
)
WISHES = st.sampled_from(["", "a_b", "a__b", "ab", "a.b"])
SPECS = st.lists(st.builds(lambda name, wish: event(name, tool=wish), NAMES, WISHES), max_size=12)


def names_of(*events: str | EventSpec) -> dict[str, str]:
    return dict(tool_names(universe_of(events)))


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


def test_tools_of_two_servers_with_one_name_carry_the_names_of_their_servers() -> None:
    assert names_of(event("mcp:a:search", tool="search"), event("mcp:b:search", tool="search")) == {
        "mcp:a:search": "mcp__a__search",
        "mcp:b:search": "mcp__b__search",
    }


def test_an_outside_tool_is_shown_by_its_bare_name() -> None:
    assert names_of(
        event("mcp:git:log_all", tool="log_all"), event("mcp:t:gettime", tool="getTime")
    ) == {
        "mcp:git:log_all": "log_all",
        "mcp:t:gettime": "getTime",
    }


@pytest.mark.parametrize(
    ("ours", "wish"),
    [
        pytest.param(event("math:add", tool="add"), "add", id="a-name-asked-for"),
        pytest.param(event("state:get"), "state_get", id="a-name-made-from-the-event"),
        pytest.param(event("state:get"), "state__get", id="a-name-it-could-have"),
    ],
)
def test_an_outside_tool_never_takes_a_name_of_ours(ours: EventSpec, wish: str) -> None:
    names = names_of(ours, event("mcp:evil:x", tool=wish))
    assert names[ours.name] == names_of(ours)[ours.name]
    assert names["mcp:evil:x"] == "mcp__evil__x"


def test_no_event_is_shown_as_a_tool_of_the_door() -> None:
    names = names_of(event("mcp:a:b", tool="discover_capabilities"), event("call:capability"))
    assert names == {"mcp:a:b": "mcp__a__b", "call:capability": "call__capability"}
    universe = universe_of([event("mcp:a:b", tool="discover_capabilities")])
    assert conflicts(universe) == [("discover_capabilities", ["mcp:a:b"])]


def test_a_wish_that_another_event_could_have_is_a_conflict() -> None:
    universe = universe_of(["a:b", event("x:q", tool="a__b")])
    assert conflicts(universe) == [("a__b", ["a:b", "x:q"])]


def test_names_are_worked_out_once_for_a_universe() -> None:
    universe = universe_of(["a:b"])
    assert tool_names(universe) is tool_names(universe)


OUTSIDE = st.lists(
    st.builds(
        lambda server, segment, wish: event(f"mcp:{server}:{segment}", tool=wish),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["a", "b", "a_b", "b" * 70]),
        st.one_of(
            st.sampled_from(["a", "a_b", "a__b", "ab", "A b", "mcp__a__a", "mcp__b__a", "c" * 70]),
            st.from_regex(r"[ab_:.]{1,6}", fullmatch=True),
        ),
    ),
    max_size=8,
)
MIXED = st.tuples(SPECS, OUTSIDE).map(
    lambda both: list({spec.name: spec for spec in (*both[0], *both[1])}.values())
)


@given(MIXED, st.randoms(use_true_random=False))
def test_names_can_be_turned_back_and_do_not_depend_on_order(
    specs: list[EventSpec], random: Random
) -> None:
    names = names_of(*specs)
    shuffled = random.sample(specs, len(specs))
    assert names_of(*shuffled) == names
    assert set(names) == {spec.name for spec in specs}
    assert len(set(names.values())) == len(names)
    assert all(ACCEPTED.fullmatch(name) for name in names.values())
    assert not {META_TOOL, CALL_TOOL} & set(names.values())


@given(SPECS, OUTSIDE)
def test_whatever_servers_bring_our_own_tools_keep_their_names(
    specs: list[EventSpec], outside: list[EventSpec]
) -> None:
    alone = names_of(*specs)
    together = names_of(*specs, *outside)
    assert {name: together[name] for name in alone} == alone


@given(MIXED, MIXED)
def test_a_name_changes_hands_only_from_an_outside_tool_to_one_of_ours(
    specs: list[EventSpec], more: list[EventSpec]
) -> None:
    known = {spec.name for spec in specs}
    before = names_of(*specs)
    after = names_of(*specs, *(one for one in more if one.name not in known))
    holders = {name: holder for holder, name in before.items()}
    for holder, name in after.items():
        former = holders.get(name, holder)
        if former != holder:
            assert former.startswith("mcp:")
            assert not holder.startswith("mcp:")


@given(MIXED)
def test_who_did_not_get_the_name_it_wished_for_is_reported(specs: list[EventSpec]) -> None:
    universe = universe_of(specs)
    names = tool_names(universe)
    reported = {event for _, events in conflicts(universe) for event in events}
    for spec in specs:
        wish = spec.tool or spec.name.replace(":", "_")
        fits = ACCEPTED.fullmatch(wish) and not MARKED.search(wish)
        assert names[spec.name] == wish or not fits or spec.name in reported


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
