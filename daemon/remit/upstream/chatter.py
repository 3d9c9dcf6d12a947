"""What a server prints beside the protocol: a few lines of it for the log, the last for reasons."""

from typing import Any

import anyio

from remit.upstream.masks import Masks

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
