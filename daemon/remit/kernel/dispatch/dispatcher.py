"""The one door: every face hands its requests to this dispatcher.

find the handler → decide → decode the data → approval gate → run with a time-out → answer. A caller
that may not use an event never has its data decoded, and hears the same whether or not the event
exists.
"""

import itertools
import secrets
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from remit.errors import ConflictError, InvalidDataError, with_code
from remit.kernel.audit.denials import Denials
from remit.kernel.dispatch.call import Call, Job, decode_data, failure_of
from remit.kernel.dispatch.context import Context, Kernel
from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.own_requests import OWN_REQUESTS, UNMETERED, Asked, OwnCall
from remit.kernel.dispatch.runner import Runner, RunningCall, WaitingCall
from remit.model.event import Denial
from remit.model.grant import Grant
from remit.model.names import did_you_mean
from remit.model.principal import Principal
from remit.model.schema import NAME_LIMIT
from remit.policy.catalogue import Catalogue
from remit.policy.decide import refusal
from remit_client.wire import Answer, Failure, Request

log = structlog.get_logger()


class Dispatcher:
    """Decides, runs and answers."""

    def __init__(self, kernel: Kernel, *, timeout: float = 30.0) -> None:
        self._kernel = kernel
        self._authority = kernel.authority
        self._counters = kernel.counters
        self._rate_limiter = kernel.rate_limiter
        self._audit_log = kernel.audit_log
        self._runner = Runner(kernel, timeout=timeout)
        self._observers = kernel.observers
        boot = secrets.token_hex(4)
        numbers = itertools.count(1)
        self._next_decision: Callable[[], str] = lambda: f"{boot}-{next(numbers):x}"

    def submit(  # noqa: C901, PLR0911, PLR0912, PLR0915 - each return is one way out of the door
        self, call: Call
    ) -> "Answer | RunningCall | WrittenDenial | OwnCall":
        """Answer at once, or hand back the job that will. Never raises."""
        request = call.request
        counters = self._counters
        counters.requests += 1
        decision = self._next_decision()
        principal = call.principal
        tally = counters.by_caller.get(principal.id) or counters.begin(principal.id)
        tally.calls += 1
        current = self._authority.current  # read once: a decision comes from one whole revision
        catalogue = current.catalogue
        if principal.kind == "operator":
            grant = current.everything
        else:
            grant = self._authority.fleet.grant(principal.id, catalogue)
        if request.session is not None:
            session = request.session
            grant = self._authority.fleet.in_session(principal.id, session, grant, catalogue)
        name = catalogue.universe.aliases.get(request.event, request.event)
        # INVARIANT: counted before it is decided, so that to be refused costs what a call costs.
        if (
            grant.limits.are_metered
            and name not in UNMETERED
            and (passed := self._rate_limiter.admit(principal.id, grant.limits)) is not None
        ):
            return self._over_limit(call, catalogue, passed, decision)
        if name not in grant.events:
            if name in OWN_REQUESTS:
                return self._own(Asked(call, grant, current, decision))
            return self._refuse(call, grant, catalogue, name, decision)
        if request.min_revision is not None and request.min_revision > catalogue.revision:
            return self._fail(request, _too_old(catalogue.revision), decision, catalogue.revision)
        handlers = current.table.by_event
        handler: Handler = handlers[name]
        counters.by_event[name] = counters.by_event.get(name, 0) + 1
        try:
            data = decode_data(handler, call)
        except (InvalidDataError, ConflictError) as error:
            self._runner.tell(principal.id, request.session, name, error.code)
            return self._fail(request, failure_of(error), decision, catalogue.revision)
        context = Context(
            call.principal,
            grant,
            catalogue,
            self._kernel,
            self,
            request.id,
            request.session,
            decision,
            call.progress,
            call.depth,
            call.connection,
            handlers=handlers,
        )
        if name is not request.event:
            context.told_old_name("event", request.event, name)
        if name in grant.approval_required:
            return WaitingCall(self._runner, handler, data, context)
        is_written = handler.is_change or self._audit_log.wants_grant()
        if not handler.inline or is_written:
            return RunningCall(self._runner, handler, data, context, is_written=is_written)
        try:
            result = handler.call(data, context)
        except (Exception, SystemExit) as error:  # a plug-in's exit() must not end the daemon
            answer = self._runner.failed(context, handler, error)
            code = "" if answer.error is None else answer.error.code
            self._runner.tell(principal.id, request.session, name, code)
            return answer
        for observer in self._observers:
            if observer.waiting:
                observer.answered(principal.id, request.session, name)
        told = context.warnings or []
        return Answer(request.id, True, result, None, decision, catalogue.revision, told)  # noqa: FBT003

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

    def _own(self, asked: Asked) -> OwnCall:
        """What callers ask about themselves needs no grant, but counts like any request."""
        call, grant, catalogue = asked.call, asked.grant, asked.revision.catalogue

        def submit(event: str) -> "Answer | Job":
            request = msgspec.structs.replace(call.request, event=event)
            instead = msgspec.structs.replace(call, request=request)
            if catalogue.universe.canonical(event) not in grant.events:
                return self._refuse(instead, grant, catalogue, event, asked.decision)
            return self.submit(instead)

        return OwnCall(self._kernel, asked, submit)

    def _refuse(
        self, call: Call, grant: Grant, catalogue: Catalogue, name: str, decision: str
    ) -> "Answer | WrittenDenial":
        revision = catalogue.revision
        if call.principal.is_operator and name not in catalogue.universe.index:
            names = catalogue.universe.names
            error = Failure(
                "unknown_event", f"there is no event {name!r}", did_you_mean(name, names)
            )
            return self._fail(call.request, error, decision, revision)
        seconds = self._rate_limiter.deny(call.principal.id)
        if seconds is not None:
            return self._over_limit(call, catalogue, ("denials_per_minute", seconds), decision)
        for tell in self._kernel.on_refusal:
            tell(call.principal.id, call.request.session, name)
        # INVARIANT: nothing here depends on whether the event exists; not even under an old name,
        # so it is the name that was asked for that is answered about.
        name = call.request.event
        gone = self._kernel.keyring.absence(call.principal.id, serial=call.principal.serial)
        reason = gone or refusal(grant, name)
        in_session = self._authority.fleet.told_of_session(call.principal.id, call.request.session)
        error = Failure(
            "denied",
            f"{call.principal.id!r} may not use {name!r} ({reason})",
            f"an operator can see why: remit why {call.principal.id} {name}"
            + (f" --session {call.request.session}" if in_session else ""),
            {"reason": reason, "event": name, **in_session},
        )
        name = name[:NAME_LIMIT]
        group = f"{name} {in_session['session']}" if in_session else name
        denial = Denial(call.principal.id, name, reason, in_session, group, name)
        return self._denied(call, error, denial, decision, revision)

    def _over_limit(
        self, call: Call, catalogue: Catalogue, passed: tuple[str, float], decision: str
    ) -> "Answer | WrittenDenial":
        limit, seconds = passed
        error = Failure(
            "limit_exceeded",
            f"{call.principal.id!r} has reached its limit {limit}",
            f"come back in {seconds:g} s",
            {"limit": limit, "retry_after": seconds},
        )
        event = call.request.event[:NAME_LIMIT]
        # Whatever was asked for: beyond a limit, names of events would be rows without one.
        denial = Denial(call.principal.id, event, "limit", {"limit": limit}, f"limit {limit}")
        return self._denied(call, error, denial, decision, catalogue.revision)

    def _denied(
        self, call: Call, error: Failure, denial: Denial, decision: str, revision: int
    ) -> "Answer | WrittenDenial":
        self._counters.deny(call.principal.id)
        denials = self._audit_log.denials
        known = denials.repeat(denial, revision)
        answer = Answer(
            call.request.id, ok=False, error=error, decision=known or decision, revision=revision
        )
        return WrittenDenial(denials, denial, answer) if known is None else answer

    def _fail(self, request: Request, error: Failure, decision: str, revision: int) -> Answer:
        self._counters.failed += 1
        return Answer(request.id, ok=False, error=error, decision=decision, revision=revision)


class WrittenDenial:
    """A refusal that is answered once it is written down, or counted behind one like it."""

    def __init__(self, denials: Denials, denial: Denial, answer: Answer) -> None:
        self._denials = denials
        self._denial = denial
        self._answer = answer

    async def run(self) -> Answer:
        """Write, then answer."""
        answer = self._answer
        answer.decision = await self._denials.record(self._denial, answer.decision, answer.revision)
        return answer


def _too_old(revision: int) -> Failure:
    message = f"revision {revision} is in force, older than the one asked for"
    return Failure("conflict", message, "ask again after the reload", {"revision": revision})
