"""Texts of a composition with the values of variables put in."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from remit.errors import InvalidPatternError
from remit.model.composition import Scalar, Text
from remit.model.launch import BLANK
from remit.model.place import Problem
from remit.model.suggest import did_you_mean
from remit.model.tool import ToolEntry

_SAFE_IN_TOOLS = re.compile(r"[a-z0-9][a-z0-9_.-]*")

Environment = Mapping[str, Scalar]


def entries(
    texts: Iterable[Text], environment: Environment, problems: list[Problem]
) -> tuple[ToolEntry, ...]:
    """The entries of a tool list; what is wrong with them is added to `problems`."""
    found = []
    for text in texts:
        written = filled(text, environment, problems, in_tools=True)
        try:
            found.append(ToolEntry.parse(written, text.place))
        except InvalidPatternError as error:
            problems.append(Problem(text.place, error.code, error.message, error.hint))
    return tuple(found)


def filled(
    text: Text, environment: Environment, problems: list[Problem], *, in_tools: bool = False
) -> str:
    """Put the values of variables into a string.

    INVARIANT: a value never brings a `*` or a colon into a tool list, so it cannot widen a grant
    beyond the pattern that the operator wrote around it.
    """
    if "{{" not in text.text:
        return text.text

    def value_of(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in environment:
            message = f"there is no variable {name!r}"
            hint = did_you_mean(name, environment) or "declare it under 'variables:'"
            problems.append(Problem(text.place, "unknown_variable", message, hint))
            return "unknown"
        value = _text_of(environment[name])
        if in_tools and not _SAFE_IN_TOOLS.fullmatch(value):
            message = f"the value {value!r} of {name!r} cannot stand in a tool list"
            hint = "there, a variable holds lowercase letters, digits and _ . - only"
            problems.append(Problem(text.place, "unsafe_value", message, hint))
            return "unsafe"
        return value

    return BLANK.sub(value_of, text.text)


def _text_of(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
