"""The keys `exposure` and `pinned`: what is understood, and what the schema says of it."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.policy.texts import CAPABILITIES, refused, told

from remit.cli.definitions import composition_schema


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("exposure: Turn", "p0.yaml:2:11 unknown_value", id="another-word"),
        pytest.param("exposure: [all]", "p0.yaml:2:11 wrong_type", id="a-list"),
        pytest.param("pinned: {state:get: true}", "p0.yaml:2:9 wrong_type", id="a-mapping"),
        pytest.param("pinned: [1]", "p0.yaml:2:10 wrong_type", id="a-number"),
        pytest.param("pined: [state:get]", "p0.yaml:2:1 unknown_key", id="misspelt"),
    ],
)
def test_what_is_not_understood_is_an_error_at_its_place(text: str, problem: str) -> None:
    assert told(refused(CAPABILITIES, f"name: p\n{text}\n")) == [problem]


@pytest.mark.parametrize("mode", ["all", "discovered", "turn"])
def test_the_schema_knows_the_keys_and_their_components(mode: str) -> None:
    Draft202012Validator(composition_schema()).validate(
        {
            "name": "p",
            "exposure": mode,
            "pinned": ["state:get", "agent:*"],
            "components": [
                {"name": "exposure", "inline": mode},
                {"name": "pinned", "inline": "state:get", "when": {"x": 1}},
            ],
        }
    )


@pytest.mark.parametrize("wrong", [{"exposure": "some"}, {"exposure": None}, {"pinned": [1]}])
def test_the_schema_refuses_what_the_reader_refuses(wrong: dict[str, Any]) -> None:
    assert not Draft202012Validator(composition_schema()).is_valid({"name": "p"} | wrong)
