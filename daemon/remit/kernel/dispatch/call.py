"""A request on its way through the dispatcher, and the face's side of the bargain."""

import re
from collections.abc import Callable, Hashable
from typing import Literal, Protocol

import msgspec

from remit.errors import InvalidDataError, RemitError
from remit.kernel.dispatch.data_hints import fields_hint, values_hint
from remit.model.principal import Bearer, Principal
from remit.model.requests import published_text
from remit_client.wire import Answer, Failure, Progress, Request

Format = Literal["msgpack", "json", "object"]


class Call(msgspec.Struct):
    """One request from one authenticated caller.

    `format` says how `request.data` is encoded; "object" means it is a plain Python value already.
    """

    principal: Principal
    request: Request
    format: Format = "object"
    progress: Callable[[Progress], None] | None = None
    connection: Hashable | None = None
    """Where the request came in, so that pushed events find the way back."""
    depth: int = 0
    """How many handlers have called on before this one."""


class Job(Protocol):
    """A call whose handler waits: the face runs it as a task of its own."""

    async def run(self) -> Answer:
        """Run to the end, the time-out or the cancellation; never raises an ordinary exception."""


class Door(Protocol):
    """What a face needs of the dispatcher."""

    def submit(self, call: Call) -> Answer | Job:
        """Answer at once, or hand back the job that will. Never raises."""


class Directory(Protocol):
    """Who holds which key, at this moment."""

    def name_of_key(self, public_key: str) -> str | None:
        """The holder of a Z85 public key, or None when no living key is registered."""

    def principal(self, name: str) -> Principal | None:
        """The living principal of that name, or None when it was revoked."""


class Guard(Protocol):
    """Who may come in with which bearer token, at this moment."""

    def bearer(self, token: str, audience: str) -> Bearer | None:
        """Who shows a token; None when it does not count here and now."""

    def still(self, bearer: Bearer) -> bool:
        """Tell whether what somebody has shown before still counts."""

    def seconds_left(self, bearer: Bearer) -> float:
        """How long that will count at the most."""


# From exceptions to the failures that travel, and back.


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
