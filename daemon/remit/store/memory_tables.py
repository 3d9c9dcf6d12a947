"""What the parts of the memory store share."""

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import anyio

from remit.store.audit_chain import GENESIS
from remit.store.pages import StateRow
from remit.store.records import AgentRecord, AuditRow, ClientKey, Mail, Review


class MemoryTables:
    """Plain containers. No method awaits between reading and changing them."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._rows: dict[str, StateRow] = {}
        self._floor = 0
        self._keys: list[ClientKey] = []
        self._agents: dict[str, AgentRecord] = {}
        self._agent_keys: set[str] = set()
        self._last_position = 0
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
