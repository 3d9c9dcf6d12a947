"""What the parts of the memory store share."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio

from remit.kernel.store.audit_chain import GENESIS
from remit.kernel.store.pages import StateRow
from remit.kernel.store.records import (
    AgentRecord,
    AuditRow,
    BillDay,
    BillTurn,
    ClientKey,
    Mail,
    Review,
    SessionRecord,
    StoredFile,
    TokenRecord,
)
from remit.model.grant import SessionKey


class MemoryTables:
    """Plain containers. No method awaits between reading and changing them."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.is_full = False
        self._rows: dict[str, StateRow] = {}
        self._floor = 0
        self._keys: list[ClientKey] = []
        self._agents: dict[str, AgentRecord] = {}
        self._agent_keys: set[str] = set()
        self._ended: dict[str, float] = {}
        self._last_position = 0
        self._sessions: dict[tuple[str, str], SessionRecord] = {}
        self._tokens: dict[str, TokenRecord] = {}
        self._files: dict[SessionKey, dict[str, StoredFile]] = {}
        self._made: dict[str, bytes] = {}
        self._lessons: dict[tuple[str, str], bytes] = {}
        self._names: dict[str, dict[str, str]] = {}
        self._bill_days: dict[tuple[str, int, str], BillDay] = {}
        self._bill_turns: dict[tuple[str, int], BillTurn] = {}
        self._mail: list[Mail] = []
        self._last_mail = 0
        self._audit: list[AuditRow] = []
        self._anchor = (0, GENESIS)
        self._rotating = anyio.Lock()
        self._reviews: dict[str, Review] = {}
        self._blobs: dict[str, bytes] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        pass

    def _forget_tokens(self, owner: str) -> None:
        for key in [key for key, token in self._tokens.items() if token.owner == owner]:
            del self._tokens[key]

    def _forget_bill(self, principal: str) -> None:
        for day in [key for key in self._bill_days if key[0] == principal]:
            del self._bill_days[day]
        for turn in [key for key in self._bill_turns if key[0] == principal]:
            del self._bill_turns[turn]

    def _forget_sessions(self, owner: str) -> None:
        for key in [key for key in self._sessions if key[0] == owner]:
            del self._sessions[key]
        for area in [area for area in self._files if area.owner == owner]:
            del self._files[area]
