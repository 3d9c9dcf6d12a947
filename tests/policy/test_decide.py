"""May a holder use an event, and what is left of a grant that is narrowed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.texts import CAPABILITIES, compiled, event, granted

from remit.model.grant import Grant, Narrowing, Session
from remit.model.limits import Effect, Limits
from remit.policy.catalogue import Catalogue
from remit.policy.compile import resolve
from remit.policy.decide import confine, decide, narrow
from remit.policy.resolve import grant_everything

PROFILE = """
name: p
capabilities: [state_write, network]
disallowed_tools: ["agent:*", state:delete]
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("state:get", "granted"),
        ("state:delete", "explicit_deny"),
        ("agent:spawn", "explicit_deny"),
        ("web:fetch", "review_pending"),
        ("message:publish", "no_grant"),
    ],
)
def test_each_refusal_has_its_reason(name: str, reason: str) -> None:
    assert decide(granted(PROFILE), name) == reason


@pytest.mark.parametrize(
    ("existing", "invented"),
    [("agent:spawn", "agent:nothing"), ("message:publish", "message:nothing")],
)
def test_an_event_that_does_not_exist_is_refused_like_one_that_does(
    existing: str, invented: str
) -> None:
    grant = granted(PROFILE)
    assert decide(grant, existing) == decide(grant, invented)


@pytest.mark.parametrize("name", ["", "*", "state:*", "state:", "State:get", "state:get ", "state"])
def test_only_the_exact_name_is_granted(name: str) -> None:
    assert decide(granted(PROFILE), name) != "granted"


def test_a_pending_wildcard_does_not_tell_which_events_must_be_named() -> None:
    text = CAPABILITIES.replace("[web:fetch]", '["web:*"]')
    events = ("web:fetch", event("web:secret", wildcard=False))
    grant = compiled(text, "{name: p, capabilities: [network]}", events=events).grants["p"]
    assert decide(grant, "web:secret") == decide(grant, "web:invented") == "review_pending"


def test_a_pending_old_name_is_pending_by_its_present_one() -> None:
    events = [event("net:get", aliases=("web:fetch",))]
    grant = compiled(CAPABILITIES, "{name: p, capabilities: [network]}", events=events).grants["p"]
    assert decide(grant, "net:get") == "review_pending"


TEXT = """
capabilities:
  all:
    description: x
    event_patterns: ["s:*"]
    claude_tools: [Bash, Read]
    resource_limits: {max_children: 3}
"""
EVENTS = [
    event("s:get", effect="read"),
    event("s:set", effect="write"),
    event("s:wipe", effect="destructive"),
    event("s:odd"),
]


def catalogue() -> Catalogue:
    return compiled(
        TEXT,
        "{name: p, capabilities: [all], limits: {max_depth: 1}}",
        "{name: child, allowed_tools: [s:get, s:odd, Bash, WebFetch], limits: {max_children: 9}}",
        "{name: empty}",
        events=EVENTS,
    )


@pytest.mark.parametrize(
    ("ceiling", "kept"),
    [
        ("read", {"s:get"}),
        ("write", {"s:get", "s:set"}),
        ("destructive", {"s:get", "s:set", "s:wipe"}),
    ],
)
def test_a_ceiling_keeps_only_what_does_no_more(ceiling: Effect, kept: set[str]) -> None:
    grant = resolve(catalogue(), "p", max_effect=ceiling)
    assert grant.events == grant.exposed == kept
    assert grant.bits == catalogue().universe.bits_of(kept)
    assert decide(grant, "s:odd") == "explicit_deny"
    assert decide(grant, "s:none") == "explicit_deny", (
        "no name tells whether there is such an event"
    )
    assert decide(grant, "t:none") == "no_grant"


def test_a_ceiling_keeps_no_model_tool_because_nobody_states_their_effect() -> None:
    assert resolve(catalogue(), "p", max_effect="destructive").claude_tools == frozenset()
    assert resolve(catalogue(), "p").claude_tools == {"Bash", "Read"}


def test_a_child_keeps_what_its_parent_has_too() -> None:
    whole = catalogue()
    confined = confine(whole, whole.grants["child"], whole.grants["p"])
    assert confined.events == {"s:get", "s:odd"}
    assert confined.claude_tools == {"Bash"}
    assert confined.limits.to_json() == {"max_children": 3, "max_depth": 1}
    assert confined.profile == "child"


def test_nothing_is_left_under_a_parent_that_has_nothing() -> None:
    whole = catalogue()
    confined = confine(whole, whole.grants["p"], whole.grants["empty"])
    assert confined.events == confined.exposed == confined.claude_tools == frozenset()
    assert confined.bits == 0


def test_narrowing_leaves_the_grant_itself_alone() -> None:
    whole = catalogue()
    confine(whole, whole.grants["p"], whole.grants["empty"])
    resolve(whole, "p", max_effect="read")
    assert whole.grants["p"].events == {"s:get", "s:set", "s:wipe", "s:odd"}


def test_the_operator_holds_every_event_even_those_that_must_be_named() -> None:
    whole = compiled(TEXT, events=[*EVENTS, event("s:secret", wildcard=False)])
    grant = grant_everything(whole)
    assert grant.events == grant.exposed == set(whole.universe.names)
    assert grant.bits == whole.universe.everything
    assert grant.limits.to_json() == {}


SESSION_TEXT = """
capabilities:
  all:
    description: x
    event_patterns: ["s:*", s:seal, "t:*"]
    claude_tools: [Bash, Read]
    resource_limits: {max_children: 3}
  shy: {description: x, event_patterns: [u:get], mcp_tools: false}
"""
SESSION_EVENTS = [
    event("s:get", effect="read", aliases=("old:get",)),
    event("s:set", effect="write", approval=True),
    event("s:seal", effect="write", wildcard=False),
    event("t:wipe", effect="destructive"),
    event("t:odd"),
    event("u:get", effect="read"),
]
NAMES = {"s:get", "s:set", "s:seal", "t:wipe", "t:odd", "u:get"}
SESSION_PROFILE = "{name: p, capabilities: [all, shy], exposure: turn, pinned: ['s:*', t:odd]}"
CATALOGUE = compiled(SESSION_TEXT, SESSION_PROFILE, events=SESSION_EVENTS)
ENTRIES = st.sampled_from(
    ["s:*", "s:s*", "s:get", "old:get", "old:*", "s:seal", "t:*", "t:odd", "u:get", "Bash", "Read"]
)
LISTS = st.lists(ENTRIES, max_size=4).map(tuple)
STEPS = st.builds(
    Narrowing,
    allowed_tools=st.none() | LISTS,
    disallowed_tools=LISTS | st.just(("*",)),
    max_effect=st.sampled_from([None, "read", "write", "destructive"]),
    limits=st.builds(Limits, max_children=st.none() | st.integers(0, 5)),
)


def grant() -> Grant:
    return resolve(CATALOGUE, "p")


def session(*steps: Narrowing, **more: Any) -> Session:
    return Session(id="1", name="s", owner="a", steps=steps, **more)


def left(**step: Any) -> Grant:
    return narrow(CATALOGUE, grant(), session(Narrowing(**step)))


def test_a_session_without_steps_leaves_everything() -> None:
    before = grant()
    assert narrow(CATALOGUE, before, session()) is before
    assert before.events == NAMES


@pytest.mark.parametrize(
    ("allowed", "kept"),
    [
        pytest.param(["s:*"], {"s:get", "s:set"}, id="no-wildcard-lets-through-what-must-be-named"),
        pytest.param(["s:*", "s:seal"], {"s:get", "s:set", "s:seal"}, id="named"),
        pytest.param(["old:get"], {"s:get"}, id="by-an-old-name"),
        pytest.param(["old:*"], set(), id="no-wildcard-by-an-old-name"),
        pytest.param(["Bash"], set(), id="a-model-tool-lets-no-event-through"),
        pytest.param([], set(), id="an-empty-list-leaves-nothing"),
    ],
)
def test_an_allow_list_leaves(allowed: list[str], kept: set[str]) -> None:
    assert left(allowed_tools=tuple(allowed)).events == kept


@pytest.mark.parametrize(
    ("denied", "gone"),
    [
        pytest.param(["s:*"], {"s:get", "s:set", "s:seal"}, id="also-what-must-be-named"),
        pytest.param(["old:*"], {"s:get"}, id="by-an-old-name"),
        pytest.param(["old:get"], {"s:get"}, id="exactly-by-an-old-name"),
        pytest.param(["*"], NAMES, id="everything"),
    ],
)
def test_a_deny_list_takes(denied: list[str], gone: set[str]) -> None:
    found = left(disallowed_tools=tuple(denied))
    assert found.events == NAMES - gone
    for name in gone:
        assert decide(found, name) == "explicit_deny"


def test_model_tools_are_left_only_by_their_name() -> None:
    assert left(allowed_tools=("Bash", "s:get")).claude_tools == {"Bash"}
    assert left(allowed_tools=("s:get",)).claude_tools == frozenset()
    assert left(disallowed_tools=("Bash",)).claude_tools == {"Read"}
    assert left(disallowed_tools=("*",)).claude_tools == frozenset()
    assert left(max_effect="write").claude_tools == frozenset()


def test_an_unknown_effect_never_passes() -> None:
    assert left(max_effect="destructive").events == NAMES - {"t:odd"}
    assert left(max_effect="read").events == {"s:get", "u:get"}


def test_what_is_outside_of_the_allow_list_is_not_granted_rather_than_denied() -> None:
    assert decide(left(allowed_tools=("s:get",)), "s:set") == "no_grant"


def test_approval_is_still_asked_for_and_hidden_events_stay_hidden() -> None:
    found = left(allowed_tools=("s:*", "u:get"))
    assert found.approval_required == {"s:set"}
    assert found.exposed == {"s:get", "s:set"}
    assert left(allowed_tools=("s:get",)).approval_required == frozenset()


def test_of_a_closed_session_nothing_is_left() -> None:
    found = narrow(CATALOGUE, grant(), session(closed_at=1.0))
    assert (found.events, found.bits, found.exposed, found.claude_tools, found.pinned) == (
        frozenset(), 0, frozenset(), frozenset(), frozenset(),
    )  # fmt: skip
    assert (found.approval_required, decide(found, "no:such")) == (frozenset(), "explicit_deny")


@given(st.lists(STEPS, max_size=4), STEPS)
def test_a_step_only_ever_takes_away(steps: list[Narrowing], step: Narrowing) -> None:
    before = narrow(CATALOGUE, grant(), session(*steps))
    after = narrow(CATALOGUE, grant(), session(*steps, step))
    assert after.events <= before.events <= grant().events
    assert after.claude_tools <= before.claude_tools <= grant().claude_tools
    assert after.exposed == before.exposed & after.events
    assert (after.exposure, after.pinned) == ("turn", before.pinned & after.events)
    assert after.approval_required == before.approval_required & after.events
    assert after.limits == before.limits.smallest(after.limits)
    assert CATALOGUE.universe.names_in(after.bits) == sorted(after.events)


@given(st.lists(STEPS, max_size=4))
def test_the_order_of_steps_means_nothing(steps: list[Narrowing]) -> None:
    one = narrow(CATALOGUE, grant(), session(*steps))
    other = narrow(CATALOGUE, grant(), session(*reversed(steps)))
    assert (one.events, one.claude_tools, one.limits) == (
        other.events, other.claude_tools, other.limits,
    )  # fmt: skip
