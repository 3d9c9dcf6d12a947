"""capabilities.yaml: every key, and every way to get it wrong."""

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.policy.texts import files_of, told

from remit.cli.definitions import capability_schema
from remit.config.definitions.capabilities import CAPABILITY_FIELDS
from remit.config.definitions.files import parse_definitions
from remit.model.capability import Capability, Mount
from remit.model.limits import Limits

FULL = """version: 1
capabilities:
  thing:
    description: Does a thing
    event_patterns: [a:b, "a:c*"]
    claude_tools: [WebFetch]
    requires: other
    always_included: true
    mcp_tools: false
    resource_limits: {max_children: 5, max_depth: 2, max_calls_per_minute: 60,
      max_concurrent: 1, max_tokens_per_turn: 0}
    security_review_required: true
    name: A Thing
    category: Things
    icon: star
    tags: [x, y]
    features: [fast]
    status: deprecated
    version: "2"
    author: ann
    metadata: {team: core}
    aliases: [old_thing]
    replaces: [older_thing]
    system_prompt: |
      Use it.
    inject: relevant
    skills: [s]
    config_schema: {type: object}
    mounts: [{path: /x, content: hello, read_only: false}]
  other: {description: Another}
"""


def read(text: str) -> tuple[dict[str, Capability], list[str]]:
    """What a text defines, and its problems as places and codes."""
    definitions = parse_definitions(files_of(text))
    return {c.id: c for c in definitions.capabilities}, told(definitions.problems)


def problems_of(body: str) -> list[str]:
    """The problems of one capability whose keys start at line 3, without the file's name."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    _, problems = read(f"capabilities:\n  thing:\n{lines}")
    return [problem.removeprefix("capabilities.yaml:") for problem in problems]


def test_every_key_is_read() -> None:
    found, problems = read(FULL)
    assert problems == []
    thing = found["thing"]
    assert [str(pattern) for pattern in thing.event_patterns or ()] == ["a:b", "a:c*"]
    assert [ref.name for ref in (*thing.claude_tools, *thing.requires)] == ["WebFetch", "other"]
    assert [ref.name for ref in (*thing.aliases, *thing.replaces)] == ["old_thing", "older_thing"]
    assert (thing.always_included, thing.mcp_tools, thing.security_review_required) == (
        True,
        False,
        True,
    )
    assert thing.resource_limits == Limits(5, 2, 60, 1, 0)
    assert (thing.name, thing.category, thing.icon, thing.version) == (
        "A Thing",
        "Things",
        "star",
        "2",
    )
    assert (thing.tags, thing.features, thing.skills) == (("x", "y"), ("fast",), ("s",))
    assert (thing.status, thing.inject, thing.system_prompt) == (
        "deprecated",
        "relevant",
        "Use it.\n",
    )
    assert (thing.config_schema, thing.mounts) == (
        {"type": "object"},
        (Mount("/x", b"hello", read_only=False),),
    )


def test_the_text_above_holds_every_key_there_is() -> None:
    assert all(f"    {key}: " in FULL for key in CAPABILITY_FIELDS)


def test_absent_patterns_leave_it_to_the_handlers_and_an_empty_list_is_exact() -> None:
    found, _ = read("capabilities: {a: {description: x}, b: {description: x, event_patterns: []}}")
    assert found["a"].event_patterns is None
    assert found["b"].event_patterns == ()


def test_places_are_those_of_the_names() -> None:
    thing = read(FULL)[0]["thing"]
    assert str(thing.place) == "capabilities.yaml:3:3"
    assert thing.event_patterns is not None
    assert str(thing.event_patterns[1].place) == "capabilities.yaml:5:27"
    assert str(thing.requires[0].place) == "capabilities.yaml:7:15"


FLAGS = ["always_included", "mcp_tools", "security_review_required"]
TEXTS = ["name", "category", "icon", "author", "system_prompt", "description"]
LISTS = ["event_patterns", "claude_tools", "tags", "features", "skills", "mounts"]


@pytest.mark.parametrize("key", FLAGS)
@pytest.mark.parametrize(
    "value", ["no", "yes", "on", "1", '"true"', "True", "[true]", "{}", "", "~"]
)
def test_only_true_and_false_are_flags(key: str, value: str) -> None:
    column = len(key) + 7 if value else len(key) + 6
    assert problems_of(f"description: x\n{key}: {value}") == [f"4:{column} wrong_type"]


@pytest.mark.parametrize("key", TEXTS)
@pytest.mark.parametrize("value", ["5", "true", "1.5", "[x]", "{a: b}", "~"])
def test_only_text_is_text(key: str, value: str) -> None:
    rest = "" if key == "description" else "\ndescription: x"
    assert problems_of(f"{key}: {value}{rest}") == [f"3:{len(key) + 7} wrong_type"]


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("value", ["x", "5", "{a: b}", "~"])
def test_only_a_list_is_a_list(key: str, value: str) -> None:
    assert problems_of(f"description: x\n{key}: {value}") == [f"4:{len(key) + 7} wrong_type"]


@pytest.mark.parametrize("key", LISTS)
@pytest.mark.parametrize("value", ["[x y, 5]", "[[a], ~]"])
def test_every_bad_entry_of_a_list_is_told(key: str, value: str) -> None:
    assert problems_of(f"description: x\n{key}: {value}")


@pytest.mark.parametrize("key", ["requires", "aliases", "replaces"])
def test_names_of_capabilities_are_checked(key: str) -> None:
    at = len(key) + 8
    assert problems_of(f"description: x\n{key}: [Bad, 5, a b]") == [
        f"4:{at} invalid_name",
        f"4:{at + 5} wrong_type",
        f"4:{at + 8} invalid_name",
    ]


@pytest.mark.parametrize("value", ["-1", "1.5", "010", "12:30:45", '"5"', "no", "1_000", "[]"])
def test_only_a_whole_number_is_a_limit(value: str) -> None:
    (problem,) = problems_of(f"description: x\nresource_limits: {{max_depth: {value}}}")
    assert problem in {"4:34 wrong_type", "4:34 out_of_range"}


def test_an_unreadable_pattern_is_told_at_its_place() -> None:
    assert problems_of("description: x\nevent_patterns: [a:b, Agent:spawn, 'a*b:c', 7]") == [
        "4:27 invalid_pattern",
        "4:40 invalid_pattern",
        "4:49 wrong_type",
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("description: x\nrequire: [a]", "4:5 unknown_key"),
        ("description: x\nresource_limits: {max_child: 1}", "4:23 unknown_key"),
        ("event_patterns: [a:b]", "3:5 missing_key"),
        ("description: x\nstatus: availble", "4:13 unknown_value"),
        ("description: x\nstatus: [available]", "4:13 wrong_type"),
        ("description: x\ninject: sometimes", "4:13 unknown_value"),
        ("description: x\nconfig_schema: []", "4:20 wrong_type"),
        ("description: x\nresource_limits: 5", "4:22 wrong_type"),
        ("description: x\ndescription: y", "4:5 duplicate_key"),
        ("description: x\nclaude_tools: [a:b]", "4:20 invalid_name"),
    ],
)
def test_other_mistakes_are_told_at_their_places(body: str, expected: str) -> None:
    assert problems_of(body) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1 empty_file"),
        ("# nothing", "1:1 empty_file"),
        ("[]", "1:1 wrong_type"),
        ("text", "1:1 wrong_type"),
        ("~", "1:1 wrong_type"),
        ("version: 1", "1:1 missing_key"),
        ("version: 2\ncapabilities: {}", "1:10 out_of_range"),
        ("version: one\ncapabilities: {}", "1:10 wrong_type"),
        ("capabilities: []", "1:15 wrong_type"),
        ("capabilities:", "1:14 wrong_type"),
        ("capability: {}\ncapabilities: {}", "1:1 unknown_key"),
        ("capabilities: {a: ~}", "1:19 wrong_type"),
        ("capabilities: {Bad Name: {description: x}}", "1:16 invalid_name"),
        ("capabilities: {true: {description: x}}", "1:16 wrong_type"),
        ("capabilities: {5: {description: x}}", "1:16 wrong_type"),
        ("capabilities: {a: {description: x}, a: {description: y}}", "1:37 duplicate_key"),
    ],
)
def test_a_file_that_is_none_is_refused_at_its_place(text: str, expected: str) -> None:
    assert read(text)[1] == [f"capabilities.yaml:{expected}"]


def test_a_typo_in_a_key_or_value_gets_a_suggestion() -> None:
    text = "capabilities: {a: {descriptoin: x, description: x, status: availble}}"
    hints = [problem.hint for problem in parse_definitions(files_of(text)).problems]
    assert hints == ["did you mean 'description'?", "did you mean 'available'?"]


def test_a_text_too_long_is_refused() -> None:
    assert problems_of(f"description: {'x' * 70_000}") == ["3:18 too_large"]
    assert problems_of(f"description: x\nname: {'x' * 201}") == ["4:11 too_large"]


def test_the_schema_for_editors_agrees_with_the_loader() -> None:
    validator = Draft202012Validator(capability_schema())
    assert list(validator.iter_errors(yaml.safe_load(FULL))) == []
    for body in ("{}", "{description: 5}", "{description: x, requires: [A]}", "{descr: x}"):
        text = f"capabilities: {{a: {body}}}"
        assert list(validator.iter_errors(yaml.safe_load(text)))
        assert read(text)[1]


@pytest.mark.parametrize(
    ("mount", "problem"),
    [
        ("{content: x}", "missing_key"),
        ("{path: /a}", "missing_key"),
        ("{path: a, content: x}", "invalid_path"),
        ("{path: /a/../b, content: x}", "invalid_path"),
        ("{path: /, content: x}", "invalid_path"),
        ("{path: /a, content: x, encoding: base64}", "invalid_content"),
        ("{path: /a, content: x, encoding: utf8}", "unknown_value"),
        ("{path: /a, content: x, read_only: yes}", "wrong_type"),
        ("{path: /a, content: 1}", "wrong_type"),
        ("{path: /a, content: x, mode: rw}", "unknown_key"),
        ("/a", "wrong_type"),
    ],
)
def test_a_mount_that_could_not_be_read_is_a_mistake(mount: str, problem: str) -> None:
    found = problems_of(f"mounts: [{mount}]\ndescription: x")
    assert [(one[:2], one.rpartition(" ")[2]) for one in found] == [("3:", problem)]


def test_mounts_are_few_and_small() -> None:
    many = ", ".join(f"{{path: /{number}, content: x}}" for number in range(33))
    assert problems_of(f"description: x\nmounts: [{many}]") == ["4:13 too_large"]
    large = f"{{path: /a, content: {'x' * 65_537}}}"
    assert problems_of(f"description: x\nmounts: [{large}]") == ["4:14 too_large"]


def test_a_mount_may_be_given_as_base64() -> None:
    found, _ = read(
        "capabilities: {a: {description: x, "
        'mounts: [{path: /a, content: "/w==", encoding: base64}]}}'
    )
    assert found["a"].mounts == (Mount("/a", b"\xff"),)
