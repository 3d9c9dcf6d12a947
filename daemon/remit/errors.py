"""Everything that can go wrong on purpose, as one family.

    RemitError                     code, message, hint, details
    ├── InvalidNameError           invalid_name        a text that is no event name
    ├── InvalidPatternError        invalid_pattern     a text that is no event pattern
    ├── DefinitionError            invalid_definition  YAML that does not load; it carries problems,
    │                                                  each with its place
    ├── DeniedError                denied              the caller may not do this
    ├── UnknownEventError          unknown_event       shown to the operator only
    ├── UnknownAgentError          unknown_agent       no such agent, or not for the caller
    ├── ExceedsParentError         exceeds_parent      more than the caller holds; details.excess
    ├── InvalidDataError           invalid_data        request data that do not fit; details.path
    ├── NotFoundError              not_found
    ├── ConflictError              conflict
    ├── TooLargeError              too_large
    ├── LimitError                 limit_exceeded      details.retry_after
    ├── ApprovalPendingError       approval_pending    it runs once it is approved; details.review
    ├── FetchError                 fetch_failed        nothing came from outside; details.reason
    ├── ToolFailedError            tool_failed         an upstream tool said so; details.content
    ├── UnavailableError           unavailable         a server or command is not there now
    ├── StoreError                 store_unavailable
    ├── HandlerError               invalid_handler     a decorated function that cannot be served
    ├── SettingsError              invalid_settings    a configuration value is wrong
    └── HomeError                  unusable_home       the state directory cannot be used

`code` is stable: outside programs compare it. The message says what is wrong, the hint how to
repair it. A problem is something wrong at a place of a file; an error may carry many of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

Severity = Literal["error", "warning"]
_WINDOW = 120


class RemitError(Exception):
    """A failure that a person or a program is told about."""

    code: str = "internal"

    def __init__(
        self, message: str, *, hint: str = "", details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})
        self.withheld: dict[str, Any] = {}
        """What the audit keeps, and the caller is not told."""


class InvalidNameError(RemitError):
    """A text that is not an event name."""

    code = "invalid_name"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is not an event name",
            hint="write lowercase segments joined by colons, as in 'agent:spawn'",
        )
        self.text = text


class InvalidPatternError(RemitError):
    """A text that is neither an event name nor a prefix that ends in `*`."""

    code = "invalid_pattern"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!r} is not an event pattern",
            hint="write an event name, or a prefix that ends in '*', as in 'state:*'",
        )
        self.text = text


class DefinitionError(RemitError):
    """Definitions that do not load. Nothing of them is in force."""

    code = "invalid_definition"

    def __init__(self, problems: "Sequence[Problem]") -> None:
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(
            f"{first.place}: {first.message}{more}",
            hint=first.hint,
            details={"problems": [problem.to_json() for problem in problems]},
        )
        self.problems = tuple(problems)


class DeniedError(RemitError):
    """The caller may not do this; the reason is in the details."""

    code = "denied"

    def __init__(self, message: str, *, reason: str, hint: str = "") -> None:
        super().__init__(message, hint=hint, details={"reason": reason})
        self.reason = reason


class UnknownEventError(RemitError):
    """No such event. Only the operator hears this; others hear `denied`."""

    code = "unknown_event"


class UnknownAgentError(RemitError):
    """No such agent, or none that the caller may ask about: the answer is the same."""

    code = "unknown_agent"


class ExceedsParentError(RemitError):
    """Somebody would get more than the one who gives it has; `details.excess` lists it."""

    code = "exceeds_parent"


class InvalidDataError(RemitError):
    """Request data that do not fit the event."""

    code = "invalid_data"


class NotFoundError(RemitError):
    """The thing that was asked for is not there."""

    code = "not_found"


class ConflictError(RemitError):
    """The request does not fit the present state."""

    code = "conflict"


class TooLargeError(RemitError):
    """More than the stated limit was sent."""

    code = "too_large"


class LimitError(RemitError):
    """Too much at once; `details.retry_after` says when to come back."""

    code = "limit_exceeded"


class ApprovalPendingError(RemitError):
    """The call waits for somebody's yes; repeating it with the same data finds `details.review`."""

    code = "approval_pending"


class FetchError(RemitError):
    """Nothing came from a host outside; `details.reason` says where it ended."""

    code = "fetch_failed"

    def __init__(self, message: str, *, reason: str, hint: str = "") -> None:
        super().__init__(message, hint=hint, details={"reason": reason})


class ToolFailedError(RemitError):
    """An upstream tool was called and told that it failed; `details.content` is what it said."""

    code = "tool_failed"


class UnavailableError(RemitError):
    """An upstream server or a command is not there now; `details.reason` says why."""

    code = "unavailable"


class StoreError(RemitError):
    """The store cannot be read or written."""

    code = "store_unavailable"


class HandlerError(RemitError):
    """A decorated function that cannot be served as an event."""

    code = "invalid_handler"


class SettingsError(RemitError):
    """A configuration value that cannot be used."""

    code = "invalid_settings"


class HomeError(RemitError):
    """The state directory cannot be used."""

    code = "unusable_home"


def with_code(code: str, message: str, hint: str, details: Mapping[str, Any]) -> RemitError:
    """A failure that came from elsewhere, under the code that it had there."""
    error = RemitError(message, hint=hint, details=details)
    error.code = code
    return error


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


def by_place(problem: Problem) -> tuple[Place, str, str]:
    """The stated order of every list of problems."""
    return (problem.place, problem.code, problem.message)


def _window(source: str, at: int) -> tuple[str, int]:
    """Cut a very long line around the caret; answers the shown part and the caret's indent in it.

    What is not printable becomes a space: a file must not send commands to a terminal.
    """
    start = max(0, at - _WINDOW // 2) if len(source) > _WINDOW else 0
    shown = source[start : start + _WINDOW]
    return "".join(char if char.isprintable() else " " for char in shown), at - start
