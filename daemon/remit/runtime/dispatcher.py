"""The one door: every face hands its requests to this dispatcher.

find the handler → decide → decode the data → run with a time-out → answer. A caller that may not
use an event never has its data decoded, and hears the same whether or not the event exists.
"""

import itertools
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
import structlog

from remit.errors import InvalidDataError, RemitError, with_code
from remit.model.grant import Grant
from remit.model.names import NAME_LIMIT
from remit.model.principal import Principal
from remit.model.suggest import did_you_mean
from remit.policy.catalogue import Catalogue
from remit.policy.decide import refusal
from remit.runtime.auditor import Auditor
from remit.runtime.call import Call
from remit.runtime.context import Context
from remit.runtime.failures import bad_data, failure_of
from remit.runtime.handler import Handler
from remit.runtime.services import Services
from remit_client.wire import Answer, Failure, Progress, Request

log = structlog.get_logger()


class Dispatcher:
    """Decides, runs and answers."""

    def __init__(
        self, services: Services, handlers: Mapping[str, Handler], *, timeout: float = 30.0
    ) -> None:
        self._services = services
        self._authority = services.authority
        self._handlers = handlers
        self._counters = services.counters
        self._meter = services.meter
        self._auditor = services.auditor
        self._timeout = timeout
        boot = secrets.token_hex(4)
        numbers = itertools.count(1)
        self._next_decision: Callable[[], str] = lambda: f"{boot}-{next(numbers):x}"

    def submit(  # noqa: PLR0911 - each return is one way out of the door
        self, call: Call
    ) -> "Answer | RunningCall | WrittenDenial":
        """Answer at once, or hand back the job that will. Never raises."""
        request = call.request
        counters = self._counters
        counters.requests += 1
        decision = self._next_decision()
        principal = call.principal
        current = self._authority.current  # read once: a decision comes from one whole revision
        catalogue = current.catalogue
        if principal.kind == "operator":
            grant = current.everything
        else:
            grant = self._authority.fleet.grant(principal.id, catalogue)
        name = catalogue.universe.aliases.get(request.event, request.event)
        if name not in grant.events:
            return self._refuse(call, grant, catalogue, name, decision)
        passed = self._meter.admit(principal.id, grant.limits) if grant.limits.are_metered else None
        if passed is not None:
            return self._over_limit(call, catalogue, passed, decision)
        if request.min_revision is not None and request.min_revision > catalogue.revision:
            return self._fail(request, _too_old(catalogue.revision), decision, catalogue.revision)
        handler = self._handlers[name]
        counters.by_event[name] = counters.by_event.get(name, 0) + 1
        try:
            data = _decode(handler, call)
        except InvalidDataError as error:
            return self._fail(request, failure_of(error), decision, catalogue.revision)
        context = Context(
            call.principal,
            grant,
            catalogue,
            self._services,
            self,
            request.id,
            request.session,
            decision,
            call.progress,
            call.depth,
            call.connection,
        )
        if not handler.inline or self._auditor.wants_grant():
            return RunningCall(self, handler, data, context)
        try:
            result = handler.call(data, context)
        except (Exception, SystemExit) as error:  # a plug-in's exit() must not end the daemon
            return self.failed(context, handler, error)
        return Answer(request.id, True, result, None, decision, catalogue.revision)  # noqa: FBT003

    async def dispatch(
        self,
        principal: Principal,
        event: str,
        data: Any = None,
        *,
        session: str | None = None,
        depth: int = 0,
    ) -> Answer:
        """The whole way in one call, for faces that live in this process."""
        outcome = self.submit(Call(principal, Request(0, event, data, session), depth=depth))
        return outcome if isinstance(outcome, Answer) else await outcome.run()

    async def ask(
        self,
        principal: Principal,
        event: str,
        data: Any = None,
        *,
        session: str | None = None,
        depth: int = 0,
    ) -> Any:
        """The answer's data.

        Raises:
            RemitError: what the event answered instead.
        """
        answer = await self.dispatch(principal, event, data, session=session, depth=depth)
        if answer.error is not None:
            error = answer.error
            raise with_code(error.code, error.message, error.hint, error.details)
        return answer.data

    def _refuse(
        self, call: Call, grant: Grant, catalogue: Catalogue, name: str, decision: str
    ) -> "Answer | WrittenDenial":
        self._counters.denied += 1
        revision = catalogue.revision
        if call.principal.is_operator:
            names = catalogue.universe.names
            error = Failure(
                "unknown_event", f"there is no event {name!r}", did_you_mean(name, names)
            )
            return self._fail(call.request, error, decision, revision)
        # INVARIANT: nothing here depends on whether the event exists; not even under an old name,
        # so it is the name that was asked for that is answered about.
        name = call.request.event
        reason = refusal(grant, name)
        error = Failure(
            "denied",
            f"{call.principal.id!r} may not use {name!r} ({reason})",
            f"an operator can see why: remit why {call.principal.profile} {name}",
            {"reason": reason, "event": name},
        )
        log.info("denied", event_name=name, principal=call.principal.id, reason=reason)
        answer = Answer(
            call.request.id, ok=False, error=error, decision=decision, revision=revision
        )
        return WrittenDenial(self._auditor, call, answer, reason)

    def _over_limit(
        self, call: Call, catalogue: Catalogue, passed: tuple[str, float], decision: str
    ) -> "WrittenDenial":
        self._counters.denied += 1
        limit, seconds = passed
        error = Failure(
            "limit_exceeded",
            f"{call.principal.id!r} has reached its limit {limit}",
            f"come back in {seconds:g} s",
            {"limit": limit, "retry_after": seconds},
        )
        revision = catalogue.revision
        answer = Answer(
            call.request.id, ok=False, error=error, decision=decision, revision=revision
        )
        return WrittenDenial(self._auditor, call, answer, "limit")

    def _fail(self, request: Request, error: Failure, decision: str, revision: int) -> Answer:
        self._counters.failed += 1
        return Answer(request.id, ok=False, error=error, decision=decision, revision=revision)

    def failed(self, context: Context, handler: Handler, error: BaseException) -> Answer:
        """The answer to a call whose handler raised."""
        if not isinstance(error, RemitError):
            self._counters.internal_errors += 1
            log.error(
                "handler_failed",
                event_name=handler.spec.name,
                error_id=context.decision,
                exc_info=error,
            )
        self._counters.failed += 1
        failure = failure_of(error, error_id=context.decision)
        return self.answer(context, failure=failure)

    def answer(
        self, context: Context, result: Any = None, failure: Failure | None = None
    ) -> Answer:
        """Wrap what a handler gave."""
        return Answer(
            context.request_id,
            ok=failure is None,
            data=result,
            error=failure,
            decision=context.decision,
            revision=context.catalogue.revision,
        )

    async def run(self, handler: Handler, data: Any, context: Context) -> Answer:
        """Run a handler that waits, under its time-out."""
        timeout = handler.spec.timeout or self._timeout
        agent = context.principal.id
        self._meter.begin(agent)
        try:
            await self._write_down(handler, context)
            # Not `fail_after`: a TimeoutError of the handler's own is a bug like any other.
            with anyio.move_on_after(timeout):
                if handler.is_async:
                    return self.answer(context, await handler.call(data, context))
                result = await anyio.to_thread.run_sync(
                    handler.call, data, _for_a_thread(context), abandon_on_cancel=True
                )
                return self.answer(context, result)
        except (Exception, SystemExit) as error:
            return self.failed(context, handler, error)
        finally:
            self._meter.end(agent)
        self._counters.timeouts += 1
        message = f"{handler.spec.name} did not finish within {timeout:g} s"
        return self.answer(context, failure=Failure("timeout", message, "ask for less at once"))

    async def _write_down(self, handler: Handler, context: Context) -> None:
        """Write a change before it is made: what cannot be audited does not happen."""
        spec = handler.spec
        if spec.effect == "read" and not self._auditor.wants_grant():
            return
        await self._auditor.record(
            principal=context.principal.id,
            event=spec.name,
            outcome="allowed",
            reason="granted",
            decision=context.decision,
            revision=context.catalogue.revision,
        )


class WrittenDenial:
    """A refusal that is answered once it is written down."""

    def __init__(self, auditor: Auditor, call: Call, answer: Answer, reason: str) -> None:
        self._auditor = auditor
        self._call = call
        self._answer = answer
        self._reason = reason

    async def run(self) -> Answer:
        """Write, then answer."""
        await self._auditor.record_denial(
            principal=self._call.principal.id,
            event=self._call.request.event[:NAME_LIMIT],
            reason=self._reason,
            decision=self._answer.decision,
            revision=self._answer.revision,
        )
        return self._answer


class RunningCall:
    """A call whose handler waits; the face runs it as a task of its own."""

    def __init__(
        self, dispatcher: Dispatcher, handler: Handler, data: Any, context: Context
    ) -> None:
        self._dispatcher = dispatcher
        self._handler = handler
        self._data = data
        self._context = context

    async def run(self) -> Answer:
        """Run to the end, the time-out or the cancellation."""
        return await self._dispatcher.run(self._handler, self._data, self._context)


def _for_a_thread(context: Context) -> Context:
    """The same context, reporting through the loop: the socket of a face belongs to it."""
    send = context.progress
    if send is None:
        return context

    def through_the_loop(progress: Progress) -> None:
        anyio.from_thread.run_sync(send, progress)

    return msgspec.structs.replace(context, progress=through_the_loop)


def _decode(handler: Handler, call: Call) -> Any:
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


def _too_old(revision: int) -> Failure:
    message = f"revision {revision} is in force, older than the one asked for"
    return Failure("conflict", message, "ask again after the reload", {"revision": revision})
