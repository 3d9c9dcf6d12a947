"""Room on the disk that is kept for what must be written when the disk is full.

A file of a fixed size beside the database. When a write finds the disk full, the file is emptied,
and until it can be filled again only what is essential is written: denials, and rights that are
taken away. So no caller can use up what was kept; another program on the same disk can.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

_PAUSE = 0.1
"""Seconds between two attempts to fill it again."""
_CHUNK = 65_536


class Reserve:
    """The file; without a path or a size there is none, and nothing is ever kept back."""

    def __init__(
        self,
        path: Path | None = None,
        size: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path if size > 0 else None
        self._size = size
        self._clock = clock
        self._next_try = 0.0
        self.is_spent = False
        """Whether the disk is full, as far as is known."""

    def fill(self) -> bool:
        """Take the room, or note that there is none; tells whether it is kept now."""
        self._next_try = self._clock() + _PAUSE
        try:
            self._allocate()
        except OSError:
            self._empty()
            self.is_spent = self._path is not None
        else:
            self.is_spent = False
        return not self.is_spent

    def release(self) -> bool:
        """Give the room back, because the disk is full; tells whether there was any."""
        if self._path is None or self.is_spent:
            return False
        self.is_spent = True
        self._next_try = self._clock() + _PAUSE
        return self._empty()

    def can_write(self) -> bool:
        """Tell whether also what is not essential may be written; looks whether there is room."""
        if not self.is_spent:
            return True
        return self._clock() >= self._next_try and self.fill()

    def _allocate(self) -> None:
        if self._path is None:
            return
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            have = os.fstat(descriptor).st_size
            if have > self._size:
                os.ftruncate(descriptor, self._size)
            # Bytes that were written, not a promise: a hole in a file keeps no room.
            while have < self._size:
                have += os.pwrite(descriptor, bytes(min(_CHUNK, self._size - have)), have)
        finally:
            os.close(descriptor)

    def _empty(self) -> bool:
        if self._path is None:
            return False
        try:
            os.truncate(self._path, 0)
        except OSError:
            return False
        return True
