"""Our decisions against those of Cedar, an engine that we did not write, on random catalogues."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy import cedar
from tests.policy.catalogues import CAPABILITIES, PROFILES, World, compile_world, worlds

from remit.policy.catalogue import Catalogue


def decisions(catalogue: Catalogue) -> cedar.Decisions:
    return {name: {*grant.events, *grant.claude_tools} for name, grant in catalogue.grants.items()}


@settings(max_examples=60)
@given(worlds())
def test_cedar_reads_resolved_grants_as_we_do(world: World) -> None:
    catalogue = compile_world(world)
    policies = [
        f'permit(principal == Profile::"{name}", action, resource == {kind}::"{thing}");'
        for name, grant in catalogue.grants.items()
        for kind, things in (("Event", grant.events), ("Tool", grant.claude_tools))
        for thing in sorted(things)
    ]
    entities = [*cedar.things(world), *(cedar.entity("Profile", name) for name in PROFILES)]
    assert cedar.ask(policies, entities, list(PROFILES)) == decisions(catalogue)


@settings(max_examples=300)
@given(worlds(), st.sets(st.sampled_from(CAPABILITIES)))
def test_cedar_resolves_raw_definitions_as_we_do(world: World, approved: set[str]) -> None:
    policies, entities = cedar.unresolved(world, approved)
    expected = cedar.ask(policies, entities, list(PROFILES))
    assert decisions(compile_world(world, approved=approved)) == expected
