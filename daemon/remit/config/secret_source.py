"""Where the values of secrets come from that upstreams.yaml names.

The variable NAME, or else the file that the variable NAME_FILE names, as containers mount secrets.
An empty value counts as missing: a server must not be asked with half a header.
"""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

MAX_SECRET = 64 * 1024


class Secret(msgspec.Struct, frozen=True):
    """A value, or a sentence why there is none. It does not show its value."""

    value: str | None
    why: str = ""

    def __repr__(self) -> str:
        return f"Secret({self.why or 'there'})"


def find_secret(name: str, env: Mapping[str, str] = os.environ) -> Secret:
    """Look a secret up; it is looked up anew each time, so that it can be changed."""
    if env.get(name):
        return Secret(env[name])
    file = env.get(f"{name}_FILE")
    if not file:
        return Secret(None, f"the variable {name} is not set, nor is {name}_FILE")
    try:
        with Path(file).open("rb") as stream:
            raw = stream.read(MAX_SECRET + 1)
        text = raw.decode().rstrip("\r\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return Secret(None, f"the file that {name}_FILE names cannot be read: {why}")
    if len(raw) > MAX_SECRET:
        return Secret(None, f"the file that {name}_FILE names has over {MAX_SECRET:,} bytes")
    return Secret(text or None, "" if text else f"the file that {name}_FILE names is empty")


def secret_value(name: str) -> str | None:
    """The value of a secret, or None."""
    return find_secret(name).value
