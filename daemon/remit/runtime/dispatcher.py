"""The one door: every face hands its requests to this dispatcher.

find the handler → decide → decode the data → approval gate → run with a time-out → answer. A caller
that may not use an event never has its data decoded, and hears the same whether or not the event
exists.
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

from remit.errors import ConflictError, DeniedError, InvalidDataError, RemitError, with_code
from remit.model.grant import Grant
from remit.model.names import NAME_LIMIT
from remit.model.principal import Principal
from remit.model.suggest import did_you_mean
from remit.policy.catalogue import Catalogue
from remit.policy.decide import refusal
from remit.runtime.approvals import Demand
from remit.runtime.auditor import Auditor
from remit.runtime.call import Call
from remit.runtime.context import Context
from remit.runtime.decoding import decode_data
from remit.runtime.failures import failure_of
from remit.runtime.handler import Handler
from remit.runtime.services import Services
from remit.runtime.summary import summary
from remit_client.wire import Answer, Failure, Request

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

    def submit(  # noqa: C901, PLR0911 - each return is one way out of the door
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
            data = decode_data(handler, call)
        except (InvalidDataError, ConflictError) as error:
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
        if name in grant.approval_required:
            return WaitingCall(self, handler, data, context)
        is_written = handler.is_change or self._auditor.wants_grant()
        if not handler.inline or is_written:
            return RunningCall(self, handler, data, context, is_written=is_written)
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

    async def run_approved(self, handler: Handler, data: Any, context: Context) -> Answer:
        """Run a handler once exactly this call of it is approved."""
        name, principal = handler.spec.name, context.principal
        try:
            review = await self._services.approvals.clear(
                Demand(principal.id, name, data, context.decision, context.catalogue.revision),
                budget=handler.spec.timeout or self._timeout,
            )
        except RemitError as error:
            return await self._not_approved(context, handler, error)
        # Time has passed: what counts is what the caller may do now.
        catalogue = self._authority.catalogue
        grant = self._authority.grant(principal)
        context = msgspec.structs.replace(context, catalogue=catalogue, grant=grant)
        if name not in grant.events:
            reason = refusal(grant, name)
            lost = DeniedError(f"{principal.id!r} may not use {name!r} any more", reason=reason)
            return await self._not_approved(context, handler, lost)
        return await self.run(handler, data, context, is_written=True, review=review)

    async def _not_approved(self, context: Context, handler: Handler, error: RemitError) -> Answer:
        if isinstance(error, DeniedError):
            self._counters.denied += 1
            await self._auditor.record_denial(
                principal=context.principal.id,
                event=handler.spec.name,
                reason=error.reason,
                decision=context.decision,
                revision=context.catalogue.revision,
                details=error.details,
            )
            return self.answer(context, failure=failure_of(error))
        return self.failed(context, handler, error)

    async def run(
        self, handler: Handler, data: Any, context: Context, *, is_written: bool, review: str = ""
    ) -> Answer:
        """Run a handler that waits, and write down a change before it is made and if it fails."""
        try:
            if is_written:
                await self._write_down(handler, data, context, review)
        except (RemitError, TypeError, ValueError) as error:
            return self.failed(context, handler, error)  # what cannot be audited does not happen
        if handler.spec.effect == "read":
            return await self._run(handler, data, context)
        try:
            answer = await self._run(handler, data, context)
        except anyio.get_cancelled_exc_class():
            await self._write_failure(handler, context, Failure("cancelled", "it was cancelled"))
            raise
        if answer.error is not None:
            await self._write_failure(handler, context, answer.error)
        return answer

    async def _run(self, handler: Handler, data: Any, context: Context) -> Answer:
        """Run a handler under its time-out."""
        timeout = handler.spec.timeout or self._timeout
        try:
            # Not `fail_after`: a TimeoutError of the handler's own is a bug like any other.
            with anyio.move_on_after(timeout):
                if handler.is_async:
                    return self.answer(context, await handler.call(data, context))
                if handler.inline:  # it may touch what belongs to the loop
                    return self.answer(context, handler.call(data, context))
                result = await anyio.to_thread.run_sync(
                    handler.call, data, _for_a_thread(context), abandon_on_cancel=True
                )
                return self.answer(context, result)
        except (Exception, SystemExit) as error:
            return self.failed(context, handler, error)
        self._counters.timeouts += 1
        message = f"{handler.spec.name} did not finish within {timeout:g} s"
        return self.answer(context, failure=Failure("timeout", message, "ask for less at once"))

    async def _write_down(self, handler: Handler, data: Any, context: Context, review: str) -> None:
        """Write a call before it is made, a change with a summary of what was asked."""
        spec = handler.spec
        details: dict[str, Any] = {} if spec.effect == "read" else {"data": summary(data)}
        await self._auditor.record(
            principal=context.principal.id,
            event=spec.name,
            outcome="allowed",
            reason="granted",
            decision=context.decision,
            revision=context.catalogue.revision,
            details=details | ({"review": review} if review else {}),
        )

    async def _write_failure(self, handler: Handler, context: Context, error: Failure) -> None:
        await self._auditor.record_failure(
            principal=context.principal.id,
            event=handler.spec.name,
            code=error.code,
            message=error.message,
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
        self,
        dispatcher: Dispatcher,
        handler: Handler,
        data: Any,
        context: Context,
        *,
        is_written: bool = True,
    ) -> None:
        self._dispatcher = dispatcher
        self._handler = handler
        self._data = data
        self._context = context
        self._is_written = is_written
        # Counted from here on: a burst is submitted before the first of it runs.
        self._meter = context.services.meter
        self._meter.begin(context.principal.id)

    async def run(self) -> Answer:
        """Run to the end, the time-out or the cancellation."""
        try:
            return await self._run()
        finally:
            self._meter.end(self._context.principal.id)

    async def _run(self) -> Answer:
        return await self._dispatcher.run(
            self._handler, self._data, self._context, is_written=self._is_written
        )


class WaitingCall(RunningCall):
    """A call that runs once somebody has approved it."""

    async def _run(self) -> Answer:
        return await self._dispatcher.run_approved(self._handler, self._data, self._context)


def _for_a_thread(context: Context) -> Context:
    """The same context, pushing through the loop: the socket of a face belongs to it."""
    return msgspec.structs.replace(context, through=anyio.from_thread.run_sync)


def _too_old(revision: int) -> Failure:
    message = f"revision {revision} is in force, older than the one asked for"
    return Failure("conflict", message, "ask again after the reload", {"revision": revision})
