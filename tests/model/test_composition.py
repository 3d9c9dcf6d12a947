"""Entries of tool lists: events and model tools are two name spaces."""

import pytest

from remit.errors import InvalidPatternError, Place
from remit.model.names import EventPattern, ToolEntry

HERE = Place("p.yaml", 3, 5)


@pytest.mark.parametrize("text", ["state:get", "state:*", "*"])
def test_an_entry_with_a_colon_or_the_bare_star_is_an_event_pattern(text: str) -> None:
    entry = ToolEntry.parse(text, HERE)
    assert entry.pattern == EventPattern.parse(text)
    assert entry.model_tool is None
    assert (entry.text, entry.place) == (text, HERE)


@pytest.mark.parametrize("text", ["Bash", "WebFetch", "bash", "my-tool_2"])
def test_an_entry_without_a_colon_is_a_model_tool(text: str) -> None:
    entry = ToolEntry.parse(text, HERE)
    assert entry.model_tool == text
    assert entry.pattern is None


@pytest.mark.parametrize(
    "text",
    ["", "Web*", "Bash(git:*)", "Bash(ls)", "**", "two words", "1st", "Bash\n", "Agent:Spawn"],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidPatternError) as caught:
        ToolEntry.parse(text, HERE)
    assert caught.value.text == text
