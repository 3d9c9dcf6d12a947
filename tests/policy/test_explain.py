"""Why a profile may or may not use an event, each rule with its place."""

import pytest
from hypothesis import given
from tests.policy.catalogues import (
    EVENTS,
    PROFILES,
    World,
    capability_of,
    composition_of,
    universe_of_world,
    worlds,
)
from tests.policy.texts import CAPABILITIES, compiled, event

from remit.errors import NotFoundError
from remit.policy.catalogue import Approval, Catalogue, Definitions
from remit.policy.compile import compile_definitions
from remit.policy.decide import decide
from remit.policy.explain import Explanation, explain
from remit.policy.resolve import grant_everything

CATALOGUE = """capabilities:
  reading:
    description: x
    event_patterns: [state:get]
  writing:
    description: x
    event_patterns: ["state:s*"]
    requires: [reading]
  both:
    description: x
    event_patterns: [state:get, state:set]
"""
PARENT = "name: parent\ncapabilities: [writing]\ndisallowed_tools:\n  - state:delete"
CHILD = "name: p\nextends: parent\nadditional_tools: [agent:spawn, 'state:*']"


def why(name: str, *profiles: str, capabilities: str = CATALOGUE) -> Explanation:
    return explain(compiled(capabilities, *(profiles or (PARENT, CHILD))), "p", name)


def test_a_grant_names_capability_path_pattern_and_place() -> None:
    rules = [
        rule.to_json() for rule in why("state:set", PARENT, "{name: p, extends: parent}").granted_by
    ]
    assert rules == [
        {
            "capability": "writing",
            "path": ["p", "parent:2", "writing"],
            "pattern": "state:s*",
            "file": "capabilities.yaml",
            "line": 7,
            "column": 22,
        }
    ]


def test_the_path_shows_the_chain_of_requires() -> None:
    (rule,) = why("state:get", "{name: p, capabilities: [writing]}").granted_by
    assert rule.path == ("p:1", "writing", "reading")


def test_the_path_never_leads_through_a_capability_that_waits_for_review() -> None:
    text = CAPABILITIES.replace("claude_tools: [WebFetch]", "requires: [messaging]")
    profile = "{name: p, capabilities: [network, spawning]}"
    (rule,) = why("message:publish", profile, capabilities=text).granted_by
    assert rule.path == ("p:1", "spawning", "messaging")


def test_a_list_entry_is_a_rule_with_the_place_in_the_profile() -> None:
    (rule,) = why("agent:spawn").granted_by
    assert (rule.capability, rule.pattern, str(rule.place)) == (None, "agent:spawn", "p1.yaml:3:20")


def test_every_rule_that_grants_is_named() -> None:
    rules = why(
        "state:set", "{name: p, capabilities: [writing, both], additional_tools: [state:set]}"
    )
    assert [(rule.capability, rule.pattern) for rule in rules.granted_by] == [
        ("both", "state:set"),
        ("writing", "state:s*"),
        (None, "state:set"),
    ]


def test_a_denial_is_named_beside_the_grants_that_it_beats() -> None:
    answer = why("state:delete")
    assert (answer.allowed, answer.reason) == (False, "explicit_deny")
    assert [rule.pattern for rule in answer.granted_by] == ["state:*"]
    (denial,) = answer.denied_by
    assert (denial.pattern, str(denial.place)) == ("state:delete", "p0.yaml:4:5")


def test_every_denial_is_named() -> None:
    answer = why(
        "state:get", '{name: p, disallowed_tools: ["state:*", state:get, "*", agent:spawn]}'
    )
    assert [rule.pattern for rule in answer.denied_by] == ["state:*", "state:get", "*"]


def test_an_unknown_event_is_told_with_its_neighbours() -> None:
    answer = why("state:gett")
    assert answer.reason == "unknown_event"
    found = [(miss.event, miss.capability) for miss in answer.near_misses]
    assert ("state:get", "reading") in found


def test_a_missing_grant_names_the_capabilities_that_would_give_it() -> None:
    answer = why("state:get", "{name: p}")
    assert answer.reason == "no_grant"
    assert [m.event for m in answer.near_misses] == ["state:get"]  # it exists: nothing is similar
    assert answer.repair is not None
    assert answer.repair.capability == answer.near_misses[0].capability
    assert answer.repair.line == f"capabilities: {{{answer.repair.capability}: true}}"


def test_a_granted_event_has_no_near_misses() -> None:
    assert why("state:set").near_misses == ()


def test_gibberish_has_no_near_misses() -> None:
    assert why("zzzz:qqqq").near_misses == ()


def test_a_pending_review_is_named() -> None:
    answer = why("web:fetch", "{name: p, capabilities: [network]}", capabilities=CAPABILITIES)
    assert (answer.reason, answer.pending) == ("review_pending", ("network",))
    listed = why("web:fetch", "{name: p, additional_tools: [web:fetch]}", capabilities=CAPABILITIES)
    assert (listed.reason, listed.pending) == ("review_pending", ("network",))
    assert listed.granted_by == ()


def test_what_a_pending_capability_would_bring_by_what_it_requires_waits_with_it() -> None:
    text = (
        "capabilities:\n"
        "  admin: {description: d, requires: [books, gone], event_patterns: [state:set],"
        " security_review_required: true}\n"
        "  books: {description: d, event_patterns: [state:get]}\n"
        "  gone: {description: d, event_patterns: [state:delete], status: retired}\n"
    )
    catalogue = compiled(text, "{name: p, capabilities: [admin]}")
    for name in ("state:set", "state:get"):
        answer = explain(catalogue, "p", name)
        assert (answer.reason, answer.pending) == ("review_pending", ("admin",))
        assert (answer.reason, answer.repair) == (decide(catalogue.grants["p"], name), None)
    assert explain(catalogue, "p", "state:delete").reason == "no_grant"


def test_an_event_asked_for_by_its_old_name_is_explained_by_its_present_one() -> None:
    events = [event("state:get", aliases=("store:read",))]
    catalogue = compiled(CATALOGUE, "{name: p, capabilities: [reading]}", events=events)
    answer = explain(catalogue, "p", "store:read")
    assert (answer.event, answer.reason) == ("state:get", "granted")


def test_a_rule_written_with_an_old_name_is_found() -> None:
    events = [event("state:read", aliases=("state:get",))]
    catalogue = compiled(CATALOGUE, "{name: p, capabilities: [reading]}", events=events)
    (rule,) = explain(catalogue, "p", "state:read").granted_by
    assert rule.pattern == "state:get"


def test_a_handler_is_the_rule_where_the_capability_lists_nothing() -> None:
    text = "capabilities: {a: {description: x}}"
    catalogue = compiled(
        text, "{name: p, capabilities: [a]}", events=[event("x:y", capability="a")]
    )
    (rule,) = explain(catalogue, "p", "x:y").granted_by
    assert (rule.capability, rule.pattern) == ("a", "x:y")


def test_given_variables_are_explained() -> None:
    text = "name: p\nvariables: {x: {default: get}}\nadditional_tools: ['state:{{x}}']"
    catalogue = compiled(CATALOGUE, text)
    assert explain(catalogue, "p", "state:get").allowed
    assert not explain(catalogue, "p", "state:get", {"x": "list"}).allowed
    assert explain(catalogue, "p", "state:list", {"x": "list"}).allowed


def test_a_profile_that_is_not_there_is_refused_with_a_suggestion() -> None:
    with pytest.raises(NotFoundError) as caught:
        explain(compiled(CATALOGUE, "{name: reviewer}"), "reviewr", "state:get")
    assert caught.value.hint == "did you mean 'reviewer'?"


def test_the_answer_has_the_shape_of_the_contract() -> None:
    answer = why("state:delete").to_json()
    assert answer.keys() >= {
        *("allowed", "reason", "subject", "event", "revision"),
        *("granted_by", "denied_by", "near_misses"),
    }
    assert answer["denied_by"][0].keys() >= {"pattern", "file", "line", "column"}


HOLDER = "name: p\ncapabilities: [network]"
LISTER = "name: p\nadditional_tools: [web:fetch]"


def reviewed(profile: str) -> Catalogue:
    """The same definitions with the review of `network` approved in p only."""
    approval = compiled(CAPABILITIES, profile).approval("p", "network")
    other = profile.replace("name: p", "name: q")
    return compiled(CAPABILITIES, profile, other, approvals=frozenset({approval}))


def test_an_approval_names_the_profile_and_the_capability_it_is_for() -> None:
    catalogue = compiled(CAPABILITIES, HOLDER)
    approval = catalogue.approval("p", "network")
    assert approval == Approval("p", "network", catalogue.scopes["network"])


@pytest.mark.parametrize("profile", [HOLDER, LISTER])
def test_why_reads_the_approval_of_its_own_profile(profile: str) -> None:
    catalogue = reviewed(profile)
    found = explain(catalogue, "p", "web:fetch")
    assert found.allowed
    assert found.granted_by
    assert found.pending == ()
    assert decide(catalogue.grants["p"], "web:fetch") == "granted"


@pytest.mark.parametrize("profile", [HOLDER, LISTER])
def test_why_never_reads_the_approval_of_another_profile(profile: str) -> None:
    catalogue = reviewed(profile)
    found = explain(catalogue, "q", "web:fetch")
    assert found.reason == "review_pending" == decide(catalogue.grants["q"], "web:fetch")
    assert found.pending == ("network",)
    assert found.granted_by == ()


def test_a_review_that_was_approved_is_not_what_a_pattern_waits_for() -> None:
    catalogue = reviewed('name: p\ncapabilities: [network]\nadditional_tools: ["web:*"]')
    assert explain(catalogue, "p", "web:nothing").pending == ()
    assert explain(catalogue, "q", "web:fetch").pending == ("network",)


def approved_in(world: World, profile: str) -> Catalogue:
    """A world with every review approved, in one profile alone."""
    definitions = Definitions(
        tuple(map(capability_of, world.units)), tuple(map(composition_of, world.roles))
    )
    universe = universe_of_world(world)
    before = compile_definitions(definitions, universe)
    approvals = frozenset(before.approval(profile, name) for name in before.scopes)
    return compile_definitions(definitions, universe, approvals=approvals)


@given(worlds())
def test_why_agrees_with_the_mask_when_one_profile_alone_is_approved(world: World) -> None:
    catalogue = approved_in(world, PROFILES[0])
    for profile, grant in catalogue.grants.items():
        for name in EVENTS:
            assert explain(catalogue, profile, name).reason == decide(grant, name)


def test_an_explanation_says_whom_it_is_about_and_which_revision_decided() -> None:
    catalogue = reviewed(HOLDER)
    answer = explain(catalogue, "q", "web:fetch").to_json()
    assert answer["subject"] == "q"
    assert answer["revision"] == catalogue.revision
    assert isinstance(answer["revision"], int)
    assert answer["pending_review"] == ["network"]


def test_what_is_granted_waits_for_nothing_even_if_a_review_speaks_of_it() -> None:
    text = CAPABILITIES + "  fetching:\n    description: d\n    event_patterns: [web:fetch]\n"
    catalogue = compiled(text, "name: p\ncapabilities: [network, fetching]")
    found = explain(catalogue, "p", "web:fetch")
    assert found.allowed
    assert found.pending == ()


def test_the_place_of_an_event_without_patterns_is_its_handler_or_else_its_capability() -> None:
    text = "capabilities:\n  own:\n    description: d\n"
    catalogue = compiled(
        text, "name: p\ncapabilities: [own]", events=[event("a:b", capability="own")]
    )
    (rule,) = explain(catalogue, "p", "a:b").granted_by
    assert rule.place.file == "capabilities.yaml"


def test_why_names_several_events_that_are_alike() -> None:
    events = ["state:get", "state:set", "state:let", "state:net", "system:health"]
    text = "capabilities:\n  base:\n    description: d\n    event_patterns: [system:health]\n"
    catalogue = compiled(text, "name: p", events=events)
    misses = explain(catalogue, "p", "state:bet").near_misses
    assert len(misses) > 1
    assert {miss.event for miss in misses} <= set(events)


def test_the_operator_holds_every_capability_of_the_revision_under_no_profile() -> None:
    catalogue = compiled(CAPABILITIES, HOLDER)
    grant = grant_everything(catalogue)
    assert grant.profile == ""
    assert grant.revision == catalogue.revision
    assert grant.capabilities == tuple(sorted(catalogue.capabilities))
    assert grant.events == frozenset(catalogue.universe.names)


def test_why_names_the_shortest_chain_when_several_lead_to_a_capability() -> None:
    text = (
        "capabilities:\n"
        "  far: {description: d, event_patterns: [state:get]}\n"
        "  middle: {description: d, requires: [far]}\n"
        "  top: {description: d, requires: [far, middle]}\n"
    )
    catalogue = compiled(text, "name: p\ncapabilities: [top]")
    (rule,) = explain(catalogue, "p", "state:get").granted_by
    assert rule.path == ("p:2", "top", "far")
