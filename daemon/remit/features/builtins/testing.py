"""math:* and weather:* — tools for trying out whether tools are called.

The weather is made up, and always the same for a place.
"""

import math
import zlib
from collections.abc import Callable
from typing import Annotated, Any

import msgspec

from remit.errors import InvalidDataError
from remit.kernel.dispatch.registry import event_handler

Number = int | float

_CAPABILITY = "test_math"
_EXACT = 2**63
"""Whole numbers beyond this do not fit every client, and are answered as decimals."""

City = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Days = Annotated[int, msgspec.Meta(ge=1, le=14)]
_CONDITIONS = ("sunny", "partly cloudy", "cloudy", "rain", "thunderstorm", "snow", "fog")


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


@event_handler(
    "weather:get_weather", capability="test_weather", effect="read", inline=True, tool="get_weather"
)
def get_weather(city: City) -> dict[str, Any]:
    """Tell the weather of a city: made up, and the same each time.

    Args:
        city: its name, as in 'Lisbon'.
    """
    low, high, condition, more = _day(city, 0)
    return {
        "city": city,
        "temperature_c": (low + high) // 2,
        "condition": condition,
        "humidity_percent": 30 + more % 65,
        "wind_kmh": more % 60,
        "is_mock": True,
    }


@event_handler(
    "weather:get_forecast",
    capability="test_weather",
    effect="read",
    inline=True,
    tool="get_forecast",
)
def get_forecast(city: City, days: Days = 3) -> dict[str, Any]:
    """Tell the weather of a city for some days: made up, and the same each time.

    Args:
        city: its name, as in 'Lisbon'.
        days: how many days, from today on.
    """
    forecast = []
    for number in range(days):
        low, high, condition, _ = _day(city, number)
        forecast.append({"day": number, "low_c": low, "high_c": high, "condition": condition})
    return {"city": city, "days": forecast, "is_mock": True}


def _day(city: str, number: int) -> tuple[int, int, str, int]:
    """Low, high and condition of a day, and a number to make up the rest from."""
    place = " ".join(city.split()).casefold()
    if not place:
        raise InvalidDataError("the city has no name", details={"path": "$.city"})
    seed = zlib.crc32(f"{place}\n{number}".encode("utf-8", "surrogatepass"))
    low = seed % 40 - 12
    return low, low + 3 + seed // 40 % 10, _CONDITIONS[seed // 400 % len(_CONDITIONS)], seed // 2800
