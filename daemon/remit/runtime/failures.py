"""From exceptions to the failures that travel, and back."""

import re

import msgspec

from remit.errors import InvalidDataError, RemitError
from remit.model.fields import published_text
from remit.runtime.data_hints import fields_hint, values_hint
from remit_client.wire import Failure

_PATH = re.compile(r" - at `(?P<path>[^`]*)`\Z")
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<name>[^`]*)`")
_WRONG_VALUE = re.compile(r"Invalid enum value '?(?P<value>[^']*)")
_MISSING_FIELD = re.compile(r"missing required field `(?P<name>[^`]*)`")


def failure_of(error: BaseException, *, error_id: str = "") -> Failure:
    """What the caller is told. A bug is never told, only where the log speaks of it."""
    if isinstance(error, RemitError):
        return Failure(error.code, error.message, error.hint, error.details)
    return Failure(
        "internal",
        f"something went wrong inside (error id {error_id})",
        f"search the daemon's log for {error_id}",
        {"error_id": error_id},
    )


def bad_data(error: Exception, kind: type[msgspec.Struct]) -> InvalidDataError:
    """Say where request data do not fit, and what was probably meant."""
    if not isinstance(error, msgspec.MsgspecError):
        deep = isinstance(error, RecursionError)
        problem = "too much lies inside one another" if deep else "the text is not UTF-8"
        return InvalidDataError(problem, details={"path": "$"})
    text = str(error)
    match = _PATH.search(text)
    path = match.group("path") if match else "$"
    message = published_text(_PATH.sub("", text))
    unknown = _UNKNOWN_FIELD.search(message)
    missing = _MISSING_FIELD.search(message)
    if unknown:
        hint = fields_hint(kind, path, unknown.group("name"))
        path = f"{path}.{unknown.group('name')}"
    elif missing:
        path = f"{path}.{missing.group('name')}"
        hint = f"add {missing.group('name')!r}"
    else:
        value = _WRONG_VALUE.match(message)
        hint = values_hint(kind, path, value.group("value") if value else "")
    return InvalidDataError(message, hint=hint, details={"path": path})
