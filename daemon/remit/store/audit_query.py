"""Which rows of the audit log somebody wants to see: once for Python, once for SQL."""

from collections.abc import Callable
from typing import Any

from remit.errors import InvalidDataError
from remit.store.checks import after_prefix, check_text
from remit.store.fleet_checks import check_time
from remit.store.records import AuditEntry, AuditWhere

_TEXTS = ("principal", "event", "reason", "outcome", "decision")
_TIMES = ("since", "until")
_LAST_ROW = 2**63 - 1


def check_where(where: AuditWhere) -> dict[str, Any]:
    """The conditions that were really given.

    Raises:
        InvalidDataError: a condition could not be asked of a database.
        TypeError: there is no such condition; ignoring it would show too much.
    """
    given = {name: value for name, value in where.items() if value is not None}
    for name, value in given.items():
        if name in _TEXTS:
            check_text(str(value), f"$.{name}")
        elif name in _TIMES:
            check_time(float(str(value)), f"$.{name}")
        else:
            raise TypeError(f"audit_query() has no condition {name!r}")
    return given


def check_before(before: int | None) -> None:
    """Refuse a cursor that no page can have given."""
    if before is not None and not 0 <= before <= _LAST_ROW:
        raise InvalidDataError(
            f"{before} is not a place in the audit log",
            hint="go on with the 'next' of the page before",
            details={"path": "$.before"},
        )


def matcher(given: dict[str, Any]) -> Callable[[AuditEntry], bool]:
    """A function that tells whether an entry fulfils every condition."""
    exact = {name: given[name] for name in _TEXTS if name in given}
    prefix = _prefix(exact)
    since, until = given.get("since", float("-inf")), given.get("until", float("inf"))

    def matches(entry: AuditEntry) -> bool:
        return (
            all(getattr(entry, name) == value for name, value in exact.items())
            and entry.event.startswith(prefix)
            and since <= entry.at <= until
        )

    return matches


def to_sql(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The same as a condition in SQL, with its parameters."""
    exact = {name: given[name] for name in _TEXTS if name in given}
    parameters: dict[str, Any] = dict(exact)
    conditions = ["TRUE"]
    if prefix := _prefix(exact):
        conditions.append("event >= :prefix")
        parameters["prefix"] = prefix
        if (end := after_prefix(prefix)) is not None:
            conditions.append("event < :end")
            parameters["end"] = end
    conditions += [f"{name} = :{name}" for name in exact]
    for name, condition in (("since", "at >= :since"), ("until", "at <= :until")):
        if name in given:
            conditions.append(condition)
            parameters[name] = given[name]
    return " AND ".join(conditions), parameters


def _prefix(exact: dict[str, Any]) -> str:
    """Take a pattern that ends in `*` out of the exact conditions."""
    if not exact.get("event", "").endswith("*"):
        return ""
    return str(exact.pop("event"))[:-1]
