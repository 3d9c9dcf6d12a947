"""Sessions under random openings, steps, closings, spawns, changes, reloads and restarts.

Beside it stands a model of sets alone. What a session leaves never grows, is always a part of what
the agent holds, and every list shows exactly what every check allows.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import anyio.from_thread
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.fakes import texts
from tests.family import public_key
from tests.features.messages.circle import Circle
from tests.kernel.authority.test_fleet_machine import CAPABILITIES, LONG, VERSIONS

from remit.config.definitions.files import Files
from remit_client.wire import Answer

BASE = {
    "permission:check",
    "permission:check_many",
    "system:discover",
    "session:open",
    "session:narrow",
    "session:close",
}
EVENTS = sorted(BASE.union(*CAPABILITIES.values()))
READS = {"permission:check", "permission:check_many", "system:discover", "state:get", "state:list"}
READS |= {"system:stats"}
PROFILES = ["top", "mid", "low"]
NAMES = ["a0", "a1", "a2", "a3", "a4"]
SESSIONS = ["s", "t"]
MANY = st.frozensets(st.sampled_from(EVENTS), max_size=len(EVENTS))
FEW = st.frozensets(st.sampled_from(EVENTS), max_size=2)


def files_of(version: int) -> Files:
    catalogue = (
        f"  base: {{description: b, always_included: true, event_patterns: {_list(BASE)}}}\n"
    )
    for name, events in CAPABILITIES.items():
        catalogue += f"  {name}: {{description: d, event_patterns: {_list(events)}}}\n"
    profiles = {n: f"capabilities: {_list(c)}\n" for n, c in VERSIONS[version].items()}
    return texts(catalogue, **profiles)


def _list(names: set[str]) -> str:
    return f"[{', '.join(sorted(names))}]"


class Kid(NamedTuple):
    parent: str | None
    profile: str
    bound: tuple["Opened", ...] = ()


class Opened:
    """One session of the model: the set it leaves, None once it is closed."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.left: frozenset[str] | None = frozenset(EVENTS)

    def narrow(self, allowed: frozenset[str] | None, denied: frozenset[str], *, read: bool) -> None:
        assert self.left is not None
        self.left = (self.left if allowed is None else self.left & allowed) - denied
        self.left &= READS if read else self.left


class SessionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.portal_manager = anyio.from_thread.start_blocking_portal()
        self.portal = self.portal_manager.__enter__()
        self.circle: Circle = self.portal.call(Circle, files_of(0))
        self.version = 0
        self.kids: dict[str, Kid] = {}
        self.sessions: dict[tuple[str, str], Opened] = {}
        self.seen: dict[str, frozenset[str]] = {}

    def teardown(self) -> None:
        self.portal_manager.__exit__(None, None, None)

    # ---- the model ----

    def line(self, who: str) -> list[str]:
        if who == "operator":
            return [who]
        parent = self.kids[who].parent if who in self.kids else None
        return [who, *self.line(parent or "operator")]

    def named(self, who: str, session: str | None) -> list[Opened]:
        found = (self.sessions.get((owner, session or "")) for owner in self.line(who))
        return [one for one in found if one is not None]

    def may(self, who: str, session: str | None = None) -> frozenset[str]:
        left = frozenset(EVENTS)
        if who != "operator":
            kid = self.kids.get(who)
            if kid is None:
                return frozenset()
            # An agent whose profile was deleted keeps what everybody has.
            profile = VERSIONS[self.version].get(kid.profile, set())
            own = frozenset(BASE).union(*(CAPABILITIES[c] for c in profile))
            left = own & self.may(kid.parent or "operator")
            for one in kid.bound:
                left &= one.left or frozenset()
        for one in self.named(who, session):
            left &= one.left or frozenset()
        return left

    def unbound(self, who: str) -> frozenset[str]:
        """What somebody may do outside of all sessions."""
        if who not in self.kids:
            return frozenset(EVENTS)
        kid = self.kids[who]
        profile = VERSIONS[self.version].get(kid.profile, set())
        own = frozenset(BASE).union(*(CAPABILITIES[c] for c in profile))
        return own & self.unbound(kid.parent or "operator")

    def sees(self, who: str, profile: str) -> bool:
        """Whether somebody may name a profile."""
        held = VERSIONS[self.version].get(profile)
        if held is None or who == "operator":
            return held is not None
        given = frozenset(BASE).union(*(CAPABILITIES[c] for c in held))
        return profile == self.kids[who].profile or given <= self.unbound(who)

    # ---- what is done ----

    def answer(self, who: str, event: str, data: Any = None, session: str | None = None) -> Answer:
        inside: Callable[..., Any] = self.circle.inside
        found: Answer = self.portal.call(inside, who, session, event, data)
        return found

    def code(self, who: str, event: str, data: Any, session: str | None) -> str:
        error = self.answer(who, event, data, session).error
        return "" if error is None else error.code

    @rule(
        who=st.sampled_from(["operator", *NAMES]),
        name=st.sampled_from(NAMES),
        profile=st.sampled_from(PROFILES),
        given=st.none() | st.sampled_from(SESSIONS),
        inside=st.none() | st.sampled_from(SESSIONS),
    )
    def spawn(
        self, who: str, name: str, profile: str, given: str | None, inside: str | None
    ) -> None:
        bound = (*self.named(who, inside), *self.named(who, given))
        expected = ""
        if "agent:spawn" not in self.may(who, inside):
            expected = "denied"
        elif any(one.left is None for one in self.named(who, given)) or not self.sees(who, profile):
            expected = "not_found"
        elif name in self.kids and who in self.line(name):
            expected = "conflict"
        data: dict[str, Any] = {"agent_id": name, "profile": profile, "on_excess": "narrow"}
        data |= {"public_key": public_key()} | ({"session": given} if given else {})
        is_taken = name in self.kids
        assert self.code(who, "agent:spawn", data, inside) == expected
        if not expected and is_taken:
            # Out of sight of its parent: it was given another name, which the model does not know.
            given = self.circle.keyring.name_of_key(str(data["public_key"]))
            assert self.code("operator", "agent:terminate", {"agent_id": given}, None) == ""
        elif not expected:
            self.kids[name] = Kid(None if who == "operator" else who, profile, bound)

    @rule(
        who=st.sampled_from(["operator", *NAMES]),
        name=st.sampled_from(NAMES),
        profile=st.sampled_from(PROFILES),
        inside=st.none() | st.sampled_from(SESSIONS),
    )
    def update(self, who: str, name: str, profile: str, inside: str | None) -> None:
        expected = ""
        if "agent:update" not in self.may(who, inside):
            expected = "denied"
        elif name not in self.kids or who not in self.line(name):
            expected = "unknown_agent"
        elif who == name or not self.is_bound(name, self.named(who, inside)):
            expected = "denied"
        elif not self.sees(who, profile):
            expected = "not_found"
        data = {"agent_id": name, "profile": profile, "on_excess": "narrow"}
        assert self.code(who, "agent:update", data, inside) == expected
        if not expected:
            self.kids[name] = self.kids[name]._replace(profile=profile)

    def is_bound(self, name: str, sessions: list[Opened]) -> bool:
        kids = [self.kids[one] for one in self.line(name) if one in self.kids]
        return all(any(session in kid.bound for kid in kids) for session in sessions)

    @rule(
        who=st.sampled_from(["operator", *NAMES]),
        session=st.sampled_from(SESSIONS),
        allowed=st.none() | MANY,
        denied=FEW,
        read=st.booleans(),
        inside=st.none() | st.sampled_from(SESSIONS),
        opens=st.booleans(),
    )
    def open_or_narrow(  # noqa: PLR0913 - the fields of the request
        self,
        who: str,
        session: str,
        allowed: frozenset[str] | None,
        denied: frozenset[str],
        *,
        read: bool,
        inside: str | None,
        opens: bool,
    ) -> None:
        present = self.sessions.get((who, session))
        is_open = present is not None and present.left is not None
        event = "session:open" if opens else "session:narrow"
        expected = ""
        if event not in self.may(who, inside):
            expected = "denied"
        elif not opens and not is_open:
            expected = "not_found"
        elif ((allowed or frozenset()) | denied) - self.may(who, inside) or (
            not opens and allowed is None and not denied and not read
        ):
            expected = "invalid_data"
        elif opens and is_open:
            expected = "conflict"
        data: dict[str, Any] = {"session": session, "disallowed_tools": sorted(denied)}
        data |= {} if allowed is None else {"allowed_tools": sorted(allowed)}
        data |= {"max_effect": "read"} if read else {}
        assert self.code(who, event, data, inside) == expected
        if expected:
            return
        if opens:
            present = self.sessions[who, session] = Opened(who)
        assert present is not None
        present.narrow(allowed, denied, read=read)

    @rule(
        who=st.sampled_from(["operator", *NAMES]),
        owner=st.sampled_from(["operator", *NAMES]),
        session=st.sampled_from(SESSIONS),
        inside=st.none() | st.sampled_from(SESSIONS),
    )
    def close(self, who: str, owner: str, session: str, inside: str | None) -> None:
        present = self.sessions.get((owner, session))
        expected = ""
        if "session:close" not in self.may(who, inside):
            expected = "denied"
        elif present is None or who not in self.line(owner):
            expected = "not_found"
        assert self.code(who, "session:close", {"session": session, "owner": owner}, inside) == (
            expected
        )
        if not expected and present is not None:
            present.left = None

    @rule(who=st.sampled_from(NAMES))
    def end(self, who: str) -> None:
        expected = "" if who in self.kids else "unknown_agent"
        assert self.code("operator", "agent:terminate", {"agent_id": who}, None) == expected
        gone = [name for name in self.kids if who in self.line(name)]
        for name in gone:
            del self.kids[name]
        self.sessions = {k: one for k, one in self.sessions.items() if one.owner not in gone}

    @rule(version=st.sampled_from(range(len(VERSIONS))))
    def reload(self, version: int) -> None:
        self.circle.files = files_of(version)
        authority = self.circle.authority
        self.portal.call(lambda: authority.put_in_force(authority.prepare()))
        self.version = version

    @rule()
    def restart(self) -> None:
        restarted: Callable[[], Any] = self.circle.restarted
        self.circle = self.portal.call(restarted)

    @rule(who=st.sampled_from(NAMES), session=st.none() | st.sampled_from(SESSIONS))
    def look_around(self, who: str, session: str | None) -> None:
        left = self.may(who, session)
        listed = self.answer(who, "system:discover", {"level": "namespace"}, session)
        checked = self.answer(who, "permission:check_many", {"events": EVENTS}, session)
        if "system:discover" in left:
            spaces = listed.data["namespaces"].values()
            assert {one["event"] for entries in spaces for one in entries} == left
        if "permission:check_many" in left:
            assert {one["event"] for one in checked.data["results"] if one["allowed"]} == left

    # ---- what is always so ----

    @invariant()
    def grants_are_those_of_the_model_and_never_wider_in_a_session(self) -> None:
        for who in ["operator", *NAMES]:
            for session in (None, *SESSIONS):
                holds = self.circle.holds(who, session)
                assert holds & set(EVENTS) == self.may(who, session), (who, session)
                assert holds <= self.circle.holds(who)

    @invariant()
    def no_session_ever_leaves_more_than_before(self) -> None:
        authority = self.circle.authority
        sessions, everything = authority.fleet.sessions, authority.current.everything
        for owner in sessions.owners():
            for one in sessions.of(owner):
                left = sessions.narrowed(authority.catalogue, everything, [one.id]).events
                assert left <= self.seen.setdefault(one.id, left)
                self.seen[one.id] = left


SessionMachine.TestCase.settings = settings(
    max_examples=120 if LONG else 20,
    stateful_step_count=100 if LONG else 40,
    deadline=None,
)
TestSessions = SessionMachine.TestCase
