"""todo:write_todos — a task list that is checked and handed back, and kept nowhere.

The conversation is the memory: every call brings the whole list.
"""

from collections import Counter
from typing import Annotated, Any, Literal

import msgspec

from remit.errors import InvalidDataError, TooLargeError
from remit.kernel.dispatch.registry import event_handler

MAX_TODOS = 200
MAX_TEXT = 1000

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TEXT)]
Status = Literal["pending", "in_progress", "completed"]


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
