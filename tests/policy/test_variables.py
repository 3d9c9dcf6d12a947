"""Variables: typed blanks in prompts and tool lists, which never widen a grant."""

import pytest
from tests.policy.texts import CAPABILITIES, compiled, granted, own, refused, told

from remit.errors import InvalidDataError, NotFoundError
from remit.model.composition import Scalar
from remit.model.place import DefinitionError
from remit.policy.compile import resolve

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
