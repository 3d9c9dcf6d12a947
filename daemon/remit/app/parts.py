"""The parts that every daemon has, whatever it stores in and listens on."""

import time
from collections.abc import Callable, Mapping

from remit.runtime.auditor import Auditor
from remit.runtime.authority import Authority
from remit.runtime.counters import Counters
from remit.runtime.courier import Courier
from remit.runtime.handler import Handler
from remit.runtime.keyring import KeyRing
from remit.runtime.meter import Meter
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
    state_value_limit: int = 262_144,
) -> Services:
    """Put the long-lived parts together."""
    courier = Courier(authority, wall_clock)
    return Services(
        authority=authority,
        handlers=handlers,
        store=store,
        keyring=keyring,
        courier=courier,
        auditor=Auditor(store, clock=wall_clock, show=courier.show, sample=audit_sample),
        meter=Meter(clock),
        counters=Counters(started_at=clock()),
        clock=clock,
        wall_clock=wall_clock,
        state_value_limit=state_value_limit,
    )
