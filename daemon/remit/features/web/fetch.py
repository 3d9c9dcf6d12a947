"""Fetching from hosts that nobody trusts: every hop is checked, every wait and every byte counted.

No cookies, no proxy, no password and nothing else of the environment goes along. httpcore is used
without httpx around it, because all that httpx adds would have to be switched off here. Each fetch
may hold some megabytes for half a minute, so few run at once.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from ssl import SSLContext
from typing import Any, Literal

import anyio
import anyio.lowlevel
import httpcore
import httpx
import msgspec

from remit import __version__
from remit.errors import DeniedError, FetchError, InvalidDataError, LimitError
from remit.features.web.response import Body, ResponseHead
from remit.features.web.target import CheckedBackend, Target, parse_target
from remit.model.paths import HostRules, WebAccess

Method = Literal["GET", "HEAD"]
Cut = Literal["", "time", "size", "broken"]

REDIRECTS = 5
_HEADERS = (
    ("User-Agent", f"remit/{__version__} (web_fetch)"),
    ("Accept", "text/html, text/markdown, text/plain, application/json, */*;q=0.5"),
    ("Accept-Encoding", "gzip, deflate"),  # what can be decompressed under a limit
    ("Connection", "close"),
)
_ENCODINGS = frozenset({"", "gzip", "x-gzip", "deflate"})
_BODILESS = frozenset({204, 205, 304})
IN_ALL = 32
"""Fetches that run at once."""
OF_ONE_TREE = 4
"""So that no agent, with all its children, takes the places of all others."""


class Bounds(msgspec.Struct, frozen=True):
    """How long and how much."""

    first_byte: float = 1.0
    """Seconds of a hop until its head is there: name, connection, handshake and all."""
    body: float = 30.0
    size: int = 5_000_000
    """Bytes of a body, both before and after it is decompressed."""


class FetchResult(msgspec.Struct, frozen=True):
    """The answer of a web server."""

    url: str
    """Where it came from in the end."""
    head: ResponseHead
    body: bytes | None = None
    """None: there is none, or none that could be read as text."""
    cut: Cut = ""


class Fetcher:
    """Fetches for one caller."""

    def __init__(
        self,
        access: WebAccess,
        rules: Sequence[HostRules] = (),
        *,
        bounds: Bounds | None = None,
        backend: Callable[[], httpcore.AsyncNetworkBackend] | None = None,
    ) -> None:
        """Prepare.

        Args:
            access: what the operator allows at all.
            rules: what holds for this caller besides; each must agree.
            bounds: how long and how much.
            backend: makes connections; tests bring their own.
        """
        self._private = access.private
        self._rules = (access.hosts, *rules)
        self._bounds = bounds or Bounds()
        self._backend = backend or self._checked

    async def fetch(self, url: str, method: Method = "GET") -> FetchResult:
        """Fetch, over up to five redirects.

        Raises:
            InvalidDataError: the URL is not one that is fetched from.
            DeniedError: the host, or one that it leads to, may not be asked.
            FetchError: nothing came of it.
        """
        target = parse_target(url, any_port=self._private)
        for _ in range(REDIRECTS + 1):
            self._check(target)
            found = await self._hop(target, method)
            location = found.head.location
            if not location:
                return found
            try:
                target = target.follow(location, any_port=self._private)
            except InvalidDataError as error:
                message = f"{target.name!r} leads to where nothing is fetched: {error.message}"
                raise FetchError(message, reason="redirect") from error
        message = f"{target.name!r} leads on after {REDIRECTS} redirects"
        raise FetchError(message, reason="redirect")

    def _checked(self) -> httpcore.AsyncNetworkBackend:
        return CheckedBackend(private=self._private)

    def _check(self, target: Target) -> None:
        if not all(rule.allow(target.name) for rule in self._rules):
            message = f"the host {target.host!r} is not one that you may fetch from"
            raise DeniedError(message, reason="limit", hint="an operator lists hosts")

    async def _hop(self, target: Target, method: Method) -> FetchResult:
        pool = httpcore.AsyncConnectionPool(
            ssl_context=_ssl_context() if target.scheme == "https" else None,
            max_connections=1,
            max_keepalive_connections=0,
            network_backend=self._backend(),
        )
        async with pool:
            response = await self._ask(pool, target, method)
            try:
                return await self._read(target, method, response)
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(self._bounds.first_byte):
                    await response.aclose()

    async def _ask(
        self, pool: httpcore.AsyncConnectionPool, target: Target, method: Method
    ) -> httpcore.Response:
        try:
            with anyio.fail_after(self._bounds.first_byte):
                return await pool.handle_async_request(_request(target, method))
        except (TimeoutError, httpcore.TimeoutException) as error:
            seconds = f"{self._bounds.first_byte:g}"
            unit = "second" if seconds == "1" else "seconds"
            message = f"server did not respond within {seconds} {unit}"
            raise FetchError(message, reason="timeout") from error
        except (httpcore.NetworkError, OSError) as error:
            message = f"no connection to {target.name!r}: {str(error)[:200]}"
            raise FetchError(message, reason="connection") from error
        except (httpcore.ProtocolError, httpcore.UnsupportedProtocol, ValueError) as error:
            message = f"{target.name!r} does not speak HTTP: {str(error)[:200]}"
            raise FetchError(message, reason="protocol") from error

    async def _read(
        self, target: Target, method: Method, response: httpcore.Response
    ) -> FetchResult:
        head = ResponseHead.read(response.status, response.headers)
        nothing = FetchResult(target.url, head)
        if head.location or method == "HEAD" or head.status in _BODILESS:
            return nothing
        if not head.is_textual or head.encoding not in _ENCODINGS:
            return nothing
        body = Body(head.encoding, limit=self._bounds.size)
        cut: Cut = "time"
        with anyio.move_on_after(self._bounds.body):
            cut = await _drain(response, body)
        return FetchResult(target.url, head, bytes(body.data), cut)


async def _drain(response: httpcore.Response, body: Body) -> Cut:
    """Read until the end, or until it is enough."""
    try:
        # Chunks as they come: with a size, what waits to be whole would be lost at the time-out.
        async for chunk in response.aiter_stream():
            body.feed(chunk)
            if not body.wants_more:
                break
            await anyio.lowlevel.checkpoint()  # a fast sender must not keep the loop to itself
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError):
        return "broken"
    body.end()
    if body.is_full:
        return "size"
    return "broken" if body.is_broken else ""


def _request(target: Target, method: Method) -> httpcore.Request:
    url = httpcore.URL(
        scheme=target.scheme.encode(),
        host=target.host.encode(),
        port=target.port,
        target=target.path,
    )
    usual = httpx.URL(target.url).netloc
    headers: list[tuple[Any, Any]] = [("Host", usual), *_HEADERS]
    return httpcore.Request(method, url, headers=headers)


@cache
def _ssl_context() -> SSLContext:
    """Made once: reading the authorities takes longer than most pages."""
    return httpx.create_ssl_context(trust_env=False)


class FetchSlots:
    """Places for fetches; one too many of a tree is refused, one too many in all waits."""

    def __init__(self) -> None:
        self._places = anyio.CapacityLimiter(IN_ALL)
        self._taken: Counter[str] = Counter()

    @asynccontextmanager
    async def place(self, root: str) -> AsyncGenerator[None]:
        """Hold a place for the tree of agents under `root`.

        Raises:
            LimitError: the tree has all that it gets.
        """
        if self._taken[root] >= OF_ONE_TREE:
            raise LimitError(
                f"{OF_ONE_TREE} fetches of yours are under way",
                hint="wait for one of them",
                details={"limit": "web_fetch", "retry_after": 1.0},
            )
        self._taken[root] += 1
        try:
            async with self._places:
                yield
        finally:
            self._taken[root] -= 1
            self._taken += Counter()  # forget who has none


SLOTS = FetchSlots()
