"""The list of tools that hosts ask for: shaped for MCP, billed as before, cheap to ask again."""

from typing import Any

import msgspec
import pytest
from tests.fakes import Desk, built_in_handlers, texts

from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.registry import Registry
from remit.model.event import EventSpec
from remit.model.names import parse_event_name
from remit.text.words import estimate_tokens

CATALOGUE = """\
  base: {description: d, event_patterns: [system:discover, system:help], always_included: true}
  find: {description: d, event_patterns: [discovery:discover], mcp_tools: false}
  lab: {description: d, event_patterns: ["lab:*"]}
"""
LAB = "capabilities: {lab: true}\n"
FULL = {"level": "full", "format": "mcp"}


class Result(msgspec.Struct):
    """What came of it."""

    litres: float


@pytest.fixture
def desk() -> Desk:
    registry = Registry()

    @registry.event_handler("lab:look", effect="read", open_world=True)
    def look(place: str) -> Result:
        """Look where „nobody“ looked before 🙂."""
        return Result(len(place))

    @registry.event_handler("lab:stir", effect="write")
    def stir() -> dict[str, int]:
        """Stir."""
        return {}

    @registry.event_handler("lab:boil", effect="destructive")
    def boil() -> dict[str, Any]:
        """Boil."""
        return {}

    @registry.event_handler("lab:odd")
    def odd() -> list[Result]:
        """Who knows."""
        return []

    @registry.event_handler("lab:show", effect="read", content=True)
    def show() -> Result:
        """Show a picture."""
        return Result(1)

    @registry.event_handler("lab:heard", effect="read", pushed=True)
    def heard() -> None:
        """Hear."""

    return Desk(
        built_in_handlers() | registry.handlers(),
        texts(
            CATALOGUE,
            user=LAB,
            shy=LAB + "exposure: discovered\npinned: [lab:look, lab:heard]\n",
            discovery="capabilities: [lab, find]\nexposure: turn\n",
        ),
    )


async def tools(desk: Desk, who: str = "user") -> dict[str, dict[str, Any]]:
    told = await desk.ask(who, "system:discover", FULL)
    return {tool["event"]: tool for tool in told["tools"]}


async def test_annotations_say_what_the_flags_say(desk: Desk) -> None:
    found = await tools(desk)
    hints = {event: tuple(found[event]["annotations"].values()) for event in found}
    assert list(found["lab:look"]["annotations"]) == [
        "readOnlyHint",
        "destructiveHint",
        "openWorldHint",
    ]
    assert hints["lab:look"] == (True, False, True)
    assert hints["lab:stir"] == (False, False, False)
    assert hints["lab:boil"] == (False, True, False)


def test_an_effect_that_nobody_stated_is_taken_for_the_worst() -> None:
    handler = Handler(EventSpec(name=parse_event_name("a:b")), lambda: None, inline=False)
    hints = handler.tool_parts.hints["annotations"]
    assert (hints["readOnlyHint"], hints["destructiveHint"]) == (False, True)


async def test_an_output_schema_is_told_where_hosts_can_check_an_answer_by_it(desk: Desk) -> None:
    found = await tools(desk)
    assert found["lab:look"]["output_schema"]["properties"] == {"litres": {"type": "number"}}
    assert found["lab:stir"]["output_schema"]["additionalProperties"] == {"type": "integer"}
    for event in ("lab:boil", "lab:odd", "lab:show"):
        assert "output_schema" not in found[event], event
    assert [event for event in found if found[event]["content"]] == ["lab:show"]


async def test_the_list_says_how_much_of_it_to_show_at_once(desk: Desk) -> None:
    told = await desk.ask("shy", "system:discover", FULL)
    assert (told["exposure"], told["searchable"]) == ("discovered", False)
    assert [tool["event"] for tool in told["tools"] if tool["pinned"]] == ["lab:look"]
    assert {tool["event"] for tool in told["tools"]} == set(await tools(desk))
    told = await desk.ask("discovery", "system:discover", FULL)
    assert (told["exposure"], told["searchable"]) == ("turn", True)
    assert (await desk.ask("user", "system:discover", FULL))["exposure"] == "all"


async def test_what_is_only_pushed_is_in_no_list(desk: Desk) -> None:
    assert "lab:heard" not in await tools(desk, "shy")


@pytest.mark.parametrize("only", [{}, {"namespace": "lab"}, {"event": "lab:look"}])
@pytest.mark.parametrize("level", ["full", "summary"])
async def test_the_bill_is_that_of_the_json_that_a_model_reads(
    desk: Desk, only: dict[str, str], level: str
) -> None:
    told = await desk.ask("user", "system:discover", {"level": level, "format": "mcp"} | only)
    fields = ("name", "event", "description", "input_schema")
    read = [{name: tool[name] for name in fields if name in tool} for tool in told["tools"]]
    assert told["tokens"]["sent"] == estimate_tokens(msgspec.json.encode(read).decode())


async def test_an_empty_list_costs_its_brackets(desk: Desk) -> None:
    nothing = await desk.ask("user", "system:discover", FULL | {"namespace": "nowhere"})
    assert (nothing["tools"], nothing["tokens"]["sent"]) == ([], estimate_tokens("[]"))
