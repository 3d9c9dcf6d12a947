"""What holds for every catalogue: one mask, agreeing answers, denials that nothing undoes."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.policy.catalogues import (
    CAPABILITIES,
    EVENTS,
    OLD_NAMES,
    PROFILES,
    World,
    compile_world,
    worlds,
)

from remit.kernel.authority.explanation import holders as find_holders
from remit.kernel.authority.fleet import Fleet
from remit.policy.decide import confine, decide
from remit.policy.explain import explain
from remit.policy.plan import plan

EXAMPLES = settings(max_examples=300)
A_PROFILE = st.sampled_from(range(len(PROFILES)))


@EXAMPLES
@given(worlds())
def test_the_list_holds_exactly_what_the_check_allows(world: World) -> None:
    for grant in compile_world(world).grants.values():
        assert grant.events == {e for e in EVENTS if decide(grant, e) == "granted"}


@EXAMPLES
@given(worlds())
def test_bits_and_names_are_the_same_set_and_what_is_shown_is_a_part_of_it(world: World) -> None:
    catalogue = compile_world(world)
    for grant in catalogue.grants.values():
        assert frozenset(catalogue.universe.names_in(grant.bits)) == grant.events
        assert catalogue.universe.bits_of(grant.events) == grant.bits
        assert grant.pinned <= grant.exposed <= grant.events


@EXAMPLES
@given(worlds())
def test_the_explanation_agrees_with_the_mask_on_every_event(world: World) -> None:
    catalogue = compile_world(world)
    for name, grant in catalogue.grants.items():
        for event in EVENTS:
            answer = explain(catalogue, name, event)
            assert answer.allowed == (event in grant.events)
            assert answer.reason == decide(grant, event)
            assert answer.allowed == bool(answer.granted_by and not answer.denied_by)


@EXAMPLES
@given(worlds())
def test_the_reverse_question_agrees_with_the_mask(world: World) -> None:
    catalogue = compile_world(world)
    for event in (*EVENTS, *OLD_NAMES):
        present = OLD_NAMES.get(event, event)
        holders = [name for name, grant in catalogue.grants.items() if present in grant.events]
        assert find_holders(Fleet(), catalogue, event)["profiles"] == sorted(holders)


@EXAMPLES
@given(worlds(), A_PROFILE, st.sampled_from([*EVENTS, *OLD_NAMES, "a:*", "b:*", "old:*", "*"]))
def test_adding_a_denial_never_adds_an_event(world: World, at: int, denial: str) -> None:
    role = world.roles[at]
    stricter = replace(role, denied=(*role.denied, denial))
    changed = replace(world, roles=(*world.roles[:at], stricter, *world.roles[at + 1 :]))
    before, after = compile_world(world).grants, compile_world(changed).grants
    for name, grant in after.items():
        assert grant.events <= before[name].events
        assert grant.claude_tools <= before[name].claude_tools


@EXAMPLES
@given(worlds(), st.data())
def test_adding_a_requirement_never_removes_an_event(world: World, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(CAPABILITIES) - 1))
    required = data.draw(st.sampled_from(CAPABILITIES[:at]))
    unit = world.units[at]
    needier = replace(unit, requires=tuple({*unit.requires, required}))
    changed = replace(world, units=(*world.units[:at], needier, *world.units[at + 1 :]))
    before, after = compile_world(world).grants, compile_world(changed).grants
    for name, grant in before.items():
        assert grant.events <= after[name].events
        assert grant.claude_tools <= after[name].claude_tools


@EXAMPLES
@given(worlds())
def test_nothing_gives_back_what_a_profile_or_what_it_builds_on_denies(world: World) -> None:
    catalogue = compile_world(world)
    for name, lineage in catalogue.lineages.items():
        texts = {text.text for member in lineage for text in member.parts[0].disallowed}
        for event in catalogue.grants[name].events:
            assert event not in texts
            assert "*" not in texts
            assert f"{event.partition(':')[0]}:*" not in texts
        assert not catalogue.grants[name].claude_tools & texts


@EXAMPLES
@given(worlds())
def test_nothing_of_an_unreviewed_capability_is_granted_but_by_a_held_one(world: World) -> None:
    catalogue = compile_world(world)
    for grant in catalogue.grants.values():
        held = 0
        for name in grant.capabilities:
            assert not catalogue.needs_review(grant.profile, name)
            held |= catalogue.own_events[name]
        for name in catalogue.capabilities:
            if catalogue.needs_review(grant.profile, name):
                assert not catalogue.own_events[name] & grant.bits & ~held


@EXAMPLES
@given(worlds(), worlds())
def test_a_plan_applied_to_the_old_grants_gives_the_new_ones(one: World, other: World) -> None:
    before, after = compile_world(one).grants, compile_world(other).grants
    del after[PROFILES[-1]]
    changes = plan(before, after)
    assert changes.unchanged + len(changes.changes) == len(before)
    for name, grant in before.items():
        events, tools = set(grant.events), set(grant.claude_tools)
        shown, pinned, mode = set(grant.exposed), set(grant.pinned), grant.exposure
        change = changes.changes.get(name)
        if change is not None:
            shown = (shown | set(change.tools_shown)) - set(change.tools_hidden)
            pinned = (pinned | set(change.pinned_added)) - set(change.pinned_removed)
            events = (events | set(change.granted)) - set(change.revoked)
            tools = (tools | set(change.tools_granted)) - set(change.tools_revoked)
        expected = after.get(name)
        assert events == (expected.events if expected else set())
        assert tools == (expected.claude_tools if expected else set())
        assert shown == (expected.exposed if expected else set())
        assert pinned == (expected.pinned if expected else set())
        if expected and mode != expected.exposure:
            assert change is not None
            assert change.exposure_changed == (mode, expected.exposure)


@EXAMPLES
@given(worlds(), A_PROFILE, A_PROFILE)
def test_a_confined_child_is_always_under_its_parent(world: World, one: int, two: int) -> None:
    catalogue = compile_world(world)
    child, parent = catalogue.grants[PROFILES[one]], catalogue.grants[PROFILES[two]]
    confined = confine(catalogue, child, parent)
    assert confined.events == child.events & parent.events
    assert confined.claude_tools == child.claude_tools & parent.claude_tools
    assert confined.exposed <= confined.events
    assert confined.pinned == child.pinned & confined.exposed
    assert confined.exposure == child.exposure
    assert confined.bits == child.bits & parent.bits
    for name, value in parent.limits.to_json().items():
        assert confined.limits.to_json()[name] <= value
