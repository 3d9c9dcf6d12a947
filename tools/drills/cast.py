"""Who plays in a drill: connections, keys, and what they are told."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from stage import PATIENCE, Daemon, Stage

import remit_client
from remit_client.errors import RemitError
from remit_client.keys import Key, new_key

REFUSALS = ("denied", "limit_exceeded")
"""How somebody is refused who asks again and again for what it may not use."""


def connect(
    stage: Stage, key: Key | None = None
) -> AbstractAsyncContextManager[remit_client.Client]:
    """A connection of whoever holds this key; the operator's when there is none."""
    return remit_client.connect(home=stage.home, key=key)


async def add_client(operator: remit_client.Client, name: str, profile: str) -> Key:
    """Register a client under a profile, and answer its key."""
    key = new_key(name)
    data = {"name": name, "public_key": key.public_key, "profile": profile}
    await operator.call("key:add", data)
    return key


def spawned_key(answer: Mapping[str, Any]) -> Key:
    """The key in the answer of `agent:spawn`."""
    made = answer["credentials"]
    return Key(answer["agent_id"], made["public_key"], made["secret_key"])


async def refusal_of(remit: remit_client.Client, event: str, data: Any = None) -> str:
    """The code with which an event is refused, or nothing when it is answered."""
    try:
        await remit.call(event, data, timeout=PATIENCE)
    except RemitError as error:
        return error.code
    return ""


def resident(daemon: Daemon) -> float:
    """The memory that a daemon holds now, in MB."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text("ascii").splitlines()
    line = next(row for row in status if row.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
