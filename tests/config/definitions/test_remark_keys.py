"""The keys `version`, `author` and `metadata`: what is understood, and that it grants nothing."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from msgspec import structs
from tests.fakes import Desk, built_in_handlers, texts
from tests.policy.catalogues import World, definitions_of, universe_of_world, worlds
from tests.policy.texts import CAPABILITIES, compiled, refused, told

from remit.cli.definitions import capability_schema, composition_schema
from remit.config.definitions.capabilities import MAX_METADATA_BYTES, MAX_METADATA_DEPTH
from remit.policy.compile import compile_definitions

REMARKS = "version: 1.10\nauthor: the team\nmetadata: {tags: [a, 1, true, ~], of: {who: x}}\n"
READ = {"version": "1.10", "author": "the team"}
METADATA = {"tags": ["a", 1, True, None], "of": {"who": "x"}}
CATALOGUE = """\
  base: {description: Feet, event_patterns: ["system:*", "capability:*", "composition:*"],
    always_included: true, version: 2, author: ann, metadata: {ticket: REM-1}}
  plain: {description: Nothing is said about it, event_patterns: [state:get]}
"""


def test_they_are_kept_as_they_were_written() -> None:
    found = compiled(CAPABILITIES, REMARKS + "name: p\n").compositions["p"]
    assert (found.version, found.author, found.metadata) == (*READ.values(), METADATA)


async def test_capability_get_and_composition_get_show_them() -> None:
    desk = Desk(built_in_handlers(), texts(CATALOGUE, clerk=REMARKS, bare=""))
    for who in ("operator", "clerk"):
        told = await desk.ask(who, "composition:get", {"name": "clerk"})
        assert told.items() >= (READ | {"metadata": METADATA}).items()
        base = await desk.ask(who, "capability:get", {"id": "base"})
        assert base.items() >= {"version": "2", "author": "ann"}.items()
        assert base["metadata"] == {"ticket": "REM-1"}
    bare = await desk.ask("operator", "composition:get", {"name": "bare"})
    assert not {"version", "author", "metadata"} & bare.keys()


async def test_what_nobody_wrote_is_absent_and_not_empty() -> None:
    desk = Desk(built_in_handlers(), texts(CATALOGUE))
    unsaid = {"icon", "category", "version", "author", "metadata", "inert", "config_schema"}
    plain = await desk.ask("operator", "capability:get", {"id": "plain"})
    assert not (unsaid | {"system_prompt"}) & plain.keys()
    listed = (await desk.ask("operator", "capability:list"))["items"]
    assert not unsaid & next(one for one in listed if one["id"] == "plain").keys()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("metadata: [a]", "p0.yaml:2:11 wrong_type", id="a-list"),
        pytest.param("metadata: x", "p0.yaml:2:11 wrong_type", id="text"),
        pytest.param("metadata: {a: 1.0e999}", "p0.yaml:2:15 out_of_range", id="no-number"),
        pytest.param(
            f"metadata: {{a: {'x' * MAX_METADATA_BYTES}}}", "p0.yaml:2:11 too_large", id="too-large"
        ),
        pytest.param(
            "metadata: " + "{a: " * MAX_METADATA_DEPTH + "[]" + "}" * MAX_METADATA_DEPTH,
            f"p0.yaml:2:{11 + 4 * MAX_METADATA_DEPTH} too_deep",
            id="too-deep",
        ),
        pytest.param("metadata: {a: 1, a: 2}", "p0.yaml:2:18 duplicate_key", id="a-key-twice"),
        pytest.param("version: true", "p0.yaml:2:10 wrong_type", id="no-version"),
        pytest.param("author: 5", "p0.yaml:2:9 wrong_type", id="no-author"),
        pytest.param("metdata: {}", "p0.yaml:2:1 unknown_key", id="misspelt"),
    ],
)
def test_what_is_not_understood_is_an_error_at_its_place(text: str, problem: str) -> None:
    assert told(refused(CAPABILITIES, f"name: p\n{text}\n")) == [problem]


def test_the_schemas_for_editors_know_them() -> None:
    said: dict[str, Any] = {"version": 1.1, "author": "ann", "metadata": {"x": [{"y": None}]}}
    Draft202012Validator(composition_schema()).validate({"name": "p"} | said)
    unit = {"description": "d"} | said
    Draft202012Validator(capability_schema()).validate({"capabilities": {"x": unit}})


METADATAS = st.dictionaries(
    st.sampled_from(["capabilities", "allowed_tools", "max_effect", "extends", "x"]),
    st.recursive(
        st.sampled_from(["*", "a:set", "k1", True, None, 5]),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=6,
    ),
)


@settings(max_examples=150)
@given(worlds(), METADATAS)
def test_no_remark_ever_changes_a_grant(world: World, metadata: dict[str, Any]) -> None:
    plain = definitions_of(world)
    said: dict[str, Any] = {"metadata": metadata, "author": "*", "version": "9"}
    remarked = structs.replace(
        plain,
        capabilities=tuple(structs.replace(one, **said) for one in plain.capabilities),
        compositions=tuple(structs.replace(one, **said) for one in plain.compositions),
    )
    universe = universe_of_world(world)
    before, after = (compile_definitions(one, universe) for one in (plain, remarked))
    assert {n: structs.asdict(g) for n, g in before.grants.items()} == {
        n: structs.asdict(g) for n, g in after.grants.items()
    }
    # Neither does a remark make an approval old: what was looked at is the same.
    assert before.scopes == after.scopes
