"""What mutants of `explain` and `resolve` got away with: reviews of one profile and of another."""

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

from remit.model.composition import Definitions
from remit.policy.catalogue import Catalogue
from remit.policy.compile import compile_definitions
from remit.policy.decide import decide
from remit.policy.explain import explain
from remit.policy.resolve import grant_everything
from remit.policy.review import Approval

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
