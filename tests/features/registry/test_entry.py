"""What an entry is by itself, what may be said of it, and what a declaration never changes."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.registry.entry import (
    MOST_IDS,
    MOST_TAGS,
    TAG_LIMIT,
    Declaration,
    Entry,
    Example,
    declared,
    entry_of,
    tag,
    tags_of,
)
from remit.model.descriptor import Descriptor

TEXTS = st.text(max_size=20)
DECLARATIONS = st.builds(
    Declaration,
    id=st.just("tool:state:get"),
    capability=TEXTS,
    description=TEXTS,
    tags=st.lists(st.text(min_size=1, max_size=20), max_size=4).map(tuple),
    dependencies=st.lists(st.text(min_size=1, max_size=20), max_size=4).map(tuple),
    version=TEXTS,
)


def tool(**more: Any) -> Entry:
    described = Descriptor(
        id="tool:state:get", kind="tool", name="state_get", event="state:get", **more
    )
    found = entry_of(described)
    assert found is not None
    return found


@given(DECLARATIONS)
def test_a_declaration_never_changes_what_is_called(said: Declaration) -> None:
    entry = tool(tags=("Fast",))
    found = declared(entry, said)
    for name in ("id", "event", "layer", "name", "available", "source"):
        assert getattr(found, name) == getattr(entry, name)
    assert set(entry.tags) <= set(found.tags)


@given(DECLARATIONS)
def test_saying_it_twice_says_it_once(said: Declaration) -> None:
    once = declared(tool(), said, by="ann")
    assert declared(once, said, by="ann") == once


@given(DECLARATIONS)
def test_a_declaration_is_the_same_after_it_was_kept(said: Declaration) -> None:
    assert msgspec.json.decode(msgspec.json.encode(said), type=Declaration) == said


def test_an_event_is_its_own_capability_and_its_category_and_server_are_tags() -> None:
    entry = tool(category="Shared State", server="state", tags=("KV",))
    assert (entry.capability, entry.layer) == ("state:get", "base")
    assert entry.tags == ("kv", "shared state", "state")


def test_what_is_away_says_why() -> None:
    entry = tool(available=False, unavailable_because="it is restarting")
    assert (entry.available, entry.unavailable_because) == (False, "it is restarting")


def test_a_skill_helps_with_what_it_is_composed_with() -> None:
    described = Descriptor(id="skill:csv", kind="skill", name="csv", composed_with=("parse_csv",))
    entry = entry_of(described)
    assert entry is not None
    assert (entry.capability, entry.applies_to, entry.event) == ("csv", ("parse_csv",), "")


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"id": ""},
        {"id": "x" * 300},
        {"id": "tool:a", "tags": [""]},
        {"id": "tool:a", "tags": ["x" * (TAG_LIMIT + 1)]},
        {"id": "tool:a", "tags": ["x"] * (MOST_TAGS + 1)},
        {"id": "tool:a", "dependencies": ["x"] * (MOST_IDS + 1)},
        {"id": "tool:a", "variants": {"m": ""}},
        {"id": "tool:a", "examples": [{"given": 1}]},
        {"id": "tool:a", "event": "key:revoke"},
        {"id": "tool:a", "declared_by": "operator"},
    ],
)
def test_what_is_too_long_empty_or_unknown_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(said, Declaration)


def test_an_example_keeps_what_went_in_and_came_out() -> None:
    said = {"id": "tool:a", "examples": [{"input": {"key": "a"}, "output": None, "note": "absent"}]}
    assert msgspec.convert(said, Declaration).examples == (Example({"key": "a"}, None, "absent"),)


@given(st.text(max_size=200))
def test_a_tag_is_one_short_line(text: str) -> None:
    found = tag(text)
    assert len(found) <= TAG_LIMIT
    assert "\n" not in found
    assert tags_of([text, found]) == ((found,) if found else ())
