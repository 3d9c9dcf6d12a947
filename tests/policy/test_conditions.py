"""`when`: declared values are compared, nothing is ever evaluated."""

from pathlib import Path

import pytest
from tests.policy.texts import CAPABILITIES, compiled, granted, own, refused, told

from remit.policy.compile import resolve

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
