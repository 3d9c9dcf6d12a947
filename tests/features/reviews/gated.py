"""A desk whose clock can be moved, with a store that outlives it, and events that need approval."""

from typing import Any

from tests.fakes import built_in_handlers, startup, texts
from tests.stores import TemporaryStore

from remit.app.kernel import build_services, make_kernel
from remit.config.definitions.files import Files
from remit.features.reviews.approvals import Approvals
from remit.features.reviews.capabilities import load_decisions
from remit.features.reviews.events import StoredDecisions
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority, HandlerTable
from remit.kernel.authority.standing import approvals_in
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.kernel.dispatch.registry import Registry
from remit.model.principal import OPERATOR, Agent, AgentSpec, Principal
from remit_client.wire import Answer

CATALOGUE = """\
  base: {description: x, event_patterns: [system:health], always_included: true}
  vault: {description: x, event_patterns: [vault:open, vault:look]}
  launch: {description: x, event_patterns: [rocket:launch]}
  writing: {description: x, event_patterns: [state:set]}
  reviewing: {description: x, event_patterns: [review:list, review:decide]}
  auditing: {description: x, event_patterns: [audit:query, audit:verify]}
  network:
    description: x
    event_patterns: [vault:look]
    claude_tools: [WebFetch]
    security_review_required: true
"""
PROFILES = {
    "gated": "capabilities: [vault, auditing, reviewing]\napproval_required: ['vault:o*']",
    "child": "extends: gated",
    "mixed": "mixins: [gated]\ncapabilities: [vault]",
    "pilot": "capabilities: [launch, reviewing]",
    "free": "capabilities: [vault, reviewing, auditing]",
    "reviewer": "capabilities: [reviewing]",
    "writer": "capabilities: [writing]\napproval_required: ['state:*']",
    "scribe": "capabilities: [writing, reviewing]\nlimits: {state_prefixes: ['team/a/']}",
    "networked": "capabilities: [network]",
    "own": "capabilities: [network, reviewing]",
}


class GatedDesk:
    """The real dispatcher over a temporary store; `restarted` is the next daemon on that store."""

    def __init__(self, store: TemporaryStore | None = None, *, wait: float = 0.0) -> None:
        self.now = 1000.0
        self.ticks = 0.0
        self.runs: list[Any] = []
        self.wait = wait
        self.store = store or TemporaryStore(clock=lambda: self.now)
        self.files = texts(CATALOGUE, **PROFILES)

    async def open(self) -> "GatedDesk":
        registry = Registry()

        @registry.event_handler("vault:open", capability="vault", aliases=["vault:unlock"])
        async def open_(number: int, why: Any = None) -> int:
            """Open."""
            self.runs.append(number)
            if why == "fail":
                raise ValueError(why)
            return number

        @registry.event_handler("vault:look", capability="vault", effect="read")
        async def look() -> None:
            """Look."""

        @registry.event_handler("rocket:launch", capability="launch", approval=True)
        def launch() -> str:
            """Launch."""
            self.runs.append("launch")
            return "gone"

        handlers = {**built_in_handlers(), **registry.handlers()}
        decisions = await load_decisions(self.store)
        self.authority = Authority(
            HandlerTable(handlers),
            self._read,
            approvals=approvals_in(decisions),
        )
        self.keyring = KeyRing("operator-key", self.authority.fleet, self.store)
        kernel = make_kernel(
            self.authority,
            self.store.database,
            self.keyring,
            clock=lambda: self.ticks,
            wall_clock=lambda: self.now,
        )
        wait = self.wait or 0.001
        start = startup(
            self.store.database,
            StoredDecisions(decisions),
            approval_timeout=300.0,
            approval_wait=wait,
        )
        self.kernel = build_services(kernel, start)
        await self.kernel.service(Approvals).load()
        self.dispatcher = Dispatcher(self.kernel, timeout=5)
        return self

    def _read(self) -> Files:
        return self.files

    async def restarted(self) -> "GatedDesk":
        desk = GatedDesk(self.store, wait=self.wait)
        desk.now, desk.files, desk.runs = self.now, self.files, self.runs
        return await desk.open()

    def hire(self, name: str, profile: str, *, parent: str | None = None, key: str = "") -> None:
        spec = AgentSpec(profile=profile)
        self.authority.fleet.add(Agent(id=name, parent=parent, public_key=key, spec=spec))

    async def answer(self, who: str, event: str, data: Any = None) -> Answer:
        principal = OPERATOR
        if who != "operator":
            principal = self.authority.fleet.principal(who) or Principal(who)
        return await self.dispatcher.dispatch(principal, event, data)

    async def ask(self, who: str, event: str, data: Any = None) -> Any:
        answer = await self.answer(who, event, data)
        assert answer.error is None, answer.error
        return answer.data

    async def refused(self, who: str, event: str, data: Any = None) -> Any:
        answer = await self.answer(who, event, data)
        assert answer.error is not None, answer.data
        return answer.error

    async def decide(self, who: str, review: str, decision: str = "approve", note: str = "") -> Any:
        data = {"id": review, "decision": decision, "note": note}
        return await self.answer(who, "review:decide", data)

    async def rows(self, **where: Any) -> list[Any]:
        return list((await self.store.audit_query(limit=100, **where)).items)
