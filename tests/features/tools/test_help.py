"""What `system:help` and tool lists say comes from types and docstrings alone."""

import pytest
from tests.fakes import Desk, built_in_handlers, texts

from remit.kernel.dispatch.registry import Registry

CATALOGUE = """\
  base: {description: Feet, event_patterns: [system:help, system:discover], always_included: true}
  lab: {description: Experiments}
  closed: {description: Not for users}
"""


@pytest.fixture
def desk() -> Desk:
    registry = Registry()

    @registry.event_handler(
        "lab:boil",
        capability="lab",
        effect="destructive",
        resource_intensive=True,
        open_world=True,
        wildcard=False,
        timeout=2.5,
        since="0.1",
        aliases=["lab:cook"],
        triggers=["lab:boil", "closed:door"],
        deprecated="use lab:steam",
    )
    async def boil(water: float, kind: str | None = None, times: list[int] = []) -> dict[str, int]:  # noqa: B006
        """Boil some water.

        It takes a while.

        Args:
            water: how much,
                in litres.
            kind (str): hard or soft.
            nothing: a parameter that is not there.

        Returns:
            what came of it.
        """
        return {"litres": int(water)}

    @registry.event_handler("closed:door", capability="closed", description="A door.", inline=True)
    def door() -> None:
        """Open it."""

    handlers = built_in_handlers() | registry.handlers()
    return Desk(handlers, texts(CATALOGUE, user="capabilities: {lab: true}\n"))


async def test_help_tells_everything_about_an_event(desk: Desk) -> None:
    told = await desk.ask("user", "system:help", {"event": "lab:boil"})
    assert told["summary"] == "Boil some water."
    assert told["description"] == "Boil some water.\n\nIt takes a while."
    assert told["parameters"] == [
        {
            "name": "water",
            "type": "number",
            "required": True,
            "description": "how much, in litres.",
        },
        {
            "name": "kind",
            "type": "string | null",
            "required": False,
            "description": "hard or soft.",
            "default": None,
        },
        {
            "name": "times",
            "type": "list of integer",
            "required": False,
            "description": "",
            "default": [],
        },
    ]
    assert told["example"] == {"water": 1.0}
    assert told["capabilities"] == ["lab"]
    assert told["flags"] == {
        "effect": "destructive",
        "requires_auth": True,
        "resource_intensive": True,
        "open_world": True,
        "wildcard": False,
        "pushed": False,
        "timeout": 2.5,
        "since": "0.1",
        "aliases": ["lab:cook"],
        "deprecated": "use lab:steam",
    }
    assert told["triggers"] == ["lab:boil"], "what it triggers is told as far as the caller sees it"
    assert told["answer"] == {"type": "object", "additionalProperties": {"type": "integer"}}


async def test_help_for_an_old_name_is_that_of_the_new_one(desk: Desk) -> None:
    assert (await desk.ask("user", "system:help", {"event": "lab:cook"}))["event"] == "lab:boil"


async def test_short_help_is_one_line(desk: Desk) -> None:
    line = "lab:boil(water, kind?, times?) - Boil some water."
    compact = {"event": "lab:boil", "help": line, "example": {"water": 1.0}}
    asked = {"event": "lab:boil", "format": "compact"}
    assert await desk.ask("user", "system:help", asked) == compact
    asked = {"event": "lab:boil", "format": "ultra_compact"}
    assert await desk.ask("user", "system:help", asked) == {"event": "lab:boil", "help": line}


async def test_a_tool_carries_the_schema_of_its_event(desk: Desk) -> None:
    told = await desk.ask("user", "system:help", {"event": "lab:boil", "format": "mcp"})
    (tool,) = told["tools"]
    assert (tool["name"], tool["event"]) == ("lab_boil", "lab:boil")
    schema = tool["input_schema"]
    assert (schema["type"], schema["required"]) == ("object", ["water"])
    assert schema["properties"]["water"] == {
        "type": "number",
        "description": "how much, in litres.",
    }
    assert schema["additionalProperties"] is False


async def test_a_thin_list_costs_less_and_says_what_the_full_one_would(desk: Desk) -> None:
    thin = await desk.ask("user", "system:discover", {"level": "summary", "format": "mcp"})
    full = await desk.ask("user", "system:discover", {"level": "full", "format": "mcp"})
    assert [tool["event"] for tool in thin["tools"]] == [tool["event"] for tool in full["tools"]]
    assert all("input_schema" not in tool for tool in thin["tools"])
    assert thin["tokens"]["full_dump"] == full["tokens"]["full_dump"] == full["tokens"]["sent"]
    assert thin["tokens"]["sent"] < full["tokens"]["sent"]


async def test_a_description_on_the_decorator_beats_the_docstring(desk: Desk) -> None:
    told = await desk.ask("operator", "system:help", {"event": "closed:door"})
    assert told["summary"] == "A door."
    assert told["parameters"] == []
    assert told["example"] == {}


async def test_help_for_an_event_of_somebody_else_is_like_help_for_none(desk: Desk) -> None:
    closed = await desk.answer("user", "system:help", {"event": "closed:door"})
    missing = await desk.answer("user", "system:help", {"event": "closed:roof"})
    assert closed.error is not None
    assert missing.error is not None
    assert closed.error.code == missing.error.code == "not_found"
    assert closed.error.message.replace("door", "roof") == missing.error.message
    assert closed.error.hint == missing.error.hint
