"""A request on its way through the dispatcher: what a face hands in, and how its data are read."""

import re
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from remit.errors import ConflictError, InvalidDataError, RemitError
from remit.model.names import nearest
from remit.model.principal import Bearer, Principal
from remit.model.schema import published_text
from remit_client.values import misfit
from remit_client.wire import Answer, Failure, Progress, Request

if TYPE_CHECKING:
    from remit.kernel.dispatch.handler import Handler

Format = Literal["msgpack", "json", "object"]
Schema = dict[str, Any]

_STEP = re.compile(r"\.([^.\[\]]+)|(\[[^\]]*\])")
_MOST = 40
"""Fields or values that a hint lists."""
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_HINT = "send null, booleans, text, numbers of 64 bits, lists, and mappings with text as keys"


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
    """The side of the dispatcher that faces call."""

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


def fields_hint(kind: type[msgspec.Struct], path: str, word: str) -> str:
    """What `word` may have been meant to be, and all fields of the level where it stands."""
    fields = {name for level in _levels(kind, path) for name in level.get("properties", ())}
    if not fields:
        return "this event takes no data" if path == "$" else "this takes no fields"
    return _listed(word, sorted(fields), "the fields here")


def values_hint(kind: type[msgspec.Struct], path: str, word: str = "") -> str:
    """The values that may stand at a place, and the one that was probably meant; empty: any."""
    values = [value for level in _levels(kind, path) for value in level.get("enum", ())]
    return _listed(word, [str(value) for value in values], "it is one of") if values else ""


def _listed(word: str, known: list[str], what: str) -> str:
    near = nearest(word, known)
    meant = f"did you mean {near[0]!r}? " if near else ""
    more = f" and {len(known) - _MOST} more" if len(known) > _MOST else ""
    return f"{meant}{what}: {', '.join(known[:_MOST])}{more}"


def _levels(kind: type[msgspec.Struct], path: str) -> list[Schema]:
    """The schemas that may hold at a path as msgspec writes it, as in `$.many[0].one`."""
    schema = msgspec.json.schema(kind)
    definitions = schema.get("$defs", {})
    levels = list(_alternatives(schema, definitions))
    for step in _STEP.finditer(path.removeprefix("$")):
        inner = [found for level in levels for found in _below(level, step[1])]
        levels = [one for found in inner for one in _alternatives(found, definitions)]
    return levels


def _alternatives(schema: Schema, definitions: dict[str, Schema]) -> Iterator[Schema]:
    """A schema without references; of several, each."""
    if "$ref" in schema:
        yield from _alternatives(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _alternatives(one, definitions)
    else:
        yield schema


def _below(schema: Schema, name: str | None) -> Iterator[Schema]:
    """What is one step further: a field of that name, else any item or value."""
    if name is not None:
        found = schema.get("properties", {}).get(name)
        yield from (found,) if isinstance(found, dict) else ()
        return
    inner = [
        schema.get("items"),
        schema.get("additionalProperties"),
        *schema.get("prefixItems", ()),
    ]
    yield from (one for one in inner if isinstance(one, dict))


def decode_data(handler: "Handler", call: Call) -> Any:
    """The request as the handler's own type.

    INVARIANT: whatever face it came through, each part of it can be written in every format.

    Raises:
        InvalidDataError: the data do not fit.
        ConflictError: the event is pushed and cannot be called.
    """
    if handler.spec.pushed:
        message = f"{handler.spec.name!r} is pushed, not called"
        raise ConflictError(message, hint=f"event:subscribe [{handler.spec.name!r}] to see it")
    data = call.request.data
    try:
        if call.format == "object":
            check_value(data)
            return handler.from_object(data)
        decode = handler.from_msgpack if call.format == "msgpack" else handler.from_json
        empty = b"\x80" if call.format == "msgpack" else b"{}"
        raw = bytes(data)
        if raw in (b"", b"\xc0", b"null"):
            return decode(empty)
        if handler.is_open:
            _check_raw(raw, call)
        return decode(raw)
    except _UNREADABLE as error:
        raise bad_data(error, handler.shape.request_type) from error


def check_value(value: Any) -> None:
    """Refuse what one of the formats could not carry: it would break or deceive some reader.

    Raises:
        InvalidDataError: a part of `value` is so; the path says which.
    """
    found = misfit(value)
    if found is not None:
        message = f"{found.path}: {found.problem}"
        raise InvalidDataError(message, hint=_HINT, details={"path": found.path})


def _check_raw(raw: bytes, call: Call) -> None:
    plain = msgspec.msgpack.decode if call.format == "msgpack" else msgspec.json.decode
    try:
        value = plain(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return  # the decoder of the request's own type says it better
    check_value(value)
