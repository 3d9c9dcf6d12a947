"""math:* — a calculator, for trying out whether tools are called."""

import math
from collections.abc import Callable
from typing import Any

from remit.errors import InvalidDataError
from remit.runtime.registry import event_handler

Number = int | float

_CAPABILITY = "test_math"
_EXACT = 2**63
"""Whole numbers beyond this do not fit every client, and are answered as decimals."""


@event_handler("math:add", capability=_CAPABILITY, effect="read", inline=True, tool="add")
def add(a: Number, b: Number) -> dict[str, Any]:
    """Add two numbers.

    Args:
        a: the first number.
        b: the second number.
    """
    return _result(lambda: a + b, a, b)


@event_handler("math:subtract", capability=_CAPABILITY, effect="read", inline=True, tool="subtract")
def subtract(a: Number, b: Number) -> dict[str, Any]:
    """Subtract the second number from the first.

    Args:
        a: the number to take from.
        b: the number to take away.
    """
    return _result(lambda: a - b, a, b)


@event_handler("math:multiply", capability=_CAPABILITY, effect="read", inline=True, tool="multiply")
def multiply(a: Number, b: Number) -> dict[str, Any]:
    """Multiply two numbers.

    Args:
        a: the first number.
        b: the second number.
    """
    return _result(lambda: a * b, a, b)


@event_handler("math:divide", capability=_CAPABILITY, effect="read", inline=True, tool="divide")
def divide(a: Number, b: Number) -> dict[str, Any]:
    """Divide the first number by the second.

    Args:
        a: the number to divide.
        b: the number to divide by; not 0.
    """
    return _result(lambda: a / b, a, b)


def _result(compute: Callable[[], Number], a: Number, b: Number) -> dict[str, Any]:
    for name, value in (("a", a), ("b", b)):
        if isinstance(value, float) and not math.isfinite(value):
            raise _wrong(f"{name} is not a finite number", "send a decimal or a whole number", name)
        if isinstance(value, int) and abs(value) > _EXACT:
            hint = "send it as a decimal, as in 1e30"
            raise _wrong(f"{name} is a whole number beyond 2^63", hint, name)
    try:
        found = compute()
    except ZeroDivisionError:
        raise _wrong("b is 0, and nothing can be divided by it", "send another b", "b") from None
    if isinstance(found, int) and abs(found) >= _EXACT:
        found = float(found)
    if not math.isfinite(found):
        raise _wrong("the result is beyond the largest decimal", "send smaller numbers", "a")
    return {"result": found}


def _wrong(message: str, hint: str, field: str) -> InvalidDataError:
    return InvalidDataError(message, hint=hint, details={"path": f"$.{field}"})
