"""A daemon without a socket: the real dispatcher, handlers and policy over a temporary store."""

from collections.abc import Mapping
from typing import Any

from tests.stores import TemporaryStore

from remit.app.assemble import Cards, make_services
from remit.app.handlers import BUILT_IN
from remit.config.definitions.files import Files, read_files, starter_dir
from remit.kernel.authority.handlers import HandlerTable
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.loading import load_handlers
from remit.kernel.dispatch.registry import REGISTRY
from remit.model.agent import Agent, AgentSpec
from remit.model.principal import OPERATOR, Principal
from remit_client.wire import Answer


def built_in_handlers() -> dict[str, Handler]:
    """The handlers that come with remit, and no others that a test has registered."""
    assert load_handlers(BUILT_IN, trusted=True) == ()
    found = REGISTRY.handlers()
    return {name: handler for name, handler in found.items() if _is_ours(handler)}


def _is_ours(handler: Handler) -> bool:
    return handler.function.__module__ in BUILT_IN


def starter_files() -> Files:
    return read_files(starter_dir() / "capabilities.yaml", starter_dir() / "compositions")


def texts(catalogue: str, **compositions: str) -> Files:
    """Definitions given as texts; each composition gets its `name:` line."""
    contents = {"capabilities.yaml": f"version: 1\ncapabilities:\n{catalogue}".encode()}
    for name, text in compositions.items():
        contents[f"compositions/{name}.yaml"] = f"name: {name}\n{text}".encode()
    return Files("capabilities.yaml", sorted(set(contents) - {"capabilities.yaml"}), contents)


class Desk:
    """Everything behind the socket. It is asked by profile: each profile has one agent."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        files: Files,
        *,
        cards: Cards | None = None,
        store: TemporaryStore | None = None,
    ) -> None:
        self.files = files
        self.store = store or TemporaryStore()
        self.authority = Authority(HandlerTable(handlers), lambda: self.files)
        self.keyring = KeyRing("operator-key", self.authority.fleet)
        self.services = make_services(
            self.authority,
            self.store,
            self.keyring,
            clock=lambda: 0.0,
            wall_clock=lambda: 0.0,
            cards=cards,
        )
        self.counters = self.services.counters
        self.dispatcher = Dispatcher(self.services, timeout=5)

    async def answer(self, who: str, event: str, data: Any = None) -> Answer:
        """The whole answer that the operator, or the agent of a profile, is given."""
        return await self.dispatcher.dispatch(self.principal(who), event, data)

    def principal(self, who: str) -> Principal:
        """The operator, or the agent `ann`, who now holds that profile."""
        if who == "operator":
            return OPERATOR
        self.authority.fleet.replace(Agent(id="ann", spec=AgentSpec(profile=who)))
        return Principal("ann", "agent", who)

    async def ask(self, who: str, event: str, data: Any = None) -> Any:
        """The data of an answer that must be a good one."""
        answer = await self.answer(who, event, data)
        assert answer.error is None, answer.error
        return answer.data
