"""Narrowing a grant: by effect, and under a parent."""

import pytest
from tests.policy.texts import compiled, event

from remit.model.event import Effect
from remit.policy.catalogue import Catalogue
from remit.policy.compile import resolve
from remit.policy.decide import confine, decide
from remit.policy.resolve import grant_everything

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
