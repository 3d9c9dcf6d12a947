"""Small built-in tools: the date and the time anywhere, a list of tasks, arithmetic, the weather.

The list of tasks is checked and handed back, and kept nowhere: the conversation is the memory, and
every call brings the whole list. Arithmetic and weather are for trying out whether tools are
called; the weather is made up, and always the same for a place.
"""

import math
import zlib
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Annotated, Any, Literal

import msgspec

from remit.errors import InvalidDataError, TooLargeError
from remit.kernel.dispatch.context import Context
from remit.kernel.dispatch.registry import event_handler
from remit.model.names import did_you_mean

Zone = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
Format = Literal["iso8601", "unix", "human"]

_ALWAYS_KNOWN = "UTC"
MAX_TODOS = 200
MAX_TEXT = 1000

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT)]
Status = Literal["pending", "in_progress", "completed"]

Number = int | float

_CAPABILITY = "test_math"
_EXACT = 2**63
"""Whole numbers beyond this do not fit every client, and are answered as decimals."""

City = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Days = Annotated[int, msgspec.Meta(ge=1, le=14)]
_CONDITIONS = ("sunny", "partly cloudy", "cloudy", "rain", "thunderstorm", "snow", "fog")


@event_handler(
    "time:get_current_time", capability="current_time", effect="read", tool="get_current_time"
)
def get_current_time(
    ctx: Context,
    timezone: Zone = _ALWAYS_KNOWN,
    format: Format = "iso8601",  # noqa: A002
) -> dict[str, Any]:
    """Tell the current date and time.

    Args:
        timezone: a zone of the IANA database, as in 'Europe/Berlin'.
        format: iso8601, unix (whole seconds since 1970), or human.
    """
    now = datetime.fromtimestamp(ctx.kernel.wall_clock(), _zone(timezone))
    return {"timestamp": _written(now, format), "timezone": timezone, "format": format}


def _written(now: datetime, style: Format) -> str | int:
    if style == "unix":
        return int(now.timestamp())
    if style == "iso8601":
        return now.isoformat(timespec="seconds")
    return f"{now:%A}, {now.day} {now:%B %Y}, {now:%H:%M:%S} {now:%Z} (UTC{now:%z})"


def _zone(name: str) -> tzinfo:
    """A zone by its exact name.

    Raises:
        InvalidDataError: nobody has heard of it.
    """
    if name == _ALWAYS_KNOWN:
        return UTC
    known = _known_zones()
    if name not in known:  # looked up there, so that no name is ever tried out as a path
        same = [zone for zone in known if zone.casefold() == name.strip().casefold()]
        hint = f"did you mean {min(same)!r}?" if same else did_you_mean(name, known)
        raise InvalidDataError(
            f"there is no time zone {name!a}",
            hint=hint or "write a name of the IANA database, as in 'Europe/Berlin', or 'UTC'",
            details={"path": "$.timezone"},
        )
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - a command that asks for names needs no zones

    return ZoneInfo(name)


@cache
def _known_zones() -> frozenset[str]:
    from zoneinfo import available_timezones  # noqa: PLC0415 - see above

    return frozenset(available_timezones())


class Todo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task, told twice: as an order, and as what is going on while it is done."""

    content: Text
    active_form: Text = msgspec.field(name="activeForm")
    status: Status


@event_handler(
    "todo:write_todos", capability="stateless_todo_list", effect="read", tool="write_todos"
)
async def write_todos(todos: list[Todo]) -> dict[str, Any]:
    """Replace the task list by this one; nothing is kept but what is answered.

    Args:
        todos: the whole list; each task has content ('Run the tests'), activeForm ('Running the
            tests') and status (pending, in_progress or completed).
    """
    if len(todos) > MAX_TODOS:
        raise TooLargeError(
            f"the list has {len(todos):,} tasks; {MAX_TODOS} are the limit",
            hint="keep what is done and what comes much later out of it",
            details={"limit": MAX_TODOS, "size": len(todos)},
        )
    for number, todo in enumerate(todos):
        _check(todo, number)
    found = Counter(todo.status for todo in todos)
    counts = {name: found[name] for name in ("pending", "in_progress", "completed")}
    return {
        "success": True,
        "counts": {"total": len(todos), **counts},
        "todos": todos,
        "warnings": _warnings(counts),
    }


def _check(todo: Todo, number: int) -> None:
    for field, text in (("content", todo.content), ("activeForm", todo.active_form)):
        if not text.strip():
            raise InvalidDataError(
                f"task {number + 1} has nothing but blanks in {field}",
                hint="say what is to be done",
                details={"path": f"$.todos[{number}].{field}"},
            )


def _warnings(counts: dict[str, int]) -> list[str]:
    if counts["in_progress"] > 1:
        return [f"{counts['in_progress']} tasks are in progress: work on one at a time"]
    if counts["pending"] and not counts["in_progress"]:
        return ["tasks are pending and none is in progress: mark the one that you begin with"]
    return []


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
