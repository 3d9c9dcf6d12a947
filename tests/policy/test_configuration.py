"""Configurations of capabilities in files: what is given must fit, what is needed be given."""

import pytest
from tests.policy.texts import compiled, granted, refused, told, underlined

CAPS = """
capabilities:
  plain: {description: a, event_patterns: [state:get]}
  loose: {description: b, event_patterns: [state:list], config_schema: {type: object}}
  tuned:
    description: c
    event_patterns: [state:set]
    config_schema: {type: object, required: [level], properties: {level: {type: integer}}}
    aliases: [old_tuned]
  strict:
    description: d
    event_patterns: [state:delete]
    config_schema: {minProperties: 1}
  above: {description: e, requires: [tuned]}
"""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("capabilities: [tuned]", "p0.yaml:2:16 missing_config", id="named-alone"),
        pytest.param("capabilities: {tuned: true}", "p0.yaml:2:16 missing_config", id="a-flag"),
        pytest.param("capabilities: [old_tuned]", "p0.yaml:2:16 missing_config", id="an-old-name"),
        pytest.param("capabilities: [{ref: tuned}]", "p0.yaml:2:22 missing_config", id="an-entry"),
        pytest.param(
            "capabilities: [{ref: tuned, config: {}}]", "p0.yaml:2:22 missing_config", id="empty"
        ),
        pytest.param(
            "capabilities: [{ref: tuned, config: {levle: 1}}]",
            "p0.yaml:2:37 invalid_config",
            id="a-typo",
        ),
        pytest.param("capabilities: [strict]", "p0.yaml:2:16 missing_config", id="another-rule"),
        pytest.param("capabilities: [above]", "p0.yaml:2:16 missing_config", id="required-by-it"),
        pytest.param(
            "capabilities: [{ref: plain, config: {x: 1}}]",
            "p0.yaml:2:37 invalid_config",
            id="without-a-schema",
        ),
        pytest.param(
            "components: [{name: capabilities, inline: [tuned]}]",
            "p0.yaml:2:44 missing_config",
            id="in-a-component",
        ),
    ],
)
def test_it_is_an_error_at_its_place(text: str, problem: str) -> None:
    assert told(refused(CAPS, f"name: p\n{text}\n")) == [problem]


def test_the_error_says_what_is_missing_and_how_to_write_it() -> None:
    (problem,) = refused(CAPS, "name: p\ncapabilities: [above]\n")
    assert problem.message == (
        "'tuned', which 'above' requires, needs a configuration: \"level\" is a required property"
    )
    assert "{ref: tuned, config: {…}}" in problem.hint
    assert underlined(problem) == "above"


@pytest.mark.parametrize(
    "text",
    [
        "capabilities: [loose, {ref: plain, config: {}}]",
        "capabilities: [{ref: tuned, config: {level: 1}}, above]",
        "capabilities: {tuned: false}",
        "capabilities: [{ref: strict, config: {x: 1}}]",
    ],
)
def test_what_is_given_or_not_needed_is_fine(text: str) -> None:
    granted(f"name: p\n{text}\n", capabilities=CAPS)


def test_a_child_that_loses_the_configuration_of_its_parent_is_refused() -> None:
    a = "{name: a, capabilities: [{ref: tuned, config: {level: 1}}]}"
    compiled(CAPS, a, "{name: b, extends: a, capabilities: [tuned]}")
    off = "{name: b, extends: a, capabilities: {tuned: false}}"
    found = refused(CAPS, a, off, "{name: c, extends: b, capabilities: [tuned]}")
    assert told(found) == ["p2.yaml:1:38 missing_config"]
