"""The parts that every daemon has, whatever it stores in and listens on."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from remit.runtime.approvals import Approvals
from remit.runtime.archive import Archive
from remit.runtime.auditor import Auditor
from remit.runtime.authority import Authority
from remit.runtime.capability_reviews import CapabilityReviews, Decisions
from remit.runtime.counters import Counters
from remit.runtime.courier import Courier
from remit.runtime.handler import Handler
from remit.runtime.keyring import KeyRing
from remit.runtime.mailbox import Mailbox
from remit.runtime.meter import Meter
from remit.runtime.reloader import Reloader
from remit.runtime.services import Services
from remit.store.protocol import Store


def make_services(  # noqa: PLR0913 - one argument a part
    authority: Authority,
    handlers: Mapping[str, Handler],
    store: Store,
    keyring: KeyRing,
    *,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = time.time,
    audit_sample: float = 0.0,
    audit_folder: Path | None = None,
    audit_keep: int = 0,
    approval_timeout: float = 300.0,
    approval_wait: float = 20.0,
    decisions: Decisions | None = None,
    state_value_limit: int = 262_144,
) -> Services:
    """Put the long-lived parts together."""
    courier = Courier(authority, wall_clock)
    reloader = Reloader(authority, courier, store)
    auditor = Auditor(
        store,
        clock=wall_clock,
        show=courier.show,
        sample=audit_sample,
        archive=Archive(audit_folder) if audit_folder else None,
        keep=audit_keep,
    )
    return Services(
        authority=authority,
        handlers=handlers,
        store=store,
        keyring=keyring,
        courier=courier,
        mailbox=Mailbox(store, courier, authority, wall_clock=wall_clock),
        reloader=reloader,
        auditor=auditor,
        approvals=Approvals(
            store,
            auditor,
            authority.fleet,
            courier.show_holders,
            clock=wall_clock,
            timeout=approval_timeout,
            wait=approval_wait,
        ),
        reviews=CapabilityReviews(
            store, authority, courier, reloader, decisions or {}, clock=wall_clock
        ),
        meter=Meter(clock),
        counters=Counters(started_at=clock()),
        clock=clock,
        wall_clock=wall_clock,
        state_value_limit=state_value_limit,
    )
