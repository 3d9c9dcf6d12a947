"""The long-lived parts that handlers work with."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from remit.runtime.authority import Authority
from remit.runtime.counters import Counters
from remit.runtime.handler import Handler
from remit.runtime.keyring import KeyRing
from remit.store.protocol import Store

if TYPE_CHECKING:
    from collections.abc import Mapping


class Services(msgspec.Struct, eq=False, kw_only=True):
    """Made once by the app; a handler reaches it through its context."""

    authority: Authority
    handlers: "Mapping[str, Handler]"
    store: Store
    keyring: KeyRing
    counters: Counters
    clock: Callable[[], float]
    state_value_limit: int = 262_144
