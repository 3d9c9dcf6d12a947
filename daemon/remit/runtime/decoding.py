"""Reading the data of a request that is allowed already."""

from typing import Any

import msgspec

from remit.errors import ConflictError
from remit.runtime.call import Call
from remit.runtime.failures import bad_data
from remit.runtime.handler import Handler


def decode_data(handler: Handler, call: Call) -> Any:
    """The request as the handler's own type.

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
            return handler.from_object(data)
        decode = handler.from_msgpack if call.format == "msgpack" else handler.from_json
        empty = b"\x80" if call.format == "msgpack" else b"{}"
        raw = bytes(data)
        return decode(empty if raw in (b"", b"\xc0", b"null") else raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise bad_data(error, handler.shape.request_type) from error
