"""A fleet under random spawns, changes, reloads and endings, beside a model of sets and recursion.

The real dispatcher never allows what the model denies, no child ever holds more than any of its
ancestors, nobody hears what it may not see, and nobody has more children than it may.
`REMIT_LONG_TESTS=1` takes 10,000 steps and more.

It was tried against code that was broken by hand: without the AND over ancestors, with descendants,
principals or children that stay after an ending, with grants that outlive a reload or an update,
with deliveries that are not checked or checked by an old grant, and one child or level too many.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio.from_thread
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.fakes import texts
from tests.family import Family, public_key
from tests.listeners import FakePost, Listener

from remit.config.definitions.files import Files
from remit.model.names import EventPattern
from remit.model.principal import Cause
from remit_client.wire import Answer

LONG = bool(os.environ.get("REMIT_LONG_TESTS"))

BASE = {"system:health", "permission:check"}
CAPABILITIES = {
    "read": {"state:get", "state:list"},
    "write": {"state:set", "state:delete"},
    "web": {"system:stats"},
    "spawn": {"agent:spawn", "agent:terminate", "agent:update"},
}
VERSIONS: list[dict[str, set[str]]] = [
    {"top": {"read", "write", "web", "spawn"}, "mid": {"read", "spawn"}, "low": {"read", "write"}},
    {"top": {"read", "web", "spawn"}, "mid": {"read", "write", "spawn"}, "low": {"write"}},
    {"top": {"read", "write", "spawn"}, "mid": {"spawn", "web"}},  # `low` is gone
]
LIMITS = {"top": {"max_children": 3, "max_depth": 2}, "mid": {"max_children": 1}}
PUBLISHED = ["state:set", "system:stats", "agent:spawn"]
EVENTS = sorted(BASE.union(*CAPABILITIES.values()))
PROFILES = ["top", "mid", "low", ""]
NAMES = [f"a{at}" for at in range(8)]
DATA: dict[str, Any] = {"state:get": {"key": "k"}, "state:set": {"key": "k", "value": 1}}
DATA |= {"state:delete": {"key": "k"}, "permission:check": {"event": "x:y"}}


def files_of(version: int) -> Files:
    def listed(events: set[str]) -> str:
        return ", ".join(sorted(events))

    catalogue = (
        f"  base: {{description: b, always_included: true, event_patterns: [{listed(BASE)}]}}\n"
    )
    for name, events in CAPABILITIES.items():
        catalogue += f"  {name}: {{description: d, event_patterns: [{listed(events)}]}}\n"
    profiles = {
        name: f"capabilities: [{listed(held)}]\nlimits: {LIMITS.get(name, {})}\n".replace("'", "")
        for name, held in VERSIONS[version].items()
    }
    return texts(catalogue, **profiles)


class Kid(NamedTuple):
    parent: str | None
    profile: str
    inherit: bool = False
    deny: frozenset[str] = frozenset()
    client: bool = False


class Model:
    """Who may do what, by sets and recursion alone."""

    def __init__(self) -> None:
        self.version = 0
        self.kids: dict[str, Kid] = {}

    def profile(self, name: str) -> set[str] | None:
        if not name:
            return set(BASE)
        held = VERSIONS[self.version].get(name)
        return None if held is None else BASE.union(*(CAPABILITIES[one] for one in held))

    def may(self, name: str | None) -> set[str]:
        if name is None:
            return set(EVENTS)
        kid = self.kids.get(name)
        return set() if kid is None else self.would(kid) & self.may(kid.parent)

    def would(self, kid: Kid) -> set[str]:
        # An agent whose profile was deleted keeps what everybody has.
        own = self.may(kid.parent) if kid.inherit else self.profile(kid.profile) or set(BASE)
        return own - kid.deny

    def under(self, name: str) -> set[str]:
        below = [other for other, kid in self.kids.items() if kid.parent == name]
        return {name}.union(*map(self.under, below))

    def line(self, name: str | None) -> list[str]:
        """Somebody and all above it."""
        return [] if name is None else [name, *self.line(self.kids[name].parent)]

    def limit(self, name: str, limit: str) -> float:
        held = (LIMITS.get(self.kids[one].profile, {}) for one in self.line(name))
        return min((limits[limit] for limits in held if limit in limits), default=float("inf"))

    def has_room(self, name: str | None) -> bool:
        if name is None:
            return True
        children = sum(kid.parent == name for kid in self.kids.values())
        line = enumerate(self.line(name), start=1)
        return children < self.limit(name, "max_children") and all(
            below <= self.limit(one, "max_depth") for below, one in line
        )

    def is_above(self, above: str, name: str) -> bool:
        return name in self.kids and above in self.kids and name in self.under(above)

    def sees(self, giver: str | None, profile: str) -> bool:
        """Whether somebody may name a profile: its own, or one that gives no more than it has."""
        found = self.profile(profile)
        if found is None or giver is None or not profile:
            return found is not None
        return profile == self.kids[giver].profile or found <= self.may(giver)

    def verdict(self, giver: str | None, kid: Kid, *, narrow: bool) -> str:
        """What is answered to somebody who would give these rights; empty: they are given."""
        if kid.inherit and kid.parent is None:
            return "invalid_data"
        if not kid.inherit and not self.sees(giver, kid.profile):
            return "not_found"
        if giver is not None and kid.deny - self.may(kid.parent):
            return "invalid_data"
        ceiling = self.may(kid.parent) & self.may(giver)
        return "exceeds_parent" if self.would(kid) - ceiling and not narrow else ""


PICKS = st.integers(0, 1000)
DENIALS = st.one_of(
    st.just(frozenset[str]()), st.frozensets(st.sampled_from(EVENTS), min_size=1, max_size=2)
)


class FleetMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.portal_manager = anyio.from_thread.start_blocking_portal()
        self.portal = self.portal_manager.__enter__()
        self.model = Model()
        self.family: Family = self.portal.call(Family, files_of(0))
        self.keys: dict[str, str] = {}
        """Every key that anybody ever had, with its name."""
        self.lines = [Listener(name) for name in NAMES]
        delivery = self.family.kernel.delivery
        delivery.post = FakePost(*self.lines)
        for one in self.lines:
            delivery.bus.subscribe(one, patterns=[EventPattern.parse("*")])

    @initialize()
    def a_line_of_three(self) -> None:
        """Most of what can go wrong needs a tree."""
        self.try_add_key(NAMES[0], "top")
        for at in range(2):
            kid = Kid(NAMES[at], "", inherit=True)
            self.try_spawn(kid, NAMES[at + 1], narrow=False)

    def someone(self, at: int) -> str | None:
        """The operator, or an agent; more often one that lives."""
        living = sorted(self.model.kids)
        pool = [None, *living, *living, *NAMES]
        return pool[at % len(pool)]

    def name(self, at: int) -> str:
        free = [name for name in NAMES if name not in self.model.kids]
        return [*free, *free, *NAMES][at % (2 * len(free) + len(NAMES))]

    def teardown(self) -> None:
        self.portal_manager.__exit__(None, None, None)

    def code(self, who: str | None, event: str, data: Any = None) -> str:
        ask: Callable[..., Any] = self.family.answer
        answer: Answer = self.portal.call(ask, who or "operator", event, data)
        return "" if answer.error is None else answer.error.code

    @rule(
        who=PICKS,
        name=PICKS,
        profile=st.sampled_from(PROFILES),
        inherit=st.booleans(),
        deny=DENIALS,
        narrow=st.booleans(),
    )
    def spawn(
        self,
        who: int,
        name: int,
        profile: str,
        *,
        inherit: bool,
        deny: frozenset[str],
        narrow: bool,
    ) -> None:
        kid = Kid(self.someone(who), "" if inherit else profile, inherit, deny)
        self.try_spawn(kid, self.name(name), narrow=narrow)

    def try_spawn(self, kid: Kid, name: str, *, narrow: bool) -> None:
        model, who = self.model, kid.parent
        is_seen = who is None or model.is_above(who, name)
        expected = "conflict" if name in model.kids and is_seen else ""
        if "agent:spawn" not in model.may(who):
            expected = "denied"
        elif verdict := model.verdict(who, kid, narrow=narrow):
            expected = verdict
        elif not model.has_room(who):
            expected = "limit_exceeded"
        data = {
            "agent_id": name,
            "public_key": public_key(),
            "profile": kid.profile,
            "inherit": kid.inherit,
            "disallowed_tools": sorted(kid.deny),
            "on_excess": "narrow" if narrow else "refuse",
        }
        is_taken = name in model.kids
        assert self.code(who, "agent:spawn", data) == expected
        if not expected and is_taken:
            # Out of sight of its parent: it was given another name, which the model does not know.
            given = self.family.keyring.name_of_key(str(data["public_key"]))
            assert given is not None
            assert given.startswith(f"{name}-")
            assert self.code(None, "agent:terminate", {"agent_id": given}) == ""
        elif not expected:
            self.model.kids[name] = kid
            self.keys[str(data["public_key"])] = name

    @rule(
        who=PICKS,
        name=PICKS,
        profile=st.sampled_from(PROFILES),
        deny=DENIALS,
        narrow=st.booleans(),
    )
    def update(
        self, who: int, name: int, profile: str, *, deny: frozenset[str], narrow: bool
    ) -> None:
        self.try_update(
            self.someone(who), self.someone(name) or NAMES[0], profile, deny, narrow=narrow
        )

    def try_update(
        self, who: str | None, name: str, profile: str, deny: frozenset[str], *, narrow: bool
    ) -> None:
        expected = "denied"
        before = self.model.kids.get(name)
        if "agent:update" in self.model.may(who):
            expected = "unknown_agent"
            if before is not None and (who is None or self.model.is_above(who, name)):
                expected = self.expected_update(who, name, before, profile, deny, narrow)
        data = {"agent_id": name, "profile": profile, "disallowed_tools": sorted(deny)}
        data["on_excess"] = "narrow" if narrow else "refuse"
        assert self.code(who, "agent:update", data) == expected
        if not expected and before is not None:
            self.model.kids[name] = before._replace(profile=profile, deny=deny)

    def expected_update(
        self,
        who: str | None,
        name: str,
        before: Kid,
        profile: str,
        deny: frozenset[str],
        narrow: bool,  # noqa: FBT001 - of the model
    ) -> str:
        if who == name:
            return "denied"
        if before.client:
            return "conflict"
        if before.inherit and profile:
            return "invalid_data"
        after = before._replace(profile=profile, deny=deny)
        return self.model.verdict(who, after, narrow=narrow)

    @rule(who=PICKS, name=PICKS)
    def terminate(self, who: int, name: int) -> None:
        self.try_terminate(self.someone(who), self.someone(name) or NAMES[0])

    def try_terminate(self, who: str | None, name: str) -> None:
        expected = "denied"
        if "agent:terminate" in self.model.may(who):
            reachable = name in self.model.kids if who is None else self.model.is_above(who, name)
            expected = "" if reachable else "unknown_agent"
        assert self.code(who, "agent:terminate", {"agent_id": name}) == expected
        if not expected:
            for gone in self.model.under(name):
                del self.model.kids[gone]

    @rule(name=PICKS, profile=st.sampled_from(PROFILES[:2]))
    def add_key(self, name: int, profile: str) -> None:
        self.try_add_key(self.name(name), profile)

    def try_add_key(self, name: str, profile: str) -> None:
        data = {"name": name, "public_key": public_key(), "profile": profile}
        expected = "conflict" if name in self.model.kids else ""
        assert self.code(None, "key:add", data) == expected
        if not expected:
            self.model.kids[name] = Kid(None, profile, client=True)
            self.keys[data["public_key"]] = name

    @rule(name=st.sampled_from(NAMES))
    def revoke_key(self, name: str) -> None:
        kid = self.model.kids.get(name)
        expected = "" if kid is not None and kid.client else "not_found"
        assert self.code(None, "key:revoke", {"name": name}) == expected
        if not expected:
            for gone in self.model.under(name):
                del self.model.kids[gone]

    @rule(version=st.sampled_from(range(len(VERSIONS))))
    def reload(self, version: int) -> None:
        self.family.files = files_of(version)
        self.portal.call(self.family.kernel.reloader.reload, Cause("signal"))
        self.model.version = version

    @rule(name=st.sampled_from(NAMES), event=st.sampled_from(sorted({*BASE, *DATA})))
    def call(self, name: str, event: str) -> None:
        denied = self.code(name, event, DATA.get(event)) == "denied"
        assert denied == (event not in self.model.may(name))

    @invariant()
    def grants_are_those_of_the_model_and_under_every_ancestor(self) -> None:
        authority, model = self.family.authority, self.model
        assert set(authority.fleet.names()) == set(model.kids)
        for name in NAMES:
            events = authority.grant(self.family.principal(name)).events
            assert events & set(EVENTS) == model.may(name)
            for above in authority.fleet.ancestors(name):
                assert events <= authority.fleet.grant(above.id, authority.catalogue).events

    @invariant()
    def what_is_published_reaches_exactly_those_who_may_see_it(self) -> None:
        delivery = self.family.kernel.delivery
        for event in PUBLISHED:
            for one in self.lines:
                one.heard.clear()
            told = self.portal.call(delivery.publish, event, {"key": "k"}, "operator")
            heard = {one.name for one in self.lines if one.heard}
            assert heard == {name for name in NAMES if event in self.model.may(name)}
            assert told == len(heard)

    @invariant()
    def who_ended_is_nobody_and_has_no_key_and_no_parent(self) -> None:
        fleet, keyring = self.family.authority.fleet, self.family.keyring
        living = self.model.kids
        assert {name for name in NAMES if fleet.principal(name) is not None} == set(living)
        for name in living:
            children = {other for other, kid in living.items() if kid.parent == name}
            assert set(fleet.children(name)) == children
        newest = {name: key for key, name in self.keys.items() if name in living}
        for key, name in self.keys.items():
            expected = name if newest.get(name) == key else None
            assert keyring.name_of_key(key) == expected


FleetMachine.TestCase.settings = settings(
    max_examples=120 if LONG else 20,
    stateful_step_count=100 if LONG else 40,
    deadline=None,
)
TestFleet = FleetMachine.TestCase
