"""From an HTTP request to the dispatcher and back: who asks, what is sent, the call and its end.

Identity is the bearer token, looked up again at every request. A body is bounded in bytes and in
time, and has one meaning only. A call ends with its connection, and with the rights of its caller.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
import msgspec
from starlette.requests import Request

from remit.faces.http.openapi import Operation
from remit.faces.http.responses import JSON, SLOW_BODY, ProblemError, problem
from remit.faces.http.server import HttpLimits, HttpStats
from remit.faces.http.streams import Streams
from remit.kernel.dispatch.call import Call, Door, Guard, Job
from remit.kernel.dispatch.limits import Running
from remit.model.principal import Bearer
from remit_client.wire import Answer, Failure
from remit_client.wire import Request as EventRequest

AUDIENCE = "http"
"""Tokens that were made for another face do not count here."""
AT_END = "remit_at_end"
"""The scope key of what is to be done once the answer is sent, or the client is gone."""

_SESSION_LIMIT = 200
_IN_QUERY = frozenset({"token", "access_token", "authorization", "bearer", "api_key", "key"})
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"')
_LENGTH_DIGITS = 19
_OBJECT_HINT = 'send one JSON object, as in {"key": "a"}'


class Probes(msgspec.Struct, frozen=True):
    """The state of the daemon for callers without a token."""

    problems: Callable[[], Awaitable[list[str]]]
    """What keeps it from serving as it should."""
    numbers: Callable[[], Mapping[str, float]]
    """Its counters; no name of a caller or of an event is in there."""


class Gateway:
    """What all requests share: the dispatcher, the limits, and what is open for each caller."""

    def __init__(
        self, door: Door, guard: Guard, probes: Probes, *, limits: HttpLimits, is_loopback: bool
    ) -> None:
        self.door = door
        self.guard = guard
        self.probes = probes
        self.limits = limits
        self.is_loopback = is_loopback
        self.stats = stats = HttpStats()
        self.streams = Streams(guard, limits=limits, stats=stats)
        self.running = Running(limits.in_flight)
        self.bodies = BodyQuota(limits.bodies_bytes)

    def evict(self, name: str) -> int:
        """End the calls of a revoked principal and cut its streams; returns how many were cut."""
        self.running.end(name)
        return self.streams.end(name)


class Exchange:
    """One request while it is answered."""

    __slots__ = ("gateway", "operation", "request")

    def __init__(self, gateway: Gateway, request: Request, operation: Operation) -> None:
        self.gateway = gateway
        self.request = request
        self.operation = operation

    def at_end(self, close: Callable[[], None]) -> None:
        """Call `close` once the answer is sent, or the client is gone."""
        self.request.scope[AT_END].append(close)

    def query(self) -> dict[str, list[str]]:
        """The values of the query parameters, by name."""
        found: dict[str, list[str]] = {}
        for name, value in self.request.query_params.multi_items():
            found.setdefault(name, []).append(value)
        return found

    def identify(self) -> Bearer:
        """The caller.

        Raises:
            ProblemError: no token that counts here was shown.
        """
        if not _IN_QUERY.isdisjoint(name.lower() for name in self.request.query_params):
            hint = "an address is logged and shared: send the header Authorization: Bearer TOKEN"
            raise problem("unauthenticated", "a token in the address is not read", hint)
        found = bearer_of(self.gateway.guard, self.request.headers.getlist("authorization"))
        if found is None:
            hint = "send the header Authorization: Bearer TOKEN; `remit key token` makes one"
            raise problem("unauthenticated", "no token that counts here was shown", hint)
        return found

    async def read_body(self, bearer: Bearer) -> bytes:
        """The whole body; empty when there is none.

        Raises:
            ProblemError: it is too large, comes too slowly, or is not JSON.
        """
        limits, headers = self.gateway.limits, self.request.headers
        _check_length(headers.get("content-length"), limits)
        try:
            with anyio.fail_after(limits.body_seconds):
                body = await self._receive_body(bearer.principal.id)
        except TimeoutError:
            text = f"the body did not arrive within {limits.body_seconds:g} s"
            raise ProblemError(Failure("timeout", text), status=SLOW_BODY) from None
        if body:
            _check_type(headers.get("content-type"))
        return body

    async def _receive_body(self, name: str) -> bytes:
        limits, parts, size, is_whole = self.gateway.limits, [], 0, False
        while not is_whole:
            message = await self.request.receive()
            if message["type"] != "http.request":
                raise problem("bad_frame", "the connection ended in the middle of the body")
            part: bytes = message.get("body", b"")
            parts.append(part)
            size += len(part)
            if part:
                self.gateway.bodies.take(name, len(part))
                self.at_end(partial(self.gateway.bodies.give_back, name, len(part)))
            if size > limits.body_bytes:
                raise _too_large(limits)
            is_whole = not message.get("more_body", False)
        return b"".join(parts)

    async def call(
        self, bearer: Bearer, event: str, data: Any, *, raw: bool = False, connection: Any = None
    ) -> Answer:
        """The answer of an event, good or bad; `raw` data are JSON as it came in.

        Raises:
            ProblemError: too many requests of this caller run already.
        """
        content = msgspec.Raw(data) if raw else data
        asked = EventRequest(0, event, content, self._session())
        call = Call(bearer.principal, asked, "json" if raw else "object", connection=connection)
        gateway = self.gateway
        if gateway.running.is_full(bearer.principal.id):
            message = f"{gateway.limits.in_flight} requests of this client are in flight"
            raise problem("limit_exceeded", message, "wait for some answers", retry_after=1.0)
        outcome = gateway.door.submit(call)
        if isinstance(outcome, Answer):
            return outcome
        return await self._run(bearer, outcome)

    async def ask(
        self, bearer: Bearer, event: str, data: Any, *, raw: bool = False, connection: Any = None
    ) -> Answer:
        """The good answer of an event.

        Raises:
            ProblemError: the event answered an error, or too many requests run already.
        """
        answer = await self.call(bearer, event, data, raw=raw, connection=connection)
        if answer.error is not None:
            raise ProblemError(answer.error, decision=answer.decision)
        return answer

    async def _run(self, bearer: Bearer, job: Job) -> Answer:
        """Run a job; it ends with the connection, and when its caller is shut out."""
        answer = Answer(0, ok=False, error=Failure("cancelled", "the request was cancelled"))
        with self.gateway.running.held(bearer.principal.id) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(_cancel_at_disconnect, self.request, scope))
                answer = await job.run()
                tasks.cancel_scope.cancel()
        return answer

    def _session(self) -> str | None:
        name = self.request.headers.get("remit-session")
        if name is not None and len(name) > _SESSION_LIMIT:
            raise problem("invalid_data", "that is no name of a session", path="$.session")
        return name


class BodyQuota:
    """Bytes of bodies in memory for each caller, from the first one read to the answer."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, int] = {}

    def take(self, name: str, size: int) -> None:
        """Count more bytes for a caller.

        Raises:
            ProblemError: the caller has too many bytes here.
        """
        held = self._held.get(name, 0)
        if held and held + size > self._limit:
            message = f"bodies of this client have {held:,} bytes already"
            raise problem("limit_exceeded", message, "wait for some answers", retry_after=1.0)
        self._held[name] = held + size

    def give_back(self, name: str, size: int) -> None:
        """Count fewer bytes for a caller."""
        self._held[name] -= size
        if not self._held[name]:
            del self._held[name]


def bearer_of(guard: Guard, shown: Sequence[str]) -> Bearer | None:
    """The caller that the `Authorization` headers of a request name.

    None when there are several headers, or one without a token that counts.
    """
    scheme, _, token = shown[0].partition(" ") if len(shown) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.strip():
        return None
    return guard.bearer(token.strip(), AUDIENCE)


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; an empty body is an empty object.

    Raises:
        ProblemError: it is not JSON, not an object, or a key stands twice in it.
    """
    if not body:
        return {}
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise problem("bad_frame", f"the body is not JSON: {error}"[:200], _OBJECT_HINT) from None
    if not isinstance(found, dict):
        raise problem("bad_frame", "the body is not a JSON object", _OBJECT_HINT)
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


def _check_length(text: str | None, limits: HttpLimits) -> None:
    """Refuse by the length that is announced, before anything is read."""
    if text is not None and text.isascii() and text.isdigit() and len(text) <= _LENGTH_DIGITS:
        if int(text) > limits.body_bytes:
            raise _too_large(limits)
    elif text is not None:
        raise problem("bad_frame", "that is no Content-Length")


def _too_large(limits: HttpLimits) -> ProblemError:
    message = f"a body has at most {limits.body_bytes:,} bytes"
    return problem("too_large", message, limit=limits.body_bytes)


def _check_type(text: str | None) -> None:
    kind = (text or "").partition(";")[0].strip().lower()
    if kind != JSON:
        message = f"{kind[:64] or 'no content type'!r} is not what is read here"
        raise problem("unsupported_media_type", message, "Content-Type: application/json")


async def _cancel_at_disconnect(request: Request, scope: anyio.CancelScope) -> None:
    """Cancel the call when its client is gone: nobody is left to hear of it."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            scope.cancel()
            return
