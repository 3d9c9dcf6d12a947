"""The starter content, as a newcomer meets it."""

import itertools
import json

import jsonschema
import pytest
import yaml
from tests.cli.contract import EVENTS
from tests.cli.shell import Shell

from remit.config.definitions.files import starter_dir
from remit.features.cards.library import BUILT_IN

LADDER = [
    "minimal",
    "observer",
    "communicator",
    "executor",
    "coordinator",
    "orchestrator",
    "administrator",
]
# Patterns whose handlers come with later issues: there are none any more.
DEAD_PATTERNS: list[str] = []


def test_the_starter_has_no_errors(shell: Shell) -> None:
    report = shell.json("check")
    assert (report["ok"], report["errors"]) == (True, [])
    assert {warning["code"] for warning in report["warnings"]} <= {"dead_pattern", "review_pending"}


def test_the_starter_drifts_only_where_handlers_are_still_to_come(shell: Shell) -> None:
    report = shell.json("lint", code=1 if DEAD_PATTERNS else 0)
    assert sorted({finding["name"] for finding in report.pop("dead_patterns")}) == DEAD_PATTERNS
    assert report == {
        "unmapped_events": [],
        "unused_capabilities": [],
        "undefined_capabilities": [],
        "other_capability": [],
        "handler_mistakes": [],
        "deprecated_in_use": [],
        "broken_requirements": [],
        "tool_name_conflicts": [],
        "exposure_mistakes": [],
        "commands_not_allowed": [],
    }


def test_every_step_of_the_ladder_grants_more_than_the_one_below(shell: Shell) -> None:
    events = str(shell.write("events.txt", "\n".join(EVENTS)))
    steps = [shell.json("resolve", name, "--events", events) for name in LADDER]
    for below, above in itertools.pairwise(steps):
        assert set(below["allowed_events"]) < set(above["allowed_events"]), above["profile"]
        assert set(below["capabilities"]) <= set(above["capabilities"])
        assert set(below["allowed_claude_tools"]) <= set(above["allowed_claude_tools"])


def test_no_step_below_the_administrator_may_give_keys(shell: Shell) -> None:
    for event in ("key:add", "key:list", "key:revoke", "key:token", "key:revoke_token"):
        assert shell.json("who-can", event)["profiles"] == ["administrator"]


def test_an_observer_changes_nothing(shell: Shell) -> None:
    everything = shell.json("resolve", "observer")["allowed_events"]
    assert shell.json("resolve", "observer", "--max-effect", "read")["allowed_events"] == everything


def test_the_two_forms_of_the_coordinator_mean_nearly_the_same(shell: Shell) -> None:
    events = str(shell.write("events.txt", "\n".join(EVENTS)))
    short = shell.json("resolve", "base_multi_agent", "--events", events)
    listed = shell.json("resolve", "base_multi_agent_explicit", "--events", events)
    assert set(short["allowed_events"]) ^ set(listed["allowed_events"]) == {
        "agent:terminate",
        "conversation:create",
        "state:delete",
    }


def test_the_schema_of_a_manifest_accepts_both_spellings_and_refuses_a_typo(shell: Shell) -> None:
    schema = json.loads(shell.run("schema", "manifest").out)
    validator = jsonschema.Draft202012Validator(schema)
    manifest = {"name": "x", "kind": "tool", "description": "y", "tags": ["a"]}
    for keys in ({"display_name": "X"}, {"displayName": "X", "inputSchema": {}}):
        validator.validate(manifest | keys)
    for key, value in (("displayname", "X"), ("kind", "tol"), ("capabilities", [])):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(manifest | {key: value})


def test_the_schema_of_a_card_accepts_the_cards_that_ship_and_refuses_what_the_reader_refuses(
    shell: Shell,
) -> None:
    schema = json.loads(shell.run("schema", "card").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    shipped = sorted(BUILT_IN.glob("*.md"))
    assert shipped
    for path in shipped:
        validator.validate(yaml.safe_load(path.read_text().split("---\n")[1]))
    card = {"id": "x", "name": "X", "description": "y", "triggers": {"keywords": ["a"]}}
    validator.validate(card | {"estimatedTokens": 600})
    for key, value in (
        ("priority", 101),
        ("token_budget", 2001),
        ("id", "../x"),
        ("triggers", {"keywords": []}),
        ("triggers", {"keywords": ["a"], "confidence_threshold": 1.5}),
        ("triggers", {"keywords": ["a"], "time_of_day": ["25:00-06:00"]}),
        ("capabilities", []),
        ("priorty", 1),
    ):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(card | {key: value})


@pytest.mark.parametrize(
    ("kind", "pattern"), [("capability", "capabilities.yaml"), ("composition", "compositions/*")]
)
def test_the_schemas_for_editors_accept_the_starter_and_refuse_a_typo(
    shell: Shell, kind: str, pattern: str
) -> None:
    schema = json.loads(shell.run("schema", kind).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = sorted(starter_dir().glob(pattern))
    assert files
    for path in files:
        content = yaml.safe_load(path.read_text())
        validator.validate(content)
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(content | {"descripton": "a typo"})


def test_no_two_categories_differ_in_an_ending_or_in_capitals() -> None:
    catalogue = yaml.safe_load((starter_dir() / "capabilities.yaml").read_text())
    names = {one["category"] for one in catalogue["capabilities"].values()}
    assert len({name.casefold().removesuffix("s") for name in names}) == len(names)
