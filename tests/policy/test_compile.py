"""Profiles with all they build on: parents, conditions, variables; and no order matters."""

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policy.catalogues import Role, Unit, World, compile_world, universe_of_world, worlds
from tests.policy.texts import CAPABILITIES, compiled, granted, own, refused, told

from remit.config.definitions.files import Files, parse_definitions
from remit.errors import DefinitionError, InvalidDataError, NotFoundError
from remit.model.composition import Scalar
from remit.model.grant import Grant
from remit.policy.compile import compile_definitions, resolve

READER = "{name: reader, capabilities: [state_read]}"
TALKER = "{name: talker, capabilities: [messaging]}"
READ = {"state:get", "state:list"}
TALK = {"message:publish", "agent:send_message"}


def ring(length: int, key: str) -> list[str]:
    return [f"name: p{at}\n{key}: [p{(at + 1) % length}]" for at in range(length)]


@pytest.mark.parametrize("key", ["extends", "mixins"])
def test_a_profile_gets_what_it_builds_on(key: str) -> None:
    assert own(granted(READER, f"{{name: p, {key}: reader}}")) == READ
    assert own(granted(READER, TALKER, f"{{name: p, {key}: [reader, talker]}}")) == READ | TALK


def test_parents_and_mixins_go_together() -> None:
    assert (
        own(granted(READER, TALKER, "{name: p, extends: reader, mixins: [talker]}")) == READ | TALK
    )


def test_a_diamond_is_no_circle() -> None:
    left = "{name: left, extends: reader}"
    right = "{name: right, extends: reader, additional_tools: [web:fetch]}"
    text = CAPABILITIES.replace("security_review_required: true", "security_review_required: false")
    grant = granted(READER, left, right, "{name: p, extends: [left, right]}", capabilities=text)
    assert own(grant) == READ | {"web:fetch"}


def test_a_chain_of_2_000_profiles_is_no_different_from_a_short_one() -> None:
    profiles = [f"{{name: p{at}, extends: p{at + 1}}}" for at in range(1_999)]
    profiles.append("{name: p1999, capabilities: [state_read], disallowed_tools: [state:list]}")
    catalogue = compiled(CAPABILITIES, *profiles)
    assert own(catalogue.grants["p0"]) == {"state:get"}


@pytest.mark.parametrize("length", [1, 2, 50])
@pytest.mark.parametrize("key", ["extends", "mixins"])
def test_a_circle_is_refused_with_the_whole_chain(length: int, key: str) -> None:
    problems = refused(CAPABILITIES, *ring(length, key))
    assert told(problems) == ["p0.yaml:1:7 cycle"]
    members = problems[0].message.removeprefix(f"{key} goes in a circle: ").split(" → ")
    assert members[0] == members[-1] == "p0"
    assert set(members) == {f"p{at}" for at in range(length)}
    assert len(members) == length + 1


def test_a_circle_over_a_parent_and_a_mixin_is_a_circle() -> None:
    problems = refused(CAPABILITIES, "{name: a, extends: b}", "{name: b, mixins: [a]}")
    assert problems[0].message == "extends and mixins goes in a circle: a → b → a"


@pytest.mark.parametrize(
    ("line", "column"),
    [("extends: readr", 10), ("extends: [readr]", 11), ("mixins: [readr]", 10)],
)
def test_an_unknown_profile_is_refused_with_a_suggestion(line: str, column: int) -> None:
    problems = refused(CAPABILITIES, READER, f"name: p\n{line}")
    assert told(problems) == [f"p1.yaml:2:{column} unknown_profile"]
    assert problems[0].hint == "did you mean 'reader'?"


def test_an_unknown_profile_in_a_conditional_mixin_is_refused_even_when_it_does_not_apply() -> None:
    text = """name: p
variables: {deep: {type: boolean, default: false}}
mixins:
  - name: readr
    when: {deep: true}
"""
    assert told(refused(CAPABILITIES, READER, text)) == ["p1.yaml:4:11 unknown_profile"]


def test_two_profiles_of_one_name_are_refused_and_both_places_are_named() -> None:
    problems = refused(CAPABILITIES, READER, READER)
    assert told(problems) == ["p1.yaml:1:8 duplicate_profile"]
    assert "p0.yaml:1:8" in problems[0].message


def test_a_typo_never_becomes_the_minimal_profile() -> None:
    problems = refused(CAPABILITIES, READER, "{name: p, extends: Reader}")
    assert told(problems) == ["p1.yaml:1:20 invalid_name"]


def test_limits_are_the_smallest_of_all_sources() -> None:
    parent = "{name: a, capabilities: [spawning], limits: {max_depth: 9, max_concurrent: 3}}"
    other = "{name: b, limits: {max_children: 4}}"
    child = "{name: p, extends: [a, b], limits: {max_concurrent: 8, max_children: 7}}"
    limits = granted(parent, other, child).limits
    assert limits.to_json() == {"max_children": 4, "max_depth": 2, "max_concurrent": 3}


def test_prompts_are_joined_parents_first() -> None:
    profiles = ("{name: a, prompt: One.}", "{name: m, prompt: Two.}")
    grant = granted(*profiles, "{name: p, extends: a, mixins: [m], prompt: Three.}")
    assert grant.prompt == "One.\n\nTwo.\n\nThree."


SWITCHED = """
name: p
variables:
  mode: {default: quiet, allowed_values: [quiet, loud]}
  level: {type: integer, default: 1}
  deep: {type: boolean, default: false}
components:
  - name: capabilities
    when: {mode: loud}
    inline: [messaging]
  - name: capabilities
    when: {level: 2, deep: true}
    inline: [state_read]
  - name: tool_overrides
    when: {deep: true}
    inline: {disallowed_tools: [message:publish]}
"""


def test_a_component_counts_only_when_its_condition_holds() -> None:
    catalogue = compiled(CAPABILITIES, SWITCHED)
    assert own(catalogue.grants["p"]) == set()
    loud = resolve(catalogue, "p", variables={"mode": "loud"})
    assert own(loud) == {"message:publish", "agent:send_message"}


def test_every_pair_of_a_condition_must_hold() -> None:
    catalogue = compiled(CAPABILITIES, SWITCHED)
    assert own(resolve(catalogue, "p", variables={"level": 2})) == set()
    both = resolve(catalogue, "p", variables={"level": 2, "deep": True})
    assert own(both) == {"state:get", "state:list"}


def test_a_conditional_denial_denies() -> None:
    grant = resolve(compiled(CAPABILITIES, SWITCHED), "p", variables={"mode": "loud", "deep": True})
    assert own(grant) == {"agent:send_message"}


def test_a_conditional_mixin_counts_only_when_its_condition_holds() -> None:
    mixin = "{name: talker, capabilities: [messaging]}"
    text = """
name: p
variables: {team: {default: docs}}
mixins: [{name: talker, when: {team: core}}]
"""
    assert own(granted(mixin, text)) == set()
    assert own(granted(mixin, text.replace("docs", "core"))) != set()


def test_code_in_a_condition_is_a_text_and_nothing_else(tmp_path: Path) -> None:
    code = f"__import__('pathlib').Path('{tmp_path}/was_here').touch()"
    text = f"""
name: p
variables: {{x: {{default: plain}}}}
components:
  - name: capabilities
    when: {{x: "{code}"}}
    inline: [state_read]
"""
    catalogue = compiled(CAPABILITIES, text)
    assert own(catalogue.grants["p"]) == set()
    assert own(resolve(catalogue, "p", variables={"x": code})) == {"state:get", "state:list"}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("when", ["x == 'y'", "[x]", "true", "x"])
def test_an_expression_is_refused_where_a_condition_is_due(when: str) -> None:
    text = f"name: p\ncomponents:\n- name: prompt\n  inline: x\n  when: {when}"
    problems = refused(CAPABILITIES, text)
    assert told(problems) == ["p0.yaml:5:9 wrong_type"]
    assert "expressions are not understood" in problems[0].hint


def test_a_condition_on_an_unknown_variable_is_refused_with_a_suggestion() -> None:
    problems = refused(CAPABILITIES, SWITCHED.replace("{mode: loud}", "{mod: loud}"))
    assert told(problems) == ["p0.yaml:9:12 unknown_variable"]
    assert problems[0].hint == "did you mean 'mode'?"


@pytest.mark.parametrize("value", ["shout", "5", "true"])
def test_a_condition_that_can_never_hold_is_refused(value: str) -> None:
    problems = refused(CAPABILITIES, SWITCHED.replace("{mode: loud}", f"{{mode: {value}}}"))
    assert told(problems) == ["p0.yaml:9:12 invalid_condition"]


def test_true_is_not_one() -> None:
    problems = refused(CAPABILITIES, SWITCHED.replace("level: 2", "level: true"))
    assert [problem.code for problem in problems] == ["invalid_condition"]


REVIEWER = """
name: p
variables:
  team: {type: string, default: core, allowed_values: [core, docs]}
  depth: {type: integer, default: 2}
  share: {type: number, default: 0.5}
  loud: {type: boolean, default: false}
  free: {default: get}
prompt: "Team {{team}} at {{ depth }}, {{share}}, {{loud}}, {{free}}."
additional_tools: ["state:{{free}}"]
"""


def test_defaults_fill_the_blanks() -> None:
    grant = granted(REVIEWER)
    assert grant.prompt == "Team core at 2, 0.5, false, get."
    assert own(grant) == {"state:get"}
    assert grant.variables["team"] == "core"


def test_given_values_fill_the_blanks() -> None:
    catalogue = compiled(CAPABILITIES, REVIEWER)
    values: dict[str, Scalar] = {
        "team": "docs",
        "depth": 7,
        "share": 1,
        "loud": True,
        "free": "set",
    }
    grant = resolve(catalogue, "p", variables=values)
    assert grant.prompt == "Team docs at 7, 1, true, set."
    assert own(grant) == {"state:set"}
    assert own(catalogue.grants["p"]) == {"state:get"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("team", "sales"), ("team", 5), ("depth", "2"), ("depth", 2.5), ("depth", True)),
        *(("share", "half"), ("share", False), ("loud", "true"), ("loud", 1), ("free", 3)),
    ],
)
def test_a_value_that_does_not_fit_its_declaration_is_refused(name: str, value: Scalar) -> None:
    with pytest.raises(InvalidDataError) as caught:
        resolve(compiled(CAPABILITIES, REVIEWER), "p", variables={name: value})
    assert caught.value.details == {"path": f"variables.{name}"}
    assert repr(name) in caught.value.message


def test_an_unknown_variable_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidDataError) as caught:
        resolve(compiled(CAPABILITIES, REVIEWER), "p", variables={"teem": "core"})
    assert caught.value.hint == "did you mean 'team'?"


@pytest.mark.parametrize(
    "value", ["*", "g*", "get:x", "a:*", "", "Get", "get ", " get", "get\n", "{{team}}", "gét", "-"]
)
def test_a_value_never_widens_a_tool_list(value: str) -> None:
    catalogue = compiled(CAPABILITIES, REVIEWER)
    with pytest.raises(DefinitionError) as caught:
        resolve(catalogue, "p", variables={"free": value})
    assert told(caught.value.problems) == ["p0.yaml:10:20 unsafe_value"]


def test_an_empty_value_cannot_turn_a_stem_into_a_namespace() -> None:
    text = 'name: p\nvariables: {x: {default: ""}}\nadditional_tools: ["state:{{x}}*"]'
    assert told(refused(CAPABILITIES, text)) == ["p0.yaml:3:20 unsafe_value"]


def test_a_value_may_complete_a_denial() -> None:
    text = 'name: p\nvariables: {x: {default: delete}}\ndisallowed_tools: ["state:{{x}}"]'
    child = "{name: c, extends: p, capabilities: [state_write]}"
    assert "state:delete" not in granted(text, child).events


def test_a_value_that_makes_a_denial_miss_is_refused() -> None:
    text = 'name: p\nvariables: {x: {default: delete}}\ndisallowed_tools: ["state:{{x}}"]'
    with pytest.raises(DefinitionError) as caught:
        resolve(compiled(CAPABILITIES, text), "p", variables={"x": "delet"})
    assert told(caught.value.problems) == ["p0.yaml:3:20 dead_denial"]


def test_a_value_is_not_filled_in_again() -> None:
    text = "name: p\nvariables: {a: {default: '{{b}}'}, b: {default: secret}}\nprompt: 'x {{a}}'"
    assert granted(text).prompt == "x {{b}}"


@pytest.mark.parametrize(
    ("line", "place"),
    [("prompt: 'x {{teem}}'", "p0.yaml:3:9"), ("additional_tools: ['a:{{teem}}']", "p0.yaml:3:20")],
)
def test_an_undeclared_blank_is_refused_with_a_suggestion(line: str, place: str) -> None:
    problems = refused(CAPABILITIES, f"name: p\nvariables: {{team: {{default: get}}}}\n{line}")
    assert told(problems) == [f"{place} unknown_variable"]
    assert problems[0].hint == "did you mean 'team'?"


@pytest.mark.parametrize(
    "declaration",
    [
        *("{type: integer, default: x}", "{type: boolean, default: 1}", "{default: 5}"),
        *("{default: a, allowed_values: [b]}", "{default: a, allowed_values: [a, 5]}"),
        "{type: integer, default: true}",
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(declaration: str) -> None:
    problems = refused(CAPABILITIES, f"name: p\nvariables:\n  x: {declaration}")
    assert told(problems) == ["p0.yaml:3:3 invalid_variable"]


def declare(name: str, value: str, rest: str = "") -> str:
    return f"{{name: {name}, variables: {{x: {{default: {value}}}}}{rest}}}"


def test_the_nearest_declaration_of_a_variable_counts() -> None:
    profiles = [declare("z", "far"), "{name: b, extends: z}", declare("a", "near", ", extends: b")]
    assert granted(*profiles, "{name: p, extends: a, prompt: '{{x}}'}").prompt == "near"


def test_own_variables_beat_mixins_and_mixins_beat_parents_whatever_they_are_called() -> None:
    for parent, mixin in (("a", "z"), ("z", "a")):
        profiles = [declare(parent, "parent"), declare(mixin, "mixin")]
        rest = f", extends: {parent}, mixins: [{mixin}], prompt: '{{{{x}}}}'"
        assert granted(*profiles, f"{{name: p{rest}}}").prompt == "mixin"
        assert granted(*profiles, declare("p", "own", rest)).prompt == "own"


def test_asking_for_a_profile_that_is_not_there_is_refused_with_a_suggestion() -> None:
    with pytest.raises(NotFoundError) as caught:
        resolve(compiled(CAPABILITIES, "{name: reviewer}"), "reviewr")
    assert caught.value.hint == "did you mean 'reviewer'?"


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
