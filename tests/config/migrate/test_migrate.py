"""ProfileMigration: the smallest set of capabilities and overrides that grants exactly the same."""

from collections.abc import Iterator
from itertools import chain, combinations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.policy.catalogues import (
    CAPABILITIES,
    EVENTS,
    PROFILES,
    TOOLS,
    World,
    compile_world,
    universe_of_names,
    worlds,
)
from tests.policy.texts import compiled, event

from remit.config.definitions.files import parse_definitions, read_files
from remit.config.migrate.migrate import ProfileMigration, migrate
from remit.config.migrate.proof import MAX_EXACT, Need, Piece, cheapest, score
from remit.model.composition import Composition, Condition, Part, Variable
from remit.policy.catalogue import Catalogue, Definitions
from remit.policy.compile import compile_definitions, resolve

EXAMPLES = settings(max_examples=150)

CATALOGUE = """
capabilities:
  base: {description: Base, event_patterns: [system:health], always_included: true}
  state_read: {description: Read, event_patterns: [state:get, state:list]}
  state_write:
    description: Write
    event_patterns: [state:set, state:delete]
    requires: [state_read]
  messaging: {description: Talk, event_patterns: ["message:*"]}
  spawning:
    description: Spawn
    event_patterns: [agent:spawn, agent:terminate]
    requires: [messaging]
    resource_limits: {max_children: 5}
  network:
    description: Outside
    event_patterns: [web:fetch]
    claude_tools: [WebFetch]
    security_review_required: true
  old_state:
    description: Old
    event_patterns: [state:get, state:list, state:set]
    status: deprecated
  hidden: {description: Not shown, event_patterns: [key:add, key:list], mcp_tools: false}
"""
NAMES = (
    *("system:health", "state:get", "state:list", "state:set", "state:delete", "web:fetch"),
    *("message:publish", "message:read", "agent:spawn", "agent:terminate", "key:add", "key:list"),
)


def migrated(
    *profiles: str, catalogue: str = CATALOGUE, events: tuple[str, ...] = NAMES
) -> ProfileMigration:
    """The migration of the first profile."""
    found = compiled(catalogue, *profiles, events=events)
    composition = next(c for c in found.compositions.values() if c.place.file == "p0.yaml")
    return migrate(found, composition)


def said(migration: ProfileMigration) -> tuple[list[str], list[str], list[str]]:
    answer = migration.to_json()
    assert answer["same"] is True
    return answer["capabilities"], answer["additional_tools"], answer["disallowed_tools"]


def test_the_starter_example_needs_three_capabilities_and_one_denial(root: Path) -> None:
    files = read_files(root / "capabilities.yaml", root / "compositions")
    definitions = parse_definitions(files)
    names = ["system:health", "agent:spawn", "message:publish", "state:get"]
    catalogue = compile_definitions(definitions, universe_of_names(names))
    found = migrate(catalogue, catalogue.compositions["base_multi_agent_explicit"])
    # By hand: the agent events need one entry, the three state events two (no capability gives
    # just them), conversation:create one; nothing smaller says the same.
    assert said(found) == (["conversations", "spawn_agents", "state_write"], [], ["state:delete"])
    assert found.limits_changed == {"max_children": [None, 5], "max_depth": [None, 2]}


def test_a_list_that_is_a_capability_becomes_it() -> None:
    found = migrated("name: p\nallowed_tools: [state:get, state:list, system:health]")
    assert said(found) == (["state_read"], [], [])


def test_an_entry_that_no_capability_pays_for_stays_an_addition() -> None:
    found = migrated("name: p\nallowed_tools: [state:get, Bash]")
    assert said(found) == ([], ["Bash", "state:get"], [])


def test_an_event_without_a_handler_is_kept_too() -> None:
    found = migrated("name: p\nallowed_tools: [state:get, state:list, later:event]")
    assert said(found) == (["state_read"], ["later:event"], [])


def test_a_capability_is_not_chosen_for_its_absent_handlers() -> None:
    found = migrated(
        "name: p\nallowed_tools: [state:set, state:get]", events=("state:set", "state:get")
    )
    assert said(found) == ([], ["state:get", "state:set"], [])


def test_a_wildcard_is_replaced_only_by_one_at_least_as_broad() -> None:
    assert said(migrated('name: p\nallowed_tools: ["message:*"]')) == (["messaging"], [], [])
    assert said(migrated('name: p\nallowed_tools: ["state:*"]')) == ([], ["state:*"], [])
    assert said(migrated('name: p\nallowed_tools: ["message:p*"]')) == ([], ["message:p*"], [])


def test_deprecated_and_reviewed_capabilities_are_never_chosen() -> None:
    found = migrated(
        "name: p\nallowed_tools: [state:get, state:list, state:set, web:fetch, WebFetch]"
    )
    assert "old_state" not in found.capabilities
    # What waits for a review stays listed, so that a later approval works as before.
    assert found.additional_tools == ("WebFetch", "web:fetch")
    assert "network" not in found.capabilities


def test_a_capability_that_tool_lists_do_not_show_is_not_chosen_for_shown_events() -> None:
    found = migrated("name: p\nallowed_tools: [key:add, key:list]")
    assert said(found) == ([], ["key:add", "key:list"], [])


def test_events_that_are_only_pushed_are_migrated_like_others() -> None:
    text = "capabilities: {k: {description: d, event_patterns: [a:call, a:push]}}"
    events = [event("a:call"), event("a:push", pushed=True)]
    catalogue = compiled(text, "{name: p, allowed_tools: [a:call, a:push]}", events=events)
    assert said(migrate(catalogue, catalogue.compositions["p"])) == (["k"], [], [])


def test_what_is_listed_at_once_is_the_same_after_a_migration() -> None:
    text = "name: p\nallowed_tools: [state:get, state:list]\nexposure: turn\npinned: [state:get]\n"
    found = migrated(text)
    assert found.capabilities == ("state_read",)
    part = found.composition.parts[0]
    assert part.exposure is not None
    assert (part.exposure.mode, [pin.text for pin in part.pinned]) == ("turn", ["state:get"])


def test_flags_denials_and_entries_with_variables_stay() -> None:
    text = """
name: p
variables: {team: {default: core}}
capabilities: {messaging: true}
allowed_tools: [state:get, state:list, "team:{{team}}"]
disallowed_tools: [message:read]
"""
    found = migrated(text)
    assert said(found) == (["messaging", "state_read"], ["team:{{team}}"], ["message:read"])


def test_a_list_under_a_condition_stays_and_is_not_relied_upon() -> None:
    text = """
name: p
variables: {mode: {default: wide, allowed_values: [wide, narrow]}}
components:
  - name: ksi_tools
    inline: {allowed_tools: [state:get, state:list, state:set]}
  - name: tool_overrides
    when: {mode: wide}
    inline: {additional_tools: [state:delete]}
"""
    # Denying state:delete would also take away what the condition adds.
    assert said(migrated(text)) == (["state_read"], ["state:set"], [])


def test_a_profile_that_builds_on_it_does_not_notice() -> None:
    parent = "name: parent\nallowed_tools: [state:get, state:list, state:set]"
    child = "name: child\nextends: parent\nadditional_tools: [state:delete]"
    assert said(migrated(parent))[2] == ["state:delete"]
    assert said(migrated(parent, child)) == (["state_read"], ["state:set"], [])


def test_a_capability_that_a_child_switches_off_is_not_chosen() -> None:
    parent = "name: parent\nallowed_tools: [state:get, state:list]"
    child = "name: child\nextends: parent\ncapabilities: {state_read: false}"
    assert said(migrated(parent, child)) == ([], ["state:get", "state:list"], [])


def test_a_parent_that_a_child_meets_again_beside_it_may_switch_off_too() -> None:
    parent = "name: parent\nmixins: quiet\nallowed_tools: [state:get, state:list]"
    quiet = "name: quiet\ncapabilities: {state_read: false}"
    child = "name: child\nextends: [parent, quiet]"
    assert said(migrated(parent, quiet)) == (["state_read"], [], [])
    assert said(migrated(parent, quiet, child)) == ([], ["state:get", "state:list"], [])


@EXAMPLES
@given(worlds())
def test_nobody_gets_more_or_less_whatever_is_migrated(world: World) -> None:
    before = compile_world(world)
    for name in PROFILES:
        after = _replaced(before, migrate(before, before.compositions[name]))
        for profile, grant in before.grants.items():
            new = after.grants[profile]
            assert (new.events, new.claude_tools) == (grant.events, grant.claude_tools)
            assert new.exposed == grant.exposed


@EXAMPLES
@given(worlds(), st.lists(st.booleans(), min_size=24, max_size=24))
def test_nobody_gets_more_or_less_under_any_condition(world: World, when: list[bool]) -> None:
    """As above, with parts and mixins that hold only for one value of a variable."""
    plain = compile_world(world)
    conditional = [
        _conditional(composition, iter(when[at * 6 : at * 6 + 6]))
        for at, composition in enumerate(plain.compositions.values())
    ]
    definitions = Definitions(tuple(plain.capabilities.values()), tuple(conditional))
    before = compile_definitions(definitions, plain.universe)
    for name in PROFILES:
        after = _replaced(before, migrate(before, before.compositions[name]))
        for profile, mode in product(before.grants, ("on", "off", "other")):
            old = resolve(before, profile, variables={"mode": mode})
            new = resolve(after, profile, variables={"mode": mode})
            assert (new.events, new.claude_tools) == (old.events, old.claude_tools)


def _conditional(composition: Composition, when: Iterator[bool]) -> Composition:
    """Split the only part into four and put some of them, and some mixins, under a condition."""
    condition = (Condition("mode", "on", composition.place),)
    part = composition.parts[0]
    half = len(part.allowed) // 2
    parts = (
        Part(flags=part.flags),
        Part(allowed=part.allowed[:half]),
        Part(allowed=part.allowed[half:]),
        Part(disallowed=part.disallowed),
    )
    return replace(
        composition,
        variables=(Variable("mode", composition.place, default="on"),),
        parts=tuple(replace(part, when=condition if next(when) else ()) for part in parts),
        mixins=tuple(
            replace(mixin, when=condition if next(when) else ()) for mixin in composition.mixins
        ),
    )


def _replaced(catalogue: Catalogue, migration: ProfileMigration) -> Catalogue:
    compositions = {**catalogue.compositions, migration.profile: migration.composition}
    definitions = Definitions(tuple(catalogue.capabilities.values()), tuple(compositions.values()))
    return compile_definitions(definitions, catalogue.universe)


@EXAMPLES
@given(worlds(), st.lists(st.sampled_from([*EVENTS, *TOOLS]), min_size=1, max_size=7, unique=True))
def test_nothing_smaller_says_the_same(world: World, names: list[str]) -> None:
    role = replace(world.roles[0], allowed=tuple(names), denied=(), flags=())
    units = tuple(
        replace(unit, shown=True, reviewed=False, status="available") for unit in world.units
    )
    world = replace(world, units=units, roles=(role,))
    catalogue = compile_world(world)
    found = migrate(catalogue, catalogue.compositions[role.name])
    price = len(found.capabilities) + len(found.additional_tools) + len(found.disallowed_tools)
    assert price == min(_price(world, subset) for subset in _subsets())


def _subsets() -> list[tuple[str, ...]]:
    sizes = range(len(CAPABILITIES) + 1)
    return list(chain.from_iterable(combinations(CAPABILITIES, size) for size in sizes))


def _price(world: World, chosen: tuple[str, ...]) -> int:
    """What a choice costs, counted from grants and not by the migration's own arithmetic."""
    role = world.roles[0]
    bare = replace(role, allowed=(), flags=tuple((name, True) for name in chosen))
    target = compile_world(world).grants[role.name]
    given = compile_world(replace(world, roles=(bare,))).grants[role.name]
    loose = len(target.events ^ given.events) + len(target.claude_tools ^ given.claude_tools)
    return len(chosen) + loose


def test_a_large_group_of_overlapping_pieces_is_solved_within_bounds() -> None:
    count = MAX_EXACT * 3
    pieces = {f"k{at:03}": Piece(0b111 << at, 1 << (200 + at)) for at in range(count)}
    need = Need((1 << count) - 1, pieces)
    chosen = cheapest(need)
    assert score(need, chosen)[0] <= score(need, ())[0]


def test_exact_search_beats_a_greedy_choice() -> None:
    # Greedy takes the large middle piece first and then needs both others as well.
    pieces = {"left": Piece(0b000111), "middle": Piece(0b011110), "right": Piece(0b111000)}
    assert cheapest(Need(0b111111, pieces)) == ("left", "right")


@pytest.mark.parametrize("text", ["name: p", "name: p\ncapabilities: {state_read: true}"])
def test_a_profile_without_a_list_has_nothing_to_migrate(text: str) -> None:
    found = migrated(text)
    assert (found.chosen, found.denied) == ((), ())
