"""A feature: one folder of `features/`, and what it adds to a daemon.

`app/features.py` lists them. A daemon without one of them starts all the same: its events are
unknown then, and whoever asks for its services is told that they are not served.
"""

from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from remit.kernel.dispatch.kernel import Setup


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """What is imported of a feature, and when; naming it here costs nothing."""

    name: str
    events: tuple[str, ...] = ()
    """Modules with its decorated handlers, imported when the daemon starts and never by commands
    that can do without them."""
    requires: tuple[str, ...] = ()
    """Features without which this one is left out as well."""
    setup: str = ""
    """The module whose `SETUP` opens its services; empty where it has none."""

    def load_setup(self) -> "Setup | None":
        """Import what opens its services."""
        if not self.setup:
            return None
        found: Setup = import_module(self.setup).SETUP
        return found
