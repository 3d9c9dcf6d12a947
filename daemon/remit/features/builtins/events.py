"""Small built-in tools: the date and the time anywhere, and a list of tasks.

The list is checked and handed back, and kept nowhere: the conversation is the memory, and every
call brings the whole list.
"""

from collections import Counter
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
