"""A feature: one folder of `features/`, and what it adds to a daemon.

`Feature` is its one value, in its `__init__.py`: names alone, so that commands import nothing of
it. `Setup` opens its services, when a daemon starts from a `Startup`.

`app/features.py` lists them. A daemon without one of them starts all the same: its events are
unknown then, and whoever asks for its services is told that they are not served. Installed packages
add to features by entry points.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

if TYPE_CHECKING:
    from remit.config.settings.table import Settings
    from remit.kernel.authority.revision import HandlerTable
    from remit.kernel.dispatch.context import Kernel
    from remit.kernel.store.database import Database
    from remit.model.capability import RuntimeCapability
    from remit.policy.catalogue import Approval

Part = TypeVar("Part")

_ENTRY_POINTS_LIMIT = 65_536


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """The modules of a feature by name; importing this imports none of them."""

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


class Startup(msgspec.Struct, eq=False):
    """The state of a daemon that starts, before its first revision is compiled."""

    settings: "Settings"
    database: "Database"
    table: "HandlerTable"
    """The handlers of the first revision; a feature adds those that came at run time."""
    approvals: "frozenset[Approval]" = frozenset()
    capabilities: "tuple[RuntimeCapability, ...]" = ()
    """Capabilities that were made at run time."""
    parts: dict[type, Any] = {}
    """By type: what one step of a feature leaves to the next, and what a test replaces."""

    def put(self, *parts: object) -> None:
        """Leave something to a later step."""
        self.parts |= {type(part): part for part in parts}

    def take(self, kind: type[Part], default: Callable[[], Part]) -> Part:
        """What was put there of that type, else the default."""
        found: Part | None = self.parts.get(kind)
        return default() if found is None else found


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The steps by which a feature opens, in the order of a start; each may be left out."""

    restore: Callable[[Startup], Awaitable[None]] | None = None
    """Before the definitions compile: what outlived the last run and decides about the first
    revision, such as handlers that came at run time, capabilities and approvals."""
    build: "Callable[[Kernel, Startup], None] | None" = None
    """Make the services and hand them to the kernel; no input or output."""
    load: "Callable[[Kernel], Awaitable[None]] | None" = None
    """Before the first request: read what the services kept."""
    run: "Callable[[Kernel, Settings], AbstractAsyncContextManager[None]] | None" = None
    """Beside the faces, for as long as they serve: opened in the order of `app/features.py` and
    closed in the opposite one."""


def entry_points(group: str) -> list[tuple[str, str]]:
    """The names and values of what installed packages offer in a group, in order.

    Reads the metadata of installed packages directly: importlib.metadata does the same in ten times
    the time, and every command pays for this.
    """
    found: set[tuple[str, str]] = set()
    for folder in dict.fromkeys(sys.path):
        try:
            entries = os.listdir(folder or ".")  # noqa: PTH208 - a Path for each is the cost
        except OSError:
            continue
        for entry in entries:
            if entry.endswith((".dist-info", ".egg-info")):
                found.update(_offered(group, f"{folder or '.'}/{entry}/entry_points.txt"))
    return sorted(found)


def _offered(group: str, path: str) -> list[tuple[str, str]]:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            raw = file.read(_ENTRY_POINTS_LIMIT)
        text = raw.decode() if group.encode() in raw else ""
    except (OSError, UnicodeDecodeError):
        return []
    inside = False
    found = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line:
            name, _, value = line.partition("=")
            found.append((name.strip(), value.strip()))
    return found
