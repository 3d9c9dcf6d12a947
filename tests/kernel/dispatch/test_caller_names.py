"""A tool name never changes its target, and tells nothing of what others hold."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.texts import event, universe_of
from tests.stores import TemporaryStore

from remit.errors import StoreError
from remit.kernel.dispatch.tool_names import CallerNames, event_named
from remit.model.event import EventSpec, Universe
from remit.model.principal import Principal
from remit.policy.tool_names import held_back, names_for, sure_name

ANN, BOB = Principal("ann", serial=1), Principal("bob", serial=2)
EVENTS = [
    event("a:b"),
    event("a_b:c"),
    event("a:b_c"),
    event("x:y", tool="a_b"),
    event("file:search", tool="search"),
    event("mcp:north:search", tool="search"),
    event("mcp:south:search", tool="search"),
    event("mcp:south:a_b", tool="a_b"),
    event("mcp:east:x", tool="mcp__south__search"),
    event("mcp:east:y", tool="discover_capabilities"),
]
NAMES = [spec.name for spec in EVENTS]
SETS = st.sets(st.sampled_from(NAMES))
STEPS = st.one_of(
    st.tuples(st.just("grant"), st.sampled_from(["ann", "bob"]), SETS),
    st.tuples(st.just("serve"), SETS),
    st.tuples(st.just("restart")),
    st.tuples(st.just("list"), st.sampled_from(["ann", "bob"])),
    st.tuples(st.just("disk"), st.booleans()),
)


class Disk(TemporaryStore):
    """A store whose disk can be full."""

    is_full = False

    async def name_add(self, owner: str, names: Mapping[str, str], *, limit: int) -> None:
        if self.is_full:
            raise StoreError("the disk is full")
        await super().name_add(owner, names, limit=limit)


class World:
    """What is served, what each caller holds, and what each was shown."""

    def __init__(self, **limits: int) -> None:
        self.store = Disk()
        self.limits = limits
        self.names = CallerNames(self.store, **limits)
        self.served: set[str] = set(NAMES)
        self.held: dict[str, set[str]] = {"ann": set(NAMES), "bob": set(NAMES)}
        self.shown: dict[str, dict[str, str]] = {"ann": {}, "bob": {}}

    @property
    def universe(self) -> Universe:
        return universe_of([spec for spec in EVENTS if spec.name in self.served])

    def events(self, who: str) -> list[str]:
        return sorted(self.held[who] & self.served)

    async def step(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("grant", who, events):
                self.held[who] = events
            case ("serve", events):
                self.served = events
            case ("disk", full):
                self.store.is_full = full
            case ("restart",):
                self.names = CallerNames(self.store, **self.limits)
            case ("list", who):
                await self.list(who)
            case _:
                raise AssertionError(step)

    async def list(self, who: str) -> dict[str, str]:
        principal = ANN if who == "ann" else BOB
        names = await self.names.give(principal, self.universe, self.events(who))
        assert sorted(names) == self.events(who)
        assert len(set(names.values())) == len(names)
        for target, name in names.items():
            assert self.shown[who].setdefault(name, target) == target
        await self.every_name_still_means_its_event(who)
        return names

    async def every_name_still_means_its_event(self, who: str) -> None:
        principal = ANN if who == "ann" else BOB
        kept = await self.names.kept(principal)
        present = names_for(self.universe, self.events(who), kept)
        for name, target in self.shown[who].items():
            assert event_named(name, present, kept)[0] in (None, target)


@settings(max_examples=150)
@given(st.lists(STEPS, max_size=14), st.sampled_from([{}, {"of_one": 3}, {"in_all": 5}]))
async def test_a_name_that_was_shown_never_runs_another_event(
    steps: list[tuple[Any, ...]], limits: dict[str, int]
) -> None:
    world = World(**limits)
    for step in steps:
        await world.step(step)
        for who in ("ann", "bob"):
            await world.every_name_still_means_its_event(who)
    for who in ("ann", "bob"):
        await world.list(who)


@settings(max_examples=150)
@given(st.lists(STEPS, max_size=14))
async def test_names_depend_only_on_what_the_caller_holds_and_held(
    steps: list[tuple[Any, ...]],
) -> None:
    """The same steps without anything that ann never holds give ann the same names."""
    ever = set[str]().union(*(step[2] for step in steps if step[:2] == ("grant", "ann")))
    world, alone = World(), World()
    world.held["ann"] = alone.held["ann"] = set()
    for step in steps:
        await world.step(step)
        if step[0] == "serve":
            await alone.step(("serve", step[1] & ever))
        elif step[:2] not in (("grant", "bob"), ("list", "bob")):
            await alone.step(step)
    alone.served = world.served & ever
    world.store.is_full = alone.store.is_full = False
    assert await world.list("ann") == await alone.list("ann")


async def test_two_servers_with_one_name_and_one_of_them_goes() -> None:
    world = World()
    world.held["ann"] = {"mcp:north:search", "mcp:south:search"}
    world.held["bob"] = {"mcp:south:search"}
    both = {"mcp:north:search": "mcp__north__search", "mcp:south:search": "mcp__south__search"}
    assert await world.list("ann") == both
    assert await world.list("bob") == {"mcp:south:search": "search"}
    world.served.discard("mcp:north:search")
    await world.step(("restart",))
    assert await world.list("ann") == {"mcp:south:search": "mcp__south__search"}


async def test_a_later_conflict_gives_the_newcomer_the_long_name() -> None:
    world = World()
    world.held["ann"] = {"mcp:north:search"}
    assert await world.list("ann") == {"mcp:north:search": "search"}
    world.held["ann"] = {"mcp:north:search", "mcp:south:search", "file:search"}
    assert await world.list("ann") == {
        "mcp:north:search": "search",
        "mcp:south:search": "mcp__south__search",
        "file:search": "file__search",
    }


async def test_a_renamed_event_keeps_its_name_and_nobody_takes_it() -> None:
    names = CallerNames(TemporaryStore())
    before = universe_of([event("a:old", tool="find")])
    assert await names.give(ANN, before, ["a:old"]) == {"a:old": "find"}
    after = universe_of(
        [event("a:new", tool="find", aliases=("a:old",)), event("b:c", tool="find")]
    )
    given = await names.give(ANN, after, ["a:new", "b:c"])
    assert given == {"a:new": "find", "b:c": "b__c"}


@pytest.mark.parametrize("limits", [{"of_one": 1}, {"in_all": 1}])
async def test_names_that_are_not_kept_can_only_ever_be_their_event(
    limits: dict[str, int],
) -> None:
    names = CallerNames(TemporaryStore(), **limits)
    universe = universe_of(["a:b", "c:d"])
    given = await names.give(ANN, universe, ["a:b", "c:d"])
    assert given == {"a:b": sure_name("a:b"), "c:d": sure_name("c:d")}
    assert await names.kept(ANN) == {}
    assert event_named(sure_name("a:b"), {"a:b": "a_b"}, {})[0] == "a:b"


async def test_a_later_agent_of_the_same_name_begins_anew() -> None:
    store = TemporaryStore()
    names = CallerNames(store)
    await names.give(ANN, universe_of(["a:b"]), ["a:b"])
    await store.agent_remove(["ann"])
    later = Principal("ann", serial=9)
    assert await names.kept(later) == {}


def _held_back(ours: EventSpec, theirs: EventSpec, held: set[str]) -> set[str]:
    return set(held_back(universe_of([ours, theirs]), held))


@pytest.mark.parametrize(
    ("held", "hidden"),
    [
        ({"file:read", "mcp:fs:read"}, {"mcp:fs:read"}),
        ({"mcp:fs:read"}, set()),
        ({"file:read"}, set()),
    ],
)
def test_a_tool_with_a_name_of_ours_is_held_back_only_where_both_are_held(
    held: set[str], hidden: set[str]
) -> None:
    ours, theirs = event("file:read", tool="read"), event("mcp:fs:read", tool="read", vouched=False)
    assert _held_back(ours, theirs, held) == hidden
    approved = event("mcp:fs:read", tool="read")
    assert _held_back(ours, approved, held) == set()
