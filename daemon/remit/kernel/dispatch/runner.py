"""Running what was decided: approval, audit, time-out, and the answer.

What was allowed is looked at once more before a handler begins: time may have passed since.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
import structlog

from remit.errors import DeniedError, RemitError, StoreError, UnknownAgentError
from remit.kernel.audit.log import summary
from remit.kernel.dispatch.call import failure_of
from remit.kernel.dispatch.context import Context, Demand, Kernel
from remit.kernel.dispatch.handler import Handler, session_of
from remit.kernel.dispatch.visibility import sessions_of
from remit.model.event import Denial
from remit.policy.decide import refusal
from remit_client.wire import Answer, Failure

log = structlog.get_logger()

_MESSAGE = 200
"""How much of the message of a failure the audit keeps."""


class Runner:
    """Runs handlers for callers that were allowed to use them."""

    def __init__(self, kernel: Kernel, *, timeout: float) -> None:
        self._kernel = kernel
        self._authority = kernel.authority
        self._counters = kernel.counters
        self._audit_log = kernel.audit_log
        self._timeout = timeout
        self._observers = kernel.observers

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
        else:
            context.withheld |= error.withheld
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
            warnings=context.warnings or [],
        )

    async def run_approved(self, handler: Handler, data: Any, context: Context) -> Answer:
        """Run a handler once exactly this call of it is approved."""
        principal = context.principal
        try:
            review = await self._kernel.gate.clear(
                self._demand(handler, data, context),
                budget=handler.spec.timeout or self._timeout,
            )
        except RemitError as error:
            return await self._not_approved(context, handler, error)
        # Time has passed: what counts is what the caller may do now.
        current = self._authority.current
        context = msgspec.structs.replace(
            context,
            catalogue=current.catalogue,
            grant=self._authority.grant(principal, session=context.session),
            handlers=current.table.by_event,
        )
        if (lost := self._lost(handler, context)) is not None:
            return await self._not_approved(context, handler, lost)
        return await self.run(handler, data, context, is_written=True, review=review)

    def _demand(self, handler: Handler, data: Any, context: Context) -> Demand:
        """Exactly this call: an approval of it is one of nothing else."""

        def meaning() -> Any:
            current = self._authority.current
            now = msgspec.structs.replace(context, catalogue=current.catalogue)
            return None if handler.meaning is None else handler.meaning(data, now)

        return Demand(
            context.principal.id,
            handler.spec.name,
            data,
            context.decision,
            context.catalogue.revision,
            session_of(context),
            tuple(one.id for one in sessions_of(context)),
            meaning,
        )

    def _lost(self, handler: Handler, context: Context) -> DeniedError | None:
        """Why a call that was allowed is so no more, if others took the right away meanwhile."""
        principal, name = context.principal, handler.spec.name
        grant = self._authority.grant(principal, session=context.session)
        is_served = self._authority.current.table.by_event.get(name) is handler
        if name in grant.events and is_served:
            return None
        message = f"{principal.id!r} may not use {name!r} any more"
        # Another handler of that name is not what was asked, or approved.
        gone = self._kernel.keyring.absence(principal.id, serial=principal.serial)
        reason = gone or ("revoked" if name in grant.events else refusal(grant, name))
        return DeniedError(message, reason=reason)

    async def _not_approved(self, context: Context, handler: Handler, error: RemitError) -> Answer:
        self.tell(context.principal.id, context.session, handler.spec.name, error.code)
        if isinstance(error, DeniedError):
            self._counters.deny(context.principal.id)
            denial = Denial(context.principal.id, handler.spec.name, error.reason, error.details)
            revision = context.catalogue.revision
            decision = await self._audit_log.denials.record(denial, context.decision, revision)
            answer = self.answer(context, failure=failure_of(error))
            return msgspec.structs.replace(answer, decision=decision)
        return self.failed(context, handler, error)

    async def run(
        self, handler: Handler, data: Any, context: Context, *, is_written: bool, review: str = ""
    ) -> Answer:
        """Run a handler that waits, and write down a change before it is made and if it fails."""
        try:
            if is_written:
                await self._write_down(handler, data, context, review)
        except (RemitError, TypeError, ValueError) as error:
            if handler.spec.only_takes and isinstance(error, StoreError):
                return await self._take_away(handler, data, context, error)
            return self.failed(context, handler, error)  # what cannot be audited does not happen
        # The cancellation of one that was shut out arrives only after the next step of its task.
        if (lost := self._lost(handler, context)) is not None:
            return await self._not_approved(context, handler, lost)
        if handler.spec.effect == "read" and not handler.is_change:
            return await self._watched(handler, data, context)
        try:
            answer = await self._watched(handler, data, context)
        except anyio.get_cancelled_exc_class():
            await self._write_failure(handler, context, Failure("cancelled", "it was cancelled"))
            raise
        if answer.error is not None:
            await self._write_failure(handler, context, answer.error)
        return answer

    async def _take_away(
        self, handler: Handler, data: Any, context: Context, unwritten: StoreError
    ) -> Answer:
        """Take rights away that nobody could write down: a full disk keeps no right alive.

        It is answered as the failure that it is, so that somebody does it again.
        """
        answer = await self._run(handler, data, context)
        if answer.error is not None and answer.error.code != unwritten.code:
            return answer
        message = f"{unwritten.message}; it is in force, but a restart would undo it"
        hint = "make room for the store, then do the same again"
        return self.failed(context, handler, StoreError(message, hint=hint))

    async def _watched(self, handler: Handler, data: Any, context: Context) -> Answer:
        """Run a handler, and tell the observers how it went."""
        clock, code = self._kernel.clock, "cancelled"
        begun = clock()
        try:
            answer = await self._run(handler, data, context)
            code = answer.error.code if answer.error is not None else ""
        finally:  # a cancelled call has no answer
            seconds = clock() - begun
            self.tell(context.principal.id, context.session, handler.spec.name, code, seconds)
        return answer

    def tell(
        self,
        caller: str,
        session: str | None,
        event: str,
        code: str,
        seconds: float | None = None,
    ) -> None:
        """Tell the observers how a call ended."""
        for observer in self._observers:
            if observer.waiting:
                observer.answered(caller, session, event, code, seconds)

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
                lost = partial(self._lost, handler, context)
                return self.answer(context, await _run_in_thread(handler, data, context, lost))
        except (Exception, SystemExit) as error:
            return self.failed(context, handler, error)
        self._counters.timeouts += 1
        message = f"{handler.spec.name} did not finish within {timeout:g} s"
        return self.answer(context, failure=Failure("timeout", message, "ask for less at once"))

    async def _write_down(self, handler: Handler, data: Any, context: Context, review: str) -> None:
        """Write a call before it is made, a change with a summary of what was asked."""
        spec = handler.spec
        is_told = handler.is_change or spec.effect != "read"
        details: dict[str, Any] = {"data": summary(data)} if is_told else {}
        await self._audit_log.record(
            principal=context.principal.id,
            event=spec.name,
            outcome="allowed",
            reason="granted",
            decision=context.decision,
            revision=context.catalogue.revision,
            details=details | ({"review": review} if review else {}),
            is_essential=spec.only_takes,
        )

    async def _write_failure(self, handler: Handler, context: Context, error: Failure) -> None:
        await self._audit_log.record_failure(
            principal=context.principal.id,
            event=handler.spec.name,
            # The operator, who alone may be told why somebody is not there, reads it here as well.
            code=error.details.get("reason", error.code)
            if error.code == UnknownAgentError.code
            else error.code,
            details={"message": error.message[:_MESSAGE]} | context.withheld,
            decision=context.decision,
            revision=context.catalogue.revision,
        )


class RunningCall:
    """A call whose handler waits; the face runs it as a task of its own."""

    def __init__(
        self,
        runner: Runner,
        handler: Handler,
        data: Any,
        context: Context,
        *,
        is_written: bool = True,
    ) -> None:
        self._runner = runner
        self._handler = handler
        self._data = data
        self._context = context
        self._is_written = is_written
        # Counted from here on: a burst is submitted before the first of it runs.
        self._rate_limiter = context.kernel.rate_limiter
        self._rate_limiter.begin(context.principal.id)

    async def run(self) -> Answer:
        """Run to the end, the time-out or the cancellation."""
        try:
            return await self._run()
        finally:
            self._rate_limiter.end(self._context.principal.id)

    async def _run(self) -> Answer:
        return await self._runner.run(
            self._handler, self._data, self._context, is_written=self._is_written
        )


class WaitingCall(RunningCall):
    """A call that runs once somebody has approved it."""

    async def _run(self) -> Answer:
        return await self._runner.run_approved(self._handler, self._data, self._context)


async def _run_in_thread(
    handler: Handler, data: Any, context: Context, lost: Callable[[], RemitError | None]
) -> Any:
    """Run a handler once a thread is free, unless its caller has lost the right meanwhile.

    There are fewer worker threads than callers.

    Raises:
        RemitError: what `lost` says; waiting for a thread may take long.
    """
    async with anyio.to_thread.current_default_thread_limiter():
        if (error := lost()) is not None:
            raise error
        return await anyio.to_thread.run_sync(
            handler.call,
            data,
            _for_a_thread(context),
            abandon_on_cancel=True,
            limiter=anyio.CapacityLimiter(1),  # its place was taken above
        )


def _for_a_thread(context: Context) -> Context:
    """The same context, pushing through the loop: the socket of a face belongs to it."""
    return msgspec.structs.replace(context, through=anyio.from_thread.run_sync)
