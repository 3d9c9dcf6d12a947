"""What the meta-tool costs, and what a full list would cost."""

import msgspec
import pytest
from tests.features.discovery.catalogues import skill, tool
from tests.text.test_counting import COUNTERS, needs_search

from remit.features.discovery.engine import full_dump_tokens
from remit.model.descriptor import Descriptor, Parameter, meta_tool
from remit.text.counting import CharsCounter, make_counter

CHARS = CharsCounter()


def no_content(_: Descriptor) -> str:
    raise FileNotFoundError(2, "No such file or directory", "/secret/place")


@needs_search
def test_the_meta_tool_costs_at_most_ninety_tokens() -> None:
    text = msgspec.json.encode(meta_tool()).decode()
    assert make_counter().count(text) <= 90
    assert all(counter.count(text) <= 90 for counter in COUNTERS)


def test_it_asks_for_a_query_and_may_be_told_a_kind_and_a_category() -> None:
    schema = meta_tool()["input_schema"]
    assert set(schema["properties"]) == {"query", "kind", "category"}
    assert schema["required"] == ["query"]
    assert schema["properties"]["kind"]["enum"] == ["tool", "skill", "extension", "channel"]


def test_a_tool_costs_its_definition_and_a_skill_its_text() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    found = tool("find", "Find it", full_schema=schema)
    listed = {"name": "find", "description": "Find it", "input_schema": schema}
    cost = CHARS.count(msgspec.json.encode(listed).decode())
    assert full_dump_tokens(found, CHARS, no_content) == cost
    assert full_dump_tokens(skill("s"), CHARS, lambda _: "x" * 700) == 200


def test_a_tool_without_a_schema_costs_its_parameters() -> None:
    plain = tool("find")
    asking = tool("find", parameters=(Parameter("query", "string", "What to find", required=True),))
    assert full_dump_tokens(asking, CHARS, no_content) > full_dump_tokens(plain, CHARS, no_content)


def test_a_skill_that_cannot_be_read_costs_what_is_known_of_it() -> None:
    assert full_dump_tokens(skill("s", "Short"), CHARS, no_content) < 20


@pytest.mark.parametrize("odd", ["half a pair \ud800", object()], ids=["text", "value"])
def test_what_json_cannot_hold_is_still_counted(odd: object) -> None:
    strange = tool("find", full_schema={"properties": {"a": {"default": odd}}})
    assert all(full_dump_tokens(strange, counter, no_content) > 10 for counter in COUNTERS)


def test_a_text_is_counted_once() -> None:
    class Counted:
        name, error, calls = "counted", "none", 0

        def count(self, text: str) -> int:
            self.calls += 1
            return len(text)

    counter = Counted()
    for _ in range(3):
        full_dump_tokens(tool("only-here", "once"), counter, no_content)
    assert counter.calls == 1
