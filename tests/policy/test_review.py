"""Security review: inert until approved, bound to the definition, and no way around it."""

import pytest
from tests.policy.texts import CAPABILITIES, compiled, event, told

from remit.policy.catalogue import Approval, Catalogue
from remit.policy.decide import decide
from remit.policy.explain import explain

HOLDER = "name: p\ncapabilities: [network]"


def approved(
    catalogue: Catalogue, profile: str, capability: str = "network"
) -> frozenset[Approval]:
    return frozenset({catalogue.approval(profile, capability)})


def test_an_unreviewed_capability_is_pending_and_gives_nothing() -> None:
    grant = compiled(CAPABILITIES, HOLDER).grants["p"]
    assert "web:fetch" not in grant.events | grant.exposed
    assert grant.claude_tools == frozenset()
    assert grant.pending_review == ("network",)
    assert grant.capabilities == ("base",)
    assert decide(grant, "web:fetch") == "review_pending"
    assert told(grant.warnings) == ["p0.yaml:1:7 review_pending"]


def test_an_approved_capability_works() -> None:
    approvals = approved(compiled(CAPABILITIES, HOLDER), "p")
    grant = compiled(CAPABILITIES, HOLDER, approvals=approvals).grants["p"]
    assert "web:fetch" in grant.events
    assert grant.claude_tools == {"WebFetch"}
    assert grant.pending_review == ()


def test_an_approval_counts_for_one_profile_only() -> None:
    approvals = approved(compiled(CAPABILITIES, HOLDER), "p")
    child = "{name: q, extends: p}"
    grants = compiled(CAPABILITIES, HOLDER, child, approvals=approvals).grants
    assert decide(grants["p"], "web:fetch") == "granted"
    assert decide(grants["q"], "web:fetch") == "review_pending"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[web:fetch]", '["web:*"]'),
        ("[web:fetch]", "[web:fetch, state:delete]"),
        ("[WebFetch]", "[WebFetch, Bash]"),
        (
            "security_review_required: true",
            "security_review_required: true\n    requires: [messaging]",
        ),
        (
            "security_review_required: true",
            "security_review_required: true\n    system_prompt: obey",
        ),
        ("security_review_required: true", "security_review_required: true\n    skills: [x]"),
        (
            "security_review_required: true",
            "security_review_required: true\n    mounts: [{path: /a, content: b}]",
        ),
        (
            "security_review_required: true",
            "security_review_required: true\n    resource_limits: {max_depth: 1}",
        ),
        (
            "security_review_required: true",
            "security_review_required: true\n    config_schema: {type: object}",
        ),
    ],
)
def test_a_changed_definition_needs_a_new_approval(before: str, after: str) -> None:
    approvals = approved(compiled(CAPABILITIES, HOLDER), "p")
    changed = compiled(CAPABILITIES.replace(before, after), HOLDER, approvals=approvals)
    assert decide(changed.grants["p"], "web:fetch") == "review_pending"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("description: Reach the outside world", "description: Another sentence"),
        ("\ncapabilities:\n", "\n# moved down a line\n\ncapabilities:\n"),
        ("security_review_required: true", "security_review_required: true\n    tags: [x]"),
    ],
)
def test_an_approval_survives_what_changes_nothing(before: str, after: str) -> None:
    approvals = approved(compiled(CAPABILITIES, HOLDER), "p")
    changed = compiled(CAPABILITIES.replace(before, after), HOLDER, approvals=approvals)
    assert decide(changed.grants["p"], "web:fetch") == "granted"


def test_a_new_handler_in_a_reviewed_capability_needs_a_new_approval() -> None:
    text = "capabilities: {net: {description: x, security_review_required: true}}"
    profile = "{name: p, capabilities: [net]}"
    events = [event("web:fetch", capability="net")]
    before = compiled(text, profile, events=events)
    approvals = approved(before, "p", "net")
    assert compiled(text, profile, events=events, approvals=approvals).grants["p"].events
    more = [*events, event("web:post", capability="net")]
    assert not compiled(text, profile, events=more, approvals=approvals).grants["p"].events


@pytest.mark.parametrize(
    "way",
    [
        "additional_tools: [web:fetch, WebFetch]",
        'additional_tools: ["web:*"]',
        "allowed_tools: [web:fetch]",
        'operator: true\nallowed_tools: ["*"]',
        "components: [{name: ksi_tools, inline: {allowed_tools: [web:fetch, WebFetch]}}]",
        "extends: parent",
        "mixins: [parent]",
    ],
)
def test_a_tool_list_is_no_way_around_the_review(way: str) -> None:
    parent = '{name: parent, additional_tools: ["web:f*", WebFetch]}'
    catalogue = compiled(CAPABILITIES, parent, f"name: p\n{way}")
    grant = catalogue.grants["p"]
    assert "web:fetch" not in grant.events | grant.exposed
    assert "WebFetch" not in grant.claude_tools
    assert grant.pending_review == ("network",)
    assert decide(grant, "web:fetch") == "review_pending"
    assert not explain(catalogue, "p", "web:fetch").allowed


def test_a_requirement_is_no_way_around_the_review() -> None:
    text = (
        CAPABILITIES
        + "  browsing: {description: x, event_patterns: [state:get], requires: [network]}"
    )
    grant = compiled(text, "name: p\ncapabilities: [browsing]").grants["p"]
    assert "state:get" in grant.events
    assert "web:fetch" not in grant.events
    assert grant.pending_review == ("network",)
    assert "broken_requirement" in {warning.code for warning in grant.warnings}


def test_always_included_is_no_way_around_the_review() -> None:
    text = CAPABILITIES.replace(
        "security_review_required: true",
        "security_review_required: true\n    always_included: true",
    )
    assert decide(compiled(text, "{name: p}").grants["p"], "web:fetch") == "review_pending"


def test_a_pending_capability_brings_nothing_that_it_requires() -> None:
    text = CAPABILITIES.replace(
        "security_review_required: true",
        "security_review_required: true\n    requires: [state_write]",
    )
    grant = compiled(text, HOLDER).grants["p"]
    assert grant.events == {"system:health"}


def test_an_event_that_another_held_capability_gives_stays_allowed() -> None:
    text = (
        CAPABILITIES
        + '  reading: {description: x, event_patterns: ["web:*"], claude_tools: [WebFetch]}'
    )
    grant = compiled(text, "{name: p, capabilities: [network, reading]}").grants["p"]
    assert "web:fetch" in grant.events
    assert grant.claude_tools == {"WebFetch"}


def test_what_is_denied_stays_denied_after_the_approval() -> None:
    profile = HOLDER + "\ndisallowed_tools: [web:fetch, WebFetch]"
    approvals = approved(compiled(CAPABILITIES, profile), "p")
    grant = compiled(CAPABILITIES, profile, approvals=approvals).grants["p"]
    assert decide(grant, "web:fetch") == "explicit_deny"
    assert grant.claude_tools == frozenset()


def test_only_what_the_lists_name_of_an_unheld_capability_is_pending() -> None:
    text = CAPABILITIES.replace("[web:fetch]", "[web:fetch, web:post]")
    events = ["web:fetch", "web:post", "system:health"]
    profile = "name: p\nadditional_tools: [web:fetch]"
    grant = compiled(text, profile, events=events).grants["p"]
    assert decide(grant, "web:fetch") == "review_pending"
    assert decide(grant, "web:post") == "no_grant"
