"""How many connections this process can have: its descriptors, shared out before it listens."""

import os
import resource
import sys

import msgspec

from remit.config.settings.table import Settings
from remit.errors import SettingsError

_LATER = 16
"""What is opened after the sharing: libzmq's own, listening sockets, watchers."""
_OWN = 12
"""What stays free for files, processes and links of our own."""
_LEAST = 16
"""Connections without which nobody could work."""


class Shares(msgspec.Struct, frozen=True):
    """Connections of each sort."""

    clients: int
    per_key: int
    operators: int
    silent: int
    silent_operators: int
    http: int


def share_descriptors(settings: Settings) -> Shares:
    """Share out what `ulimit -n` leaves.

    Raises:
        SettingsError: it leaves too little to work with.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = limit - _open_now() - _LATER - _OWN
    if free < _LEAST:
        message = f"a process may have {limit} descriptors here, which is too few"
        hint = f"raise it: ulimit -n {limit - free + 2 * _LEAST}"
        raise SettingsError(message, hint=hint)
    operators = min(16, max(6, free // 8))
    silent_operators = min(8, max(2, free // 16))
    silent = min(1024, max(3, free // 5))
    http = min(1024, max(3, free // 5)) if settings.http else 0
    clients = free - operators - silent_operators - silent - http
    if settings.max_connections:
        clients = min(clients, settings.max_connections)
    return Shares(
        clients=clients,
        per_key=min(settings.max_connections_per_key, max(2, clients // 2)),
        operators=operators,
        silent=silent,
        silent_operators=silent_operators,
        http=http,
    )


def _open_now() -> int:
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    return len(os.listdir(folder))  # noqa: PTH208 - numbers, and how many is what counts
