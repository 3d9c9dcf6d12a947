"""The status of a capability: what coming_soon, deprecated and retired give."""

import pytest
from tests.policy.texts import compiled, told

from remit.policy.decide import decide


def catalogue_with(status: str) -> str:
    return f"""capabilities:
  thing: {{description: x, event_patterns: [a:thing], requires: [helper], status: {status}}}
  helper: {{description: x, event_patterns: [a:help]}}
  user: {{description: x, event_patterns: [a:use], requires: [thing]}}
  newer: {{description: x, event_patterns: [a:new], replaces: [thing]}}
"""


EVENTS = ["a:thing", "a:help", "a:use", "a:new"]


@pytest.mark.parametrize("status", ["coming_soon", "retired"])
def test_an_inert_capability_grants_nothing_and_brings_nothing(status: str) -> None:
    profile = "name: p\ncapabilities: [thing]"
    grant = compiled(catalogue_with(status), profile, events=EVENTS).grants["p"]
    assert grant.events == frozenset()
    assert grant.capabilities == ()
    assert told(grant.warnings) == [f"p0.yaml:2:16 {status}"]
    assert decide(grant, "a:thing") == "no_grant"


@pytest.mark.parametrize("status", ["coming_soon", "retired"])
def test_an_agent_keeps_running_when_something_it_requires_is_inert(status: str) -> None:
    grant = compiled(catalogue_with(status), "name: p\ncapabilities: [user]", events=EVENTS).grants[
        "p"
    ]
    assert grant.events == {"a:use"}
    assert told(grant.warnings) == ["p0.yaml:1:7 broken_requirement"]
    assert f"user is granted but thing, which it requires, is {status}" in grant.warnings[0].message


def test_a_deprecated_capability_works_and_is_warned_about() -> None:
    profile = "name: p\ncapabilities: [thing]"
    grant = compiled(catalogue_with("deprecated"), profile, events=EVENTS).grants["p"]
    assert grant.events == {"a:thing", "a:help"}
    assert told(grant.warnings) == ["p0.yaml:2:16 deprecated"]
    assert grant.warnings[0].hint == "use 'newer'"


@pytest.mark.parametrize("status", ["coming_soon", "retired"])
def test_an_inert_base_grants_nothing(status: str) -> None:
    text = f"""capabilities:
  base: {{description: x, event_patterns: [a:use], always_included: true, status: {status}}}
"""
    assert compiled(text, "{name: p}", events=EVENTS).grants["p"].events == frozenset()


def test_switching_an_inert_capability_off_is_no_mistake() -> None:
    profile = "{name: p, capabilities: {thing: false}}"
    grant = compiled(catalogue_with("retired"), profile, events=EVENTS).grants["p"]
    assert grant.warnings == ()
