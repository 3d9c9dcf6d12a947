"""A daemon without a socket: the real dispatcher, handlers and policy over a temporary store."""

from collections.abc import Mapping
from typing import Any

import msgspec
from tests.stores import TemporaryStore

from remit.app.features import event_modules
from remit.app.kernel import build_services, make_kernel
from remit.config.definitions.files import Files, read_files, starter_dir
from remit.config.settings.load import load_settings
from remit.config.settings.table import Settings
from remit.features.cards.library import CardLibrary
from remit.features.cards.scorers import load_scorers
from remit.features.cards.select import CardsConfig
from remit.features.cards.setup import CardOptions
from remit.features.discovery.engine import make_engine
from remit.features.discovery.setup import SearchOptions
from remit.kernel.authority.keyring import KeyRing
from remit.kernel.authority.revision import Authority, HandlerTable
from remit.kernel.dispatch.dispatcher import Dispatcher
from remit.kernel.dispatch.handler import Handler
from remit.kernel.dispatch.registry import REGISTRY, load_handlers
from remit.kernel.feature import Startup
from remit.kernel.store.database import Database
from remit.model.principal import OPERATOR, Agent, AgentSpec, Principal
from remit.text.words import estimate_tokens
from remit_client.wire import Answer


def built_in_handlers() -> dict[str, Handler]:
    """The handlers that come with remit, and no others that a test has registered."""
    assert load_handlers(event_modules(), trusted=True) == ()
    found = REGISTRY.handlers()
    return {name: handler for name, handler in found.items() if _is_ours(handler)}


def _is_ours(handler: Handler) -> bool:
    return handler.function.__module__ in event_modules()


def starter_files() -> Files:
    return read_files(starter_dir() / "capabilities.yaml", starter_dir() / "compositions")


def default_settings(**changes: Any) -> Settings:
    """The settings of a daemon that nobody has configured, but for these."""
    found = load_settings({}, {"HOME": "/nonexistent"}, "/nonexistent")
    return msgspec.structs.replace(found, **changes)


def startup(database: Database, *parts: object, **settings: Any) -> Startup:
    """What a daemon starts from that reads no folder, with parts of a test's own."""
    start = Startup(default_settings(**settings), database, HandlerTable())
    start.put(SearchOptions(lambda: make_engine(default_settings())), NO_CARDS, *parts)
    return start


NO_CARDS = CardOptions(
    make_library=lambda: CardLibrary(()),
    make_scorers=load_scorers,
    count=estimate_tokens,
    config=CardsConfig(),
    has_own=lambda: True,
)


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
        cards: CardOptions = NO_CARDS,
        store: TemporaryStore | None = None,
    ) -> None:
        self.files = files
        self.store = store or TemporaryStore()
        self.authority = Authority(HandlerTable(handlers), lambda: self.files)
        self.keyring = KeyRing("operator-key", self.authority.fleet, self.store)
        database = self.store.database
        kernel = make_kernel(
            self.authority, database, self.keyring, clock=lambda: 0.0, wall_clock=lambda: 0.0
        )
        kernel.audit_log.rows = self.store  # a test may watch or refuse what is written
        self.kernel = build_services(kernel, startup(database, cards))
        self.counters = self.kernel.counters
        self.dispatcher = Dispatcher(self.kernel, timeout=5)

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
