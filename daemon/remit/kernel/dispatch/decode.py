"""Reading the data of a request that is allowed already."""

from typing import Any

import msgspec

from remit.errors import ConflictError, InvalidDataError
from remit.kernel.dispatch.call import Call, bad_data
from remit.kernel.dispatch.handler import Handler
from remit_client.values import misfit

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_HINT = "send null, booleans, text, numbers of 64 bits, lists, and mappings with text as keys"


def decode_data(handler: Handler, call: Call) -> Any:
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
