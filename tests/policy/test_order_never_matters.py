"""The order of files, keys and list entries never changes a grant."""

import json
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.catalogues import Role, Unit, World, compile_world, universe_of_world, worlds

from remit.config.definitions.files import Files
from remit.config.definitions.parse import parse_definitions
from remit.model.grant import Grant
from remit.policy.compile import compile_definitions

RANDOMS = st.randoms(use_true_random=False)


def content(unit: Unit) -> dict[str, object]:
    """A capability as an operator writes it."""
    keys: dict[str, object] = {
        "description": "x",
        "claude_tools": list(unit.tools),
        "requires": list(unit.requires),
        "always_included": unit.always,
        "mcp_tools": unit.shown,
        "security_review_required": unit.reviewed,
        "status": unit.status,
        "resource_limits": {} if unit.max_depth is None else {"max_depth": unit.max_depth},
    }
    return keys if unit.patterns is None else keys | {"event_patterns": list(unit.patterns)}


def composition(role: Role) -> dict[str, object]:
    """A profile as an operator writes it, half in the short form and half in components."""
    return {
        "name": role.name,
        "extends": list(role.extends),
        "mixins": list(role.mixins),
        "disallowed_tools": list(role.denied),
        "pinned": list(role.pinned),
        "components": [
            {"name": "capabilities", "inline": dict(role.flags)},
            {"name": "tool_overrides", "inline": {"additional_tools": list(role.allowed)}},
            *([{"name": "exposure", "inline": role.exposure}] if role.exposure else []),
        ],
    }


def shuffled(value: object, random: Random) -> object:
    """The same value with the keys of mappings and the entries of lists in another order."""
    if isinstance(value, dict):
        pairs = [(key, shuffled(inner, random)) for key, inner in value.items()]
        random.shuffle(pairs)
        return dict(pairs)
    if isinstance(value, list):
        items = [shuffled(item, random) for item in value]
        random.shuffle(items)
        return items
    return value


def grants_of(world: World, random: Random) -> dict[str, Grant]:
    """Write the world as files in a random order, read it back and compile it."""
    catalogue = {"capabilities": {unit.name: content(unit) for unit in world.units}}
    files = Files(catalogue="capabilities.yaml")
    files.contents["capabilities.yaml"] = json.dumps(shuffled(catalogue, random)).encode()
    for at in random.sample(range(len(world.roles)), len(world.roles)):
        name = f"{random.randint(0, 999):03}{at}.yaml"
        files.compositions.append(name)
        files.contents[name] = json.dumps(shuffled(composition(world.roles[at]), random)).encode()
    return compile_definitions(parse_definitions(files), universe_of_world(world)).grants


@settings(max_examples=150)
@given(worlds(), RANDOMS)
def test_whatever_the_order_the_grants_are_the_same(world: World, random: Random) -> None:
    expected = compile_world(world).grants
    found = grants_of(world, random)
    assert found.keys() == expected.keys()
    for name, grant in found.items():
        other = expected[name]
        assert grant.events == other.events
        assert grant.exposed == other.exposed
        assert grant.exposure == other.exposure
        assert grant.pinned == other.pinned
        assert grant.claude_tools == other.claude_tools
        assert grant.limits == other.limits
        assert grant.capabilities == other.capabilities
        assert grant.pending_review == other.pending_review
        assert grant.denied_events == other.denied_events
        assert set(grant.denied) == set(other.denied)
