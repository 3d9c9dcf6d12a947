"""One entry of a tool list: an event pattern when it has a colon, else a model tool."""

import re
from typing import Self

import msgspec

from remit.errors import InvalidPatternError
from remit.model.names import EventPattern
from remit.model.place import Place

_MODEL_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

KNOWN_MODEL_TOOLS = frozenset(
    [
        "Agent",
        "AskUserQuestion",
        "Bash",
        "BashOutput",
        "Edit",
        "EnterPlanMode",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "KillShell",
        "LS",
        "ListMcpResources",
        "MultiEdit",
        "NotebookEdit",
        "NotebookRead",
        "Read",
        "ReadMcpResource",
        "Skill",
        "SlashCommand",
        "Task",
        "TodoRead",
        "TodoWrite",
        "WebFetch",
        "WebSearch",
        "Write",
    ]
)
"""Host-side tools that people name most; another name is accepted with a warning."""


class ToolEntry(msgspec.Struct, frozen=True):
    """An entry as written, with its place. Exactly one of `pattern` and `model_tool` is set."""

    text: str
    place: Place
    pattern: EventPattern | None = None
    model_tool: str | None = None

    @classmethod
    def parse(cls, text: str, place: Place) -> Self:
        """Read an entry of a tool list.

        Raises:
            InvalidPatternError: the text is neither a pattern nor a plain tool name.
        """
        if ":" in text or text == "*":
            return cls(text, place, pattern=EventPattern.parse(text))
        if not _MODEL_TOOL.fullmatch(text):
            raise InvalidPatternError(text)
        return cls(text, place, model_tool=text)
