"""Secrets of a server kept out of everything that it or a failure says."""

from collections.abc import Iterable, Mapping
from typing import Any

import anyio
import msgspec

MASK = "***"
_SHORTEST = 4
"""Shorter ones cannot be told from other text; replacing `1` would tell more than it hides."""


class Masks:
    """The secrets that one server was started with."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {part for secret in secrets for part in (secret, *secret.split())}
        # Longest first: one may be a part of another.
        self._secrets = sorted(
            (one for one in known if len(one) >= _SHORTEST and one not in ("Bearer", "Basic")),
            key=len,
            reverse=True,
        )
        self._on_the_wire = [msgspec.json.encode(one)[1:-1] for one in self._secrets]

    @property
    def longest(self) -> int:
        """Characters of the longest secret."""
        return len(self._secrets[0]) if self._secrets else 0

    def text(self, text: str) -> str:
        """A text without the secrets."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def value(self, value: Any, encoded: bytes) -> Any:
        """A JSON value without the secrets.

        Args:
            value: what may have them.
            encoded: the same as `msgspec.json` writes it, where a look is quick.
        """
        if not any(secret in encoded for secret in self._on_the_wire):
            return value
        return self._inside(value)

    def _inside(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self._inside(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._inside(one) for one in value]
        return value


# How fast a stranger is listened to.


class Pace:
    """So much in a second, and not more: whoever writes faster waits for us.

    A server that floods us is slowed by its own full pipe, and costs no more than this.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._since = 0.0
        self._count = 0

    async def spend(self, amount: int = 1) -> None:
        """Count something, and wait when it was too much."""
        now = anyio.current_time()
        if now - self._since >= 1:
            self._since, self._count = now, 0
        self._count += amount
        if self._count > self._most:
            await anyio.sleep(self._since + 1 - now)


# What a server prints beside the protocol: a few lines of it for the log, the last for reasons.


_LONGEST = 300
_READ = _LONGEST * 16
"""Bytes of a line that are looked at."""
_PER_SPAN = 20
_SPAN = 60.0


class Chatter:
    """Lines of one stream of a server, without secrets and bounded in length and number."""

    def __init__(self, log: Any, masks: Masks, *, stream: str) -> None:
        self._log = log
        self._masks = masks
        self._stream = stream
        self._since = 0.0
        self._logged = 0
        self._left = b""
        self.last = ""

    def hear(self, piece: bytes) -> None:
        """Take some output, which may end in the middle of a line."""
        *lines, self._left = (self._left + piece).split(b"\n")
        self._left = self._left[: _READ + 1]
        for line in lines if len(lines) <= _PER_SPAN else [*lines[: _PER_SPAN - 1], lines[-1]]:
            self.say(line)

    def say(self, line: bytes) -> None:
        """Take one line."""
        # Masked before it is cut: half a secret is one too.
        text = self._masks.text(line[:_READ].decode(errors="replace").strip())
        if len(line) > _READ:  # of what was cut here its end may be one
            text = text[: max(0, len(text) - self._masks.longest)]
        shown = "".join(c if c.isprintable() else " " for c in text[:_LONGEST])
        if not shown:
            return
        self.last = shown
        now = anyio.current_time()
        if now - self._since >= _SPAN:
            self._since, self._logged = now, 0
        self._logged += 1
        if self._logged <= _PER_SPAN:
            self._log.info("upstream_said", stream=self._stream, line=shown)
        elif self._logged == _PER_SPAN + 1:
            self._log.info("upstream_says_too_much", stream=self._stream)

    def rest(self) -> None:
        """The stream has ended: what is left is a line too."""
        left, self._left = self._left, b""
        self.say(left)
