"""Reviews in a daemon: the gate before calls that need an approval, and stored decisions."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec

from remit.config.settings.table import Settings
from remit.features.reviews.approvals import Approvals
from remit.features.reviews.calls import CallReviews
from remit.features.reviews.capabilities import (
    CAPABILITY_REVIEWS,
    CapabilityReviews,
    load_decisions,
)
from remit.features.reviews.desk import ReviewDesk
from remit.kernel.authority.approvals import Decisions, approvals_in
from remit.kernel.dispatch.kernel import Kernel, Setup, Startup


class StoredDecisions(msgspec.Struct, frozen=True):
    """What was decided about capabilities in earlier runs."""

    decisions: Decisions = {}


async def _restore(startup: Startup) -> None:
    decisions = await load_decisions(startup.store)
    startup.put(StoredDecisions(decisions))
    startup.approvals = approvals_in(decisions)


def _build(kernel: Kernel, startup: Startup) -> None:
    approvals = Approvals(
        kernel.store,
        kernel.audit_log,
        kernel.authority.fleet,
        kernel.delivery.show_holders,
        clock=kernel.lapsing_clock,
        timeout=startup.settings.approval_timeout,
        wait=startup.settings.approval_wait,
    )
    kernel.gate = approvals
    reviews = CapabilityReviews(
        kernel.store,
        kernel.authority,
        kernel.delivery,
        kernel.reloader,
        startup.take(StoredDecisions, StoredDecisions).decisions,
        clock=kernel.wall_clock,
    )
    desk = ReviewDesk()
    desk.register(CallReviews(approvals).kind)
    desk.register(CAPABILITY_REVIEWS)
    kernel.provide(approvals, reviews, desk)


async def _load(kernel: Kernel) -> None:
    await kernel.service(Approvals).load()


@asynccontextmanager
async def _run(kernel: Kernel, _settings: Settings) -> AsyncGenerator[None]:
    async with kernel.service(Approvals).lapsing():
        yield


SETUP = Setup(restore=_restore, build=_build, load=_load, run=_run)
