"""Where cards come from beside folders: the store, and catalogues behind URLs.

The operator puts cards into the store while the daemon runs. A catalogue is a JSON document behind
a URL that the settings name, `{"cards": [TEXT, …]}`. It is pinned by its SHA-256: another
content than the pinned one is told and not used, and what was in force stays so, also over a
restart and while nobody answers there.
"""

from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Any

import anyio
import msgspec
import structlog

from remit.errors import (
    ConflictError,
    FetchError,
    InvalidDataError,
    NotFoundError,
    Place,
    Problem,
    RemitError,
    TooLargeError,
)
from remit.features.cards.ready_card import CardText
from remit.features.web.events import make_fetcher
from remit.kernel.store.rows import BlobRows
from remit.model.event import Service

STORED_BLOB = "awareness_cards"
CATALOGUE_BLOB = "awareness_catalogues"
MAX_STORED = 500
MAX_STORED_BYTES = 8 * 1024 * 1024
MAX_CATALOGUE_CARDS = 500
MAX_CATALOGUE_BYTES = 4 * 1024 * 1024
_PIN = "#sha256="
_DAMAGED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
log = structlog.get_logger()

Fetch = Callable[[str], Awaitable[bytes]]
"""The body behind a URL; raises a RemitError where there is none."""


class TextSource(Service):
    """Cards that are in no folder; says when they are others."""

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self.texts: tuple[CardText, ...] = ()
        self.problems: tuple[Problem, ...] = ()


class StoredCard(msgspec.Struct, frozen=True):
    """A card as somebody put it."""

    text: str
    by: str
    at: float


class StoredCards(TextSource):
    """Cards that the operator put while the daemon ran; each is on disk before it counts."""

    def __init__(self, rows: BlobRows, *, clock: Callable[[], float]) -> None:
        super().__init__()
        self._rows = rows
        self._clock = clock
        self._cards: dict[str, StoredCard] = {}
        self._writing = anyio.Lock()

    async def load(self) -> None:
        """Take over what was put; what is damaged is left out, and the log says so."""
        self._take(await _read(self._rows, STORED_BLOB, dict[str, StoredCard]) or {})

    async def put(self, name: str, text: str, *, by: str) -> None:
        """Keep a card that was read well, in the place of the one of that id.

        Raises:
            TooLargeError: there are too many, or they are too long together.
            StoreError: it cannot be stored.
        """
        async with self._writing:
            cards = self._cards | {name: StoredCard(text, by, self._clock())}
            size = sum(len(one.text.encode()) for one in cards.values())
            if len(cards) > MAX_STORED or size > MAX_STORED_BYTES:
                message = f"more than {MAX_STORED} cards, or {MAX_STORED_BYTES:,} bytes of them"
                raise TooLargeError(message, hint="remove some with awareness:remove")
            await self._write(cards)

    async def remove(self, name: str) -> StoredCard:
        """Forget a card that was put.

        Raises:
            NotFoundError: none of that id was put.
            StoreError: that cannot be stored.
        """
        async with self._writing:
            if name not in self._cards:
                hint = "cards of folders and catalogues are removed there"
                raise NotFoundError(f"no card {name!r} was put", hint=hint)
            cards = dict(self._cards)
            gone = cards.pop(name)
            await self._write(cards)
            return gone

    async def _write(self, cards: dict[str, StoredCard]) -> None:
        with anyio.CancelScope(shield=True):
            await self._rows.blob_put(STORED_BLOB, msgspec.msgpack.encode(cards))
            self._take(cards)

    def _take(self, cards: dict[str, StoredCard]) -> None:
        self._cards = cards
        self.texts = tuple(
            CardText(card.text.encode(), f"store:{name}", "store")
            for name, card in sorted(cards.items())
        )
        self.changed()


class _Document(msgspec.Struct):
    """A catalogue as it comes over the wire."""

    cards: list[str]


class _KeptCatalogue(msgspec.Struct, frozen=True):
    pin: str = ""
    body: bytes = b""


class CatalogueStatus(msgspec.Struct, frozen=True):
    """How it stands with one catalogue."""

    url: str
    pin: str = ""
    """The SHA-256 that its content must have; empty: none is accepted yet."""
    in_force: str = ""
    """The SHA-256 of what is used."""
    cards: int = 0
    offered: str = ""
    """The SHA-256 of what was fetched last and is not the pinned one."""
    fetched_at: float | None = None
    problem: str = ""


class CardCatalogues(TextSource):
    """Catalogues behind URLs: fetched, held to their pins, kept."""

    def __init__(
        self, urls: Sequence[str], rows: BlobRows, *, fetch: Fetch, clock: Callable[[], float]
    ) -> None:
        """Prepare; an address ends in `#sha256=…` where its content is pinned by the settings."""
        super().__init__()
        parted = (url.partition(_PIN) for url in urls)
        self._pins = {url: pin for url, _, pin in parted}
        self._rows = rows
        self._fetch = fetch
        self._clock = clock
        self._kept: dict[str, _KeptCatalogue] = {}
        self._status = {url: CatalogueStatus(url, pin) for url, pin in self._pins.items()}
        self._cards: dict[str, tuple[CardText, ...]] = {}
        self._refreshing = anyio.Lock()

    @property
    def status(self) -> list[CatalogueStatus]:
        """All of them, in the order of the settings."""
        return list(self._status.values())

    async def load(self) -> None:
        """Take over the last good ones; a pin of the settings beats one that was accepted."""
        kept = await _read(self._rows, CATALOGUE_BLOB, dict[str, _KeptCatalogue]) or {}
        for url, pin in self._pins.items():
            one = kept.get(url, _KeptCatalogue())
            self._kept[url] = _KeptCatalogue(pin or one.pin, one.body)
            self._take(url, one.body)
        self._tell()

    async def keep(self, seconds: float) -> None:
        """Fetch all of them again and again until cancelled."""
        while self._pins:
            try:
                await self.refresh()
            except RemitError as error:  # what is in force stays so
                log.warning("card_catalogues_not_kept", problem=error.message)
            await anyio.sleep(seconds)

    async def refresh(self, accept: str = "") -> list[CatalogueStatus]:
        """Fetch all of them now; with `accept`, the content of that SHA-256 becomes the pinned one.

        Raises:
            ConflictError: no catalogue has that content now.
            InvalidDataError: that content is no catalogue.
            StoreError: what is new cannot be kept.
        """
        async with self._refreshing:
            bodies = {url: await self._fetched(url) for url in self._pins}
            found = [url for url, body in bodies.items() if body and _hash(body) == accept]
            if accept and not found:
                hint = "awareness:refresh without 'accept' tells what each has now"
                raise ConflictError(f"no catalogue has the content {accept!r} now", hint=hint)
            before = dict(self._kept)
            for url in found:
                _cards_of(bodies[url])
                self._kept[url] = _KeptCatalogue(accept, self._kept[url].body)
            for url, body in bodies.items():
                if body:
                    self._offer(url, body)
            if self._kept != before:
                with anyio.CancelScope(shield=True):
                    await self._rows.blob_put(CATALOGUE_BLOB, msgspec.msgpack.encode(self._kept))
            self._tell()
            return self.status

    async def _fetched(self, url: str) -> bytes:
        try:
            body = await self._fetch(url)
        except Exception as error:  # whatever a server can come up with
            self._mark(url, problem=str(error)[:500])
            return b""
        self._mark(url, problem="", offered="", fetched_at=self._clock())
        return body

    def _offer(self, url: str, body: bytes) -> None:
        """Put a content in force if it is the pinned one."""
        found, pin = _hash(body), self._kept[url].pin
        if found != pin:
            problem = f"its content has another SHA-256 than the pinned one: {found}"
            self._mark(url, offered=found, problem=problem if pin else "nobody accepted it yet")
        elif self._take(url, body):
            self._kept[url] = _KeptCatalogue(pin, body)

    def _take(self, url: str, body: bytes) -> bool:
        pin = self._kept[url].pin
        self._mark(url, pin=pin)
        if not body or _hash(body) != pin:  # the pin was moved in the settings
            return False
        try:
            cards = _cards_of(body)
        except InvalidDataError as error:
            self._mark(url, problem=error.message)
            return False
        self._cards[url] = tuple(
            CardText(text.encode("utf-8", "replace"), f"{url}#{at}", "catalogue")
            for at, text in enumerate(cards)
        )
        self._mark(url, in_force=pin, cards=len(cards))
        return True

    def _mark(self, url: str, **known: Any) -> None:
        self._status[url] = msgspec.structs.replace(self._status[url], **known)

    def _tell(self) -> None:
        texts = tuple(text for url in self._pins for text in self._cards.get(url, ()))
        problems = tuple(_problem(one) for one in self._status.values() if one.problem)
        if (texts, problems) != (self.texts, self.problems):
            self.texts, self.problems = texts, problems
            self.changed()


def _problem(status: CatalogueStatus) -> Problem:
    used = "what was fetched before stays in force" if status.in_force else "none of it is used"
    hint = "see who can be reached there; it is fetched again"
    if status.offered:
        hint = f"look at it, then: remit call awareness:refresh accept={status.offered}"
    message = f"the catalogue of cards: {status.problem}; {used}"
    return Problem(Place(status.url), "bad_catalogue", message, hint, severity="warning")


def _cards_of(body: bytes) -> list[str]:
    try:
        cards = msgspec.json.decode(body, type=_Document).cards
    except _DAMAGED as error:
        hint = 'it is JSON: {"cards": ["---\\nid: ..."]}'
        raise InvalidDataError(f"it is no catalogue: {str(error)[:200]}", hint=hint) from error
    if len(cards) > MAX_CATALOGUE_CARDS:
        raise InvalidDataError(f"it has more than {MAX_CATALOGUE_CARDS} cards")
    return cards


def _hash(body: bytes) -> str:
    return sha256(body).hexdigest()


async def _read(rows: BlobRows, name: str, kind: type[Any]) -> Any:
    raw = await rows.blob_get(name)
    try:
        return None if raw is None else msgspec.msgpack.decode(raw, type=kind)
    except _DAMAGED as error:
        log.warning("awareness_memory_damaged", blob=name, problem=str(error))
        return None


def fetch_over_http(*, private: bool) -> Fetch:
    """The fetcher of web:web_fetch, with its rules about hosts inside and redirects."""

    async def fetch(url: str) -> bytes:
        fetcher = make_fetcher(private=private, first_byte=10.0, size=MAX_CATALOGUE_BYTES)
        found = await fetcher.fetch(url)
        if found.head.status != 200 or found.body is None or found.cut:  # noqa: PLR2004
            what = f"status {found.head.status}" + (f", cut off: {found.cut}" if found.cut else "")
            raise FetchError(f"no whole document: {what}", reason="status")
        return found.body

    return fetch
