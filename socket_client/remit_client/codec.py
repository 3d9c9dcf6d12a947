"""Bodies that a client writes and reads: msgpack, version `R1`."""

from typing import Any

import msgspec

from remit_client.errors import InvalidData, TooLarge
from remit_client.values import Misfit, misfit
from remit_client.wire import Answer, Cancel, Gap, Progress, Push, RequestId

MAX_MESSAGE = 1 << 20
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

decode_answer = msgspec.msgpack.Decoder(Answer).decode
decode_progress = msgspec.msgpack.Decoder(Progress).decode
decode_push = msgspec.msgpack.Decoder(Push).decode
decode_gap = msgspec.msgpack.Decoder(Gap).decode
_encode = msgspec.msgpack.Encoder().encode


class Question(msgspec.Struct, omit_defaults=True):
    """`wire.Request` as it leaves: the data are not encoded yet."""

    id: int
    event: str
    data: Any = None
    session: str | None = None
    min_revision: int | None = None


def encode_question(question: Question) -> bytes:
    """Write a request.

    Raises:
        InvalidData: the data have no form on the wire.
        TooLarge: the daemon would cut the connection over it.
    """
    try:
        body = _encode(question)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _unsendable(question.data, error) from error
    if len(body) > MAX_MESSAGE:
        message = f"the request has {len(body)} bytes, at most {MAX_MESSAGE} fit"
        raise TooLarge(message, hint="send it in parts")
    return body


def _unsendable(data: Any, error: Exception) -> InvalidData:
    found = misfit(data) or Misfit("$", str(error))
    hint = "send dicts, lists, strings, numbers, booleans and None"
    message = f"the data cannot be sent: {found.problem}"
    return InvalidData(message, hint=hint, details={"path": found.path})


def encode_cancel(request_id: RequestId) -> bytes:
    """Write a cancel notice."""
    return _encode(Cancel(request_id))
