"""The long-lived parts that handlers work with."""

from collections.abc import Callable, Mapping

import msgspec

from remit.runtime.authority import Authority
from remit.runtime.counters import Counters
from remit.runtime.describe import Documented
from remit.runtime.keyring import KeyRing
from remit.store.protocol import Store


class Services(msgspec.Struct, eq=False, kw_only=True):
    """Made once by the app; a handler reaches it through its context."""

    authority: Authority
    handlers: Mapping[str, Documented]
    store: Store
    keyring: KeyRing
    counters: Counters
    clock: Callable[[], float]
    state_value_limit: int = 262_144
