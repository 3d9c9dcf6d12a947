"""From an HTTP request to the dispatcher and back: who asks, the call, its end."""

from functools import partial
from typing import Any

import anyio
import msgspec

from remit.faces.http.body import AnyRequest, Bodies, read_body
from remit.faces.http.identity import bearer_of
from remit.faces.http.limits import Limits, Stats
from remit.faces.http.problems import ProblemError, problem
from remit.kernel.dispatch.call import Call, Door, Guard, Job
from remit.kernel.dispatch.limits import Running
from remit.model.principal import Bearer
from remit_client.wire import Answer, Failure, Request

_SESSION_LIMIT = 200
_IN_QUERY = frozenset({"token", "access_token", "authorization", "bearer", "api_key", "key"})


class Doorway:
    """What every route needs of the daemon."""

    def __init__(self, door: Door, guard: Guard, *, limits: Limits, stats: Stats) -> None:
        self._door = door
        self._guard = guard
        self.limits = limits
        self.stats = stats
        self._running = Running(limits.in_flight)
        self._bodies = Bodies(limits.bodies_bytes)

    def identify(self, request: AnyRequest) -> Bearer:
        """Who asks.

        Raises:
            ProblemError: nobody, as far as can be told.
        """
        if not _IN_QUERY.isdisjoint(name.lower() for name in request.query_params):
            hint = "an address is logged and shared: send the header Authorization: Bearer TOKEN"
            raise problem("unauthenticated", "a token in the address is not read", hint)
        found = bearer_of(self._guard, request.headers.getall("authorization", []))
        if found is None:
            hint = "send the header Authorization: Bearer TOKEN; `remit key token` makes one"
            raise problem("unauthenticated", "no token that counts here was shown", hint)
        return found

    async def read_body(self, request: AnyRequest, bearer: Bearer) -> bytes:
        """The whole body of a caller's request, within all that is read for it.

        Raises:
            ProblemError: it is too large, comes too slowly, or is no JSON.
        """
        count = partial(self._bodies.take, request, bearer.principal.id)
        return await read_body(request, self.limits, count)

    def still(self, bearer: Bearer) -> bool:
        """Tell whether what somebody has shown before still counts."""
        return self._guard.still(bearer)

    async def call(
        self,
        request: AnyRequest,
        bearer: Bearer,
        event: str,
        data: Any,
        *,
        raw: bool = False,
        connection: Any = None,
    ) -> Answer:
        """The answer of an event, good or bad; `raw` data are JSON as it came in.

        Raises:
            ProblemError: too many requests of this caller run already.
        """
        content = msgspec.Raw(data) if raw else data
        asked = Request(0, event, content, _session(request))
        name = bearer.principal.id
        call = Call(bearer.principal, asked, "json" if raw else "object", connection=connection)
        if self._running.is_full(name):
            message = f"{self.limits.in_flight} requests of this client are in flight"
            raise problem("limit_exceeded", message, "wait for some answers", retry_after=1.0)
        outcome = self._door.submit(call)
        if isinstance(outcome, Answer):
            return outcome
        return await self._run(request, bearer, outcome)

    async def ask(self, request: AnyRequest, bearer: Bearer, event: str, data: Any) -> Any:
        """The data of a good answer.

        Raises:
            ProblemError: what the event answered instead.
        """
        return good(await self.call(request, bearer, event, data)).data

    async def _run(self, request: AnyRequest, bearer: Bearer, job: Job) -> Answer:
        """Run a job; it ends with the connection, and when its caller may not be here any more."""
        answer = Answer(0, ok=False, error=Failure("cancelled", "the request was cancelled"))
        with self._running.held(bearer.principal.id) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(_watch, request, scope))
                answer = await job.run()
                tasks.cancel_scope.cancel()
        return answer

    def evict(self, name: str) -> None:
        """End what runs for a principal."""
        self._running.end(name)


async def _watch(request: AnyRequest, scope: anyio.CancelScope) -> None:
    """End the call when its client is gone: nobody is left to hear of it."""
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            scope.cancel()
            return


def good(answer: Answer) -> Answer:
    """An answer that is good.

    Raises:
        ProblemError: it is not.
    """
    if answer.error is not None:
        raise ProblemError(answer.error, decision=answer.decision)
    return answer


def _session(request: AnyRequest) -> str | None:
    name = request.headers.get("remit-session")
    if name is not None and len(name) > _SESSION_LIMIT:
        raise problem("invalid_data", "that is no name of a session", path="$.session")
    return name
