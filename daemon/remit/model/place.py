"""Where something stands in a file, and what is wrong there."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from remit.errors import RemitError

Severity = Literal["error", "warning"]


class Place(msgspec.Struct, frozen=True, order=True):
    """A spot in a text file; lines and columns count from 1, as editors show them."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


REQUEST = Place("request")
"""The place of what stands in no file: it came with a request."""


class Problem(msgspec.Struct, frozen=True):
    """Something wrong at a place: an error stops the load, a warning does not."""

    place: Place
    code: str
    message: str
    hint: str = ""
    severity: Severity = "error"
    source: str = ""
    """The line itself, for the caret."""
    width: int = 1
    """How many characters the caret underlines."""

    @property
    def is_error(self) -> bool:
        """Tell whether this stops the load."""
        return self.severity == "error"

    def to_json(self) -> dict[str, object]:
        """The shape that outside programs read."""
        return {
            "file": self.place.file,
            "line": self.place.line,
            "column": self.place.column,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }

    def __str__(self) -> str:
        """The text for a terminal: place, message, code, the line with a caret, the hint."""
        lines = [f"{self.place}: {self.message} [{self.code}]"]
        if self.source:
            shown, indent = _window(self.source, self.place.column - 1)
            carets = "^" * max(1, min(self.width, len(shown) - indent))
            lines += [f"    {shown}", "    " + " " * indent + carets]
        if self.hint:
            lines.append(f"    hint: {self.hint}")
        return "\n".join(lines)


_WINDOW = 120


def _window(source: str, at: int) -> tuple[str, int]:
    """Cut a very long line around the caret; answers the shown part and the caret's indent in it.

    What is not printable becomes a space: a file must not send commands to a terminal.
    """
    start = max(0, at - _WINDOW // 2) if len(source) > _WINDOW else 0
    shown = source[start : start + _WINDOW]
    return "".join(char if char.isprintable() else " " for char in shown), at - start


def by_place(problem: Problem) -> tuple[Place, str, str]:
    """The stated order of every list of problems."""
    return (problem.place, problem.code, problem.message)


class DefinitionError(RemitError):
    """Definitions that do not load. Nothing of them is in force."""

    code = "invalid_definition"

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(
            f"{first.place}: {first.message}{more}",
            hint=first.hint,
            details={"problems": [problem.to_json() for problem in problems]},
        )
        self.problems = tuple(problems)
