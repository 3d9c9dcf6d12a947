"""Reading the body of a request: bounded, in time, and with one meaning only."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import msgspec
from litestar import Request
from litestar.datastructures import State

from remit.faces.http.gate import AT_END
from remit.faces.http.limits import Limits
from remit.faces.http.problems import SLOW_BODY, ProblemError, problem
from remit_client.wire import Failure

_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_HINT = 'send one JSON object, as in {"key": "a"}'

AnyRequest = Request[Any, Any, State]


class Bodies:
    """How many bytes of bodies are held for each caller, from the first one read to the answer."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, int] = {}

    def take(self, request: AnyRequest, name: str, size: int) -> None:
        """Count some more for a caller; they are given back when the request is over.

        Raises:
            ProblemError: the caller has too many bytes here.
        """
        held = self._held.get(name, 0)
        if held and held + size > self._limit:
            message = f"bodies of this client have {held:,} bytes already"
            raise problem("limit_exceeded", message, "wait for some answers", retry_after=1.0)
        self._held[name] = held + size
        at_end: list[Callable[[], None]] = request.scope[AT_END]  # type: ignore[literal-required]
        at_end.append(partial(self._give_back, name, size))

    def _give_back(self, name: str, size: int) -> None:
        self._held[name] -= size
        if not self._held[name]:
            del self._held[name]


async def read_body(
    request: AnyRequest, limits: Limits, count: Callable[[int], None] = lambda _size: None
) -> bytes:
    """The whole body; empty when there is none.

    Args:
        request: what is read.
        limits: how much, and for how long.
        count: told of the size of each part as it comes; may refuse more.

    Raises:
        ProblemError: it is too large, comes too slowly, or is no JSON.
    """
    _check_length(request.headers.get("content-length"), limits)
    parts: list[bytes] = []
    size = 0
    try:
        with anyio.fail_after(limits.body_seconds):
            while True:
                message = await request.receive()
                if message["type"] != "http.request":
                    raise problem("bad_frame", "the connection ended in the middle of the body")
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if parts[-1]:
                    count(len(parts[-1]))
                if size > limits.body_bytes:
                    raise _too_large(limits)
                if not message.get("more_body", False):
                    break
    except TimeoutError:
        text = f"the body did not arrive within {limits.body_seconds:g} s"
        raise ProblemError(Failure("timeout", text), status=SLOW_BODY) from None
    body = b"".join(parts)
    if body:
        _check_type(request.headers.get("content-type"))
    return body


def _check_length(text: str | None, limits: Limits) -> None:
    """Refuse by the length that is announced, before anything is read."""
    if text is not None and text.isascii() and text.isdigit() and len(text) < 20:  # noqa: PLR2004
        if int(text) > limits.body_bytes:
            raise _too_large(limits)
    elif text is not None:
        raise problem("bad_frame", "that is no Content-Length")


def _too_large(limits: Limits) -> ProblemError:
    message = f"a body has at most {limits.body_bytes:,} bytes"
    return problem("too_large", message, limit=limits.body_bytes)


def _check_type(text: str | None) -> None:
    kind = (text or "").partition(";")[0].strip().lower()
    if kind != "application/json":
        message = f"{kind[:64] or 'no content type'!r} is not what is read here"
        raise problem("unsupported_media_type", message, "Content-Type: application/json")


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; an empty body is an empty one.

    Raises:
        ProblemError: it is not JSON, not an object, or a key stands twice in it.
    """
    if not body:
        return {}
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise problem("bad_frame", f"the body is not JSON: {error}"[:200], _HINT) from None
    if not isinstance(found, dict):
        raise problem("bad_frame", "the body is not a JSON object", _HINT)
    # Two readers of `{"a": 1, "a": 2}` may take two values: what is checked must be what is done.
    # Outside of texts a colon stands only behind a key.
    if _TEXT.sub(b"", body).count(b":") != _count_keys(found):
        raise problem("bad_frame", "a key stands twice in one object of the body")
    return found


def _count_keys(value: Any) -> int:
    waiting, count = [value], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            count += len(one)
            waiting.extend(part for part in one.values() if isinstance(part, dict | list))
        else:
            waiting.extend(part for part in one if isinstance(part, dict | list))
    return count
