"""Composition files: the three forms, and every way to get them wrong."""

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.policy.texts import files_of, told

from remit.cli.definitions import composition_schema
from remit.config.definitions.files import parse_definitions
from remit.model.composition import Composition
from remit.model.limits import Limits

FULL = """name: reviewer
description: Reviews
operator: false
extends: [one, two]
mixins: [three, {name: four, when: {team: core}}]
variables:
  team: {type: string, default: core, allowed_values: [core, docs], description: Which}
components:
  - name: capabilities
    inline: {state_write: true, spawning: false}
  - name: tool_overrides
    inline: {additional_tools: [a:b], disallowed_tools: [a:c]}
    when: {team: docs}
  - name: ksi_tools
    inline: {allowed_tools: [a:d]}
  - name: prompt
    inline: In a component
  - name: limits
    inline: {max_depth: 1}
capabilities: [plain, {ref: rich, config: {deep: [1, {x: ~}]}}]
allowed_tools: a:e
additional_tools: [a:f, Bash]
disallowed_tools: ["a:*"]
limits: {max_calls_per_minute: 60}
prompt: Hello {{team}}
"""


def read(text: str) -> tuple[Composition | None, list[str]]:
    """What a text defines, and its problems as places and codes."""
    definitions = parse_definitions(files_of("capabilities: {}", text))
    found = definitions.compositions
    return found[0] if found else None, told(definitions.problems)


def problems_of(text: str) -> list[str]:
    return [problem.removeprefix("p0.yaml:") for problem in read(text)[1]]


def test_every_key_is_read() -> None:
    found, problems = read(FULL)
    assert problems == []
    assert found is not None
    assert (found.name, found.description, found.operator) == ("reviewer", "Reviews", False)
    assert [ref.name for ref in found.extends] == ["one", "two"]
    assert [mixin.ref.name for mixin in found.mixins] == ["three", "four"]
    assert [c.value for c in found.mixins[1].when] == ["core"]
    (team,) = found.variables
    assert (team.name, team.default, team.allowed_values) == ("team", "core", ("core", "docs"))


def test_components_and_short_form_become_parts() -> None:
    found, _ = read(FULL)
    assert found is not None
    flags, overrides, explicit, prompt, limits, own = found.parts
    assert [(f.capability, f.on) for f in flags.flags] == [
        ("state_write", True),
        ("spawning", False),
    ]
    assert [t.text for t in overrides.allowed + overrides.disallowed] == ["a:b", "a:c"]
    assert [(c.variable, c.value) for c in overrides.when] == [("team", "docs")]
    assert [t.text for t in explicit.allowed] == ["a:d"]
    assert prompt.prompt is not None
    assert prompt.prompt.text == "In a component"
    assert limits.limits == Limits(max_depth=1)
    assert [t.text for t in own.allowed] == ["a:e", "a:f", "Bash"]
    assert [t.text for t in own.disallowed] == ["a:*"]
    assert own.limits == Limits(max_calls_per_minute=60)
    assert [(f.capability, f.config) for f in own.flags] == [
        ("plain", None),
        ("rich", {"deep": [1, {"x": None}]}),
    ]


@pytest.mark.parametrize("flag", ["no", "on", "yes", "1", "0", '"true"', "True", "~", "[]", "{}"])
def test_a_capability_is_switched_by_true_and_false_only(flag: str) -> None:
    assert problems_of(f"name: p\ncapabilities: {{a: {flag}}}") == ["2:19 wrong_type"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1 empty_file"),
        ("# nothing", "1:1 empty_file"),
        ("- a", "1:1 wrong_type"),
        ("text", "1:1 wrong_type"),
        ("description: x", "1:1 missing_key"),
        ("name: Bad Name", "1:7 invalid_name"),
        ("name: 5", "1:7 wrong_type"),
        ("name: ../etc", "1:7 invalid_name"),
        ("name: p\nextend: a", "2:1 unknown_key"),
        ("name: p\nname: q", "2:1 duplicate_key"),
        ("name: p\noperator: yes", "2:11 wrong_type"),
        ("name: p\nextends: {a: b}", "2:10 wrong_type"),
        ("name: p\nextends: [5]", "2:11 wrong_type"),
        ("name: p\nextends: [-a]", "2:11 invalid_name"),
        ("name: p\nmixins: [{nam: a, name: b}]", "2:11 unknown_key"),
        ("name: p\nmixins: [{when: {}}]", "2:10 missing_key"),
        ("name: p\nmixins: [[a]]", "2:10 wrong_type"),
        ("name: p\ncapabilities: state_read", "2:15 wrong_type"),
        ("name: p\ncapabilities: [5]", "2:16 wrong_type"),
        ("name: p\ncapabilities: [[a]]", "2:16 wrong_type"),
        ("name: p\ncapabilities: [{ref: a, conf: {}}]", "2:25 unknown_key"),
        ("name: p\ncapabilities: [{ref: a, config: 5}]", "2:33 wrong_type"),
        ("name: p\ncapabilities: [{config: {}}]", "2:16 missing_key"),
        ("name: p\ncapabilities: {5: true}", "2:16 wrong_type"),
        ("name: p\ncapabilities: {A: true}", "2:16 invalid_name"),
        ("name: p\nallowed_tools: {a: b}", "2:16 wrong_type"),
        ("name: p\nadditional_tools: [5]", "2:20 wrong_type"),
        ("name: p\ndisallowed_tools: [~]", "2:20 wrong_type"),
        ("name: p\ndisallowed_tools:", "2:18 wrong_type"),
        ("name: p\nlimits: {max_deph: 1}", "2:10 unknown_key"),
        ("name: p\nlimits: {max_depth: -1}", "2:21 out_of_range"),
        ("name: p\nlimits: {max_depth: 010}", "2:21 wrong_type"),
        ("name: p\nlimits: 5", "2:9 wrong_type"),
        ("name: p\nprompt: 5", "2:9 wrong_type"),
        ("name: p\nprompt: [a]", "2:9 wrong_type"),
        ("name: p\nvariables: [a]", "2:12 wrong_type"),
        ("name: p\nvariables: {a: {default: x, typ: string}}", "2:29 unknown_key"),
        ("name: p\nvariables: {a: {default: x, type: text}}", "2:35 unknown_value"),
        ("name: p\nvariables: {a: {type: string}}", "2:16 missing_key"),
        ("name: p\nvariables: {a: {default: [x]}}", "2:26 wrong_type"),
        ("name: p\nvariables: {A-b: {default: x}}", "2:13 invalid_name"),
        ("name: p\nvariables: {a: {default: x, allowed_values: x}}", "2:45 wrong_type"),
    ],
)
def test_a_mistake_is_told_at_its_place(text: str, expected: str) -> None:
    assert problems_of(text) == [expected]


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        ("text", "3:3 wrong_type"),
        ("{inline: {a: true}}", "3:3 missing_key"),
        ("{name: capabilitys, inline: {a: true}}", "3:10 unknown_value"),
        ("{name: prompt}", "3:3 component_content"),
        ("{name: prompt, inline: x, source: y}", "3:3 component_content"),
        ("{name: prompt, inline: x, wen: {}}", "3:29 unknown_key"),
        ("{name: prompt, inline: x, when: 5}", "3:35 wrong_type"),
        ("{name: prompt, inline: x, when: {a: [1]}}", "3:39 wrong_type"),
        ("{name: prompt, inline: [x]}", "3:26 wrong_type"),
        ("{name: prompt, source: 5}", "3:26 wrong_type"),
        ("{name: prompt, source: [x]}", "3:26 wrong_type"),
        ("{name: limits, inline: {max_depth: x}}", "3:38 wrong_type"),
        ("{name: capabilities, inline: x}", "3:32 wrong_type"),
        ("{name: ksi_tools, inline: {allowed: [a:b]}}", "3:30 unknown_key"),
        ("{name: tool_overrides, inline: [a:b]}", "3:34 wrong_type"),
        ("{name: [prompt], inline: x}", "3:10 wrong_type"),
    ],
)
def test_a_mistake_in_a_component_is_told_at_its_place(component: str, expected: str) -> None:
    assert problems_of(f"name: p\ncomponents:\n- {component}") == [expected]


def test_typos_get_suggestions() -> None:
    text = "name: p\nextend: a\ncomponents: [{name: capabilitys, inline: []}]"
    definitions = parse_definitions(files_of("capabilities: {}", text))
    hints = [problem.hint for problem in definitions.problems]
    assert hints == ["did you mean 'extends'?", "did you mean 'capabilities'?"]


def test_a_profile_with_a_mistake_keeps_its_name_so_that_others_can_refer_to_it() -> None:
    found, problems = read("name: p\nlimits: 5\nextends: [a]")
    assert problems == ["p0.yaml:2:9 wrong_type"]
    assert found is not None
    assert (found.name, [ref.name for ref in found.extends]) == ("p", ["a"])


def test_the_schema_for_editors_agrees_with_the_loader() -> None:
    validator = Draft202012Validator(composition_schema())
    assert list(validator.iter_errors(yaml.safe_load(FULL))) == []
    for text in ("name: p\nextend: a", "name: Bad Name", "name: p\ncapabilities: {a: 1}", "{}"):
        assert list(validator.iter_errors(yaml.safe_load(text)))
        assert problems_of(text)
