"""The sessions of everybody: what they leave of a grant, and that no mishap leaves more."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.catalogues import EVENTS, TOOLS, WILDCARDS, World, compile_world, worlds

from remit.kernel.authority.sessions import Sessions
from remit.model.grant import Grant, Narrowing, Session
from remit.model.limits import EFFECTS, Limits
from remit.policy.catalogue import Catalogue

ENTRIES = st.lists(st.sampled_from((*EVENTS, *WILDCARDS, *TOOLS)), max_size=3).map(tuple)
STEPS = st.builds(
    Narrowing,
    allowed_tools=st.none() | ENTRIES,
    disallowed_tools=ENTRIES,
    max_effect=st.none() | st.sampled_from(EFFECTS),
    limits=st.builds(Limits, max_depth=st.none() | st.integers(0, 3)),
)


def session(name: str, owner: str = "ann", *steps: Narrowing, number: int = 1) -> Session:
    return Session(id=f"{owner}-{name}-{number}", name=name, owner=owner, steps=steps)


def closed(name: str, owner: str = "ann") -> Session:
    return Session(id=f"{owner}-{name}-0", name=name, owner=owner, closed_at=1.0)


def nothing_is_left(grant: Grant) -> bool:
    return not (grant.events or grant.bits or grant.claude_tools or grant.exposed)


def is_within(part: Grant, whole: Grant) -> bool:
    return (
        part.events <= whole.events
        and part.bits & ~whole.bits == 0
        and part.claude_tools <= whole.claude_tools
        and part.limits == whole.limits.smallest(part.limits)
        and whole.approval_required & part.events <= part.approval_required
    )


@given(worlds(), st.lists(STEPS, max_size=3), st.lists(STEPS, max_size=2))
def test_two_sessions_of_one_name_leave_less_than_either(
    world: World, above: list[Narrowing], own: list[Narrowing]
) -> None:
    catalogue = compile_world(world)
    sessions = Sessions()
    sessions.put(session("s", "boss", *above))
    sessions.put(session("s", "ann", *own))
    line = {"ann": ["ann", "boss"], "boss": ["boss"]}
    for grant in catalogue.grants.values():
        both = sessions.seat("ann", "s", grant, catalogue, line.__getitem__)
        one = sessions.seat("boss", "s", grant, catalogue, line.__getitem__)
        assert is_within(both, one)
        assert is_within(one, grant)
        assert both.events == frozenset(catalogue.universe.names_in(both.bits))


@given(worlds(), st.lists(STEPS, min_size=3, max_size=3))
def test_the_order_of_sessions_means_nothing(world: World, steps: list[Narrowing]) -> None:
    catalogue, sessions = compile_world(world), Sessions()
    for number, step in enumerate(steps):
        sessions.put(session(f"s{number}", "ann", step))
    grant = next(iter(catalogue.grants.values()))
    ids = [f"ann-s{number}-1" for number in range(3)]
    left = [sessions.narrowed(catalogue, grant, order) for order in permutations(ids)]
    assert len({(one.bits, one.claude_tools) for one in left}) == 1


@pytest.fixture
def world() -> tuple[Catalogue, Grant]:
    catalogue = compile_world(World(units=(), roles=(), holders=(None,) * len(EVENTS)))
    universe = catalogue.universe
    names = frozenset(universe.names)
    bits = universe.bits_of(names)
    grant = Grant(profile="p", revision=1, bits=bits, events=names, claude_tools=frozenset(TOOLS))
    return catalogue, grant


def test_a_name_that_nobody_opened_is_a_label_and_narrows_nothing(
    world: tuple[Catalogue, Grant],
) -> None:
    catalogue, grant = world
    assert Sessions().seat("ann", "label", grant, catalogue, lambda _: ["ann"]) is grant


def test_nothing_is_left_of_a_closed_session_however_wide_it_was(
    world: tuple[Catalogue, Grant],
) -> None:
    catalogue, grant = world
    sessions = Sessions()
    sessions.put(closed("s"))
    assert nothing_is_left(sessions.seat("ann", "s", grant, catalogue, lambda _: ["ann"]))


def test_nothing_is_left_of_a_session_that_is_gone(world: tuple[Catalogue, Grant]) -> None:
    catalogue, grant = world
    assert nothing_is_left(Sessions().narrowed(catalogue, grant, ["ann-s-1"]))


def test_nothing_is_left_of_a_session_that_this_version_cannot_read(
    world: tuple[Catalogue, Grant],
) -> None:
    catalogue, grant = world
    sessions = Sessions()
    sessions.put(session("s", "ann", Narrowing(disallowed_tools=("a:**",))))
    assert nothing_is_left(sessions.narrowed(catalogue, grant, ["ann-s-1"]))


def test_what_was_computed_is_forgotten_with_the_session(world: tuple[Catalogue, Grant]) -> None:
    catalogue, grant = world
    sessions = Sessions()
    sessions.put(session("s"))
    assert sessions.seat("ann", "s", grant, catalogue, lambda _: ["ann"]).events == grant.events
    narrow = Narrowing(allowed_tools=("a:get",))
    sessions.put(session("s", "ann", narrow))
    assert sessions.seat("ann", "s", grant, catalogue, lambda _: ["ann"]).events == {"a:get"}
    sessions.put(closed("s"))
    assert nothing_is_left(sessions.seat("ann", "s", grant, catalogue, lambda _: ["ann"]))


def test_another_grant_of_the_same_agent_is_narrowed_anew(world: tuple[Catalogue, Grant]) -> None:
    catalogue, wide = world
    sessions = Sessions()
    sessions.put(session("s", "ann", Narrowing(disallowed_tools=("a:set",))))
    bits = catalogue.universe.bits_of({"a:get"})
    narrow = Grant(profile="p", revision=1, bits=bits, events=frozenset({"a:get"}))
    for grant in (wide, narrow, wide):
        left = sessions.seat("ann", "s", grant, catalogue, lambda _: ["ann"])
        assert left.events == grant.events - {"a:set"}


def test_a_flood_of_names_does_not_become_a_flood_of_memory(
    world: tuple[Catalogue, Grant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remit.kernel.authority.sessions._SEATS", 3)
    monkeypatch.setattr("remit.kernel.authority.sessions._NARROWED", 3)
    catalogue, grant = world
    sessions = Sessions()
    for number in range(9):
        sessions.put(session(f"s{number}"))
    for number in range(9):
        left = sessions.seat("ann", f"s{number}", grant, catalogue, lambda _: ["ann"])
        assert left.events == grant.events
        assert len(sessions._seats) <= 3
        assert len(sessions._narrowed) <= 3


def test_a_session_that_is_opened_again_takes_the_place_of_the_one_before() -> None:
    sessions = Sessions()
    sessions.put(session("s", number=1))
    sessions.put(session("s", number=2))
    assert sessions.by_id("ann-s-1") is None
    assert sessions.get("ann", "s") is sessions.by_id("ann-s-2")
    assert len(sessions) == 1


def test_sessions_are_listed_and_counted_for_each_owner_alone() -> None:
    sessions = Sessions()
    for one in (session("b"), session("a"), closed("c"), session("a", "bob")):
        sessions.put(one)
    assert [one.name for one in sessions.of("ann")] == ["a", "b", "c"]
    assert sessions.count("ann") == (2, 3)
    assert sessions.count("bob") == (1, 1)
    assert sessions.count("eve") == (0, 0)
    assert sorted(sessions.owners()) == ["ann", "bob"]
    assert [one.owner for one in sessions.named("a", ["ann", "eve", "bob"])] == ["ann", "bob"]


def test_the_sessions_of_somebody_who_is_gone_are_forgotten() -> None:
    sessions = Sessions()
    sessions.put(session("a"))
    sessions.put(session("a", "bob"))
    sessions.drop("ann")
    sessions.drop("eve")
    assert sessions.by_id("ann-a-1") is None
    assert sessions.of("ann") == []
    assert len(sessions) == 1


def test_a_copy_for_looking_at_does_not_follow_later_changes() -> None:
    sessions = Sessions()
    sessions.put(session("a"))
    copy = sessions.copy()
    sessions.drop("ann")
    assert copy.by_id("ann-a-1") is not None
    copy.drop("ann")
    assert len(copy) == 0
