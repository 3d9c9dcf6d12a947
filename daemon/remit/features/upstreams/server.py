"""One upstream server while the daemon runs: how it is written down, its pins, and its link."""

from collections.abc import Callable

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from remit.errors import RemitError
from remit.features.upstreams.client.types import Health, LeftOut
from remit.features.upstreams.pins import KnownServer
from remit.features.upstreams.router import Line, OnListed
from remit.model.upstream import Upstream

log = structlog.get_logger()

MakeLink = Callable[[Upstream, OnListed], Line]
_MOST_TOLD = 5
_REFRESH_SECONDS = 5.0


class UpstreamServer:
    """What is known of a server, and the task that keeps its link."""

    def __init__(self, upstream: Upstream, known: KnownServer, *, problem: str = "") -> None:
        self.upstream = upstream
        self.known = known
        self.problem = problem
        """Why its events are not as they should be; empty when they are."""
        self.unkept = ""
        """Why its pins could not be written down; empty when they could."""
        self.left_out = 0
        self.left_out_reasons: tuple[LeftOut, ...] = ()
        self.link: Line | None = None
        self._scope: anyio.CancelScope | None = None
        self._refreshing = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.upstream.name

    @property
    def health(self) -> Health:
        """How it is now."""
        return Health() if self.link is None else self.link.health

    def start(self, link: Line, tasks: TaskGroup) -> None:
        """Keep its link in a task of its own."""
        self.link = link
        self._scope = anyio.CancelScope()
        tasks.start_soon(self._keep, link, self._scope)

    async def _keep(self, link: Line, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await link.run()
            except Exception:  # a server that breaks its link must not end the daemon
                self.problem = "its link has broken; the log says why"
                log.exception("upstream_broken", upstream=self.name)

    def stop(self) -> None:
        """End its link; the process of the server ends with it."""
        if self._scope is not None:
            self._scope.cancel()

    def can_become(self, upstream: Upstream) -> bool:
        """Tell whether another entry is about the same process or address, reached the same way."""
        return _reached(self.upstream) == _reached(upstream)

    def is_same(self, known: KnownServer) -> bool:
        """Tell whether nothing worth keeping has changed."""
        return msgspec.structs.replace(known, listed_at=self.known.listed_at) == self.known

    def refresh_soon(self, tasks: TaskGroup) -> None:
        """Ask it for its tools again if it runs; not more than once in a while."""
        if not self._refreshing and self.health.state == "ready":
            self._refreshing = True
            tasks.start_soon(self._refresh)

    async def _refresh(self) -> None:
        try:
            if self.link is not None:
                await self.link.refresh()
        except RemitError as error:
            log.info("upstream_not_refreshed", upstream=self.name, problem=error.message)
        except Exception:  # nor must a list that nobody asked for
            log.exception("upstream_not_refreshed", upstream=self.name)
        await anyio.sleep(_REFRESH_SECONDS)
        self._refreshing = False

    def tell_changes(self, before: KnownServer) -> None:
        """Log which tools have newly come to wait: each that was trusted, and how many others."""
        waiting = []
        for tool, pin in self.known.tools.items():
            old = before.tools.get(tool)
            waited = old is not None and old.status == "pending"
            if pin.status != "pending" or (waited and old == pin):
                continue
            if old is None or old.status != "trusted":
                waiting.append(tool)
                continue
            log.warning(
                "tool_quarantined",
                upstream=self.name,
                tool=tool,
                reason=pin.reason,
                hint="remit review list --full",
            )
        if waiting:
            log.warning(
                "tools_wait",
                upstream=self.name,
                count=len(waiting),
                first=sorted(waiting)[:_MOST_TOLD],
                hint="remit review list --kind tool",
            )


def _reached(upstream: Upstream) -> Upstream:
    """An entry without what only decides about its tools."""
    return msgspec.structs.replace(
        upstream, include=(), exclude=(), effects={}, trust="review", place=None
    )
