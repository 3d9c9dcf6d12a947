"""What was taken off the socket and is not looked at yet: each client in turn, within its bytes."""

from collections import deque

import zmq

from remit.faces.zmq.frames import Codec
from remit.faces.zmq.peers import Peer

_EACH = 512
"""What a message costs beside its bytes."""
Letter = tuple[Peer, Codec, bytes, zmq.Frame]
"""Who sent it, in which version, of which kind, and the body."""


class _Heap:
    """The messages of one client, in the order in which they came."""

    __slots__ = ("bytes", "letters", "surplus")

    def __init__(self) -> None:
        self.letters: deque[Letter] = deque()
        self.bytes = 0
        self.surplus = 0


class Inbox:
    """Messages that wait.

    libzmq itself could hold a client back only by not reading on, and that is not safe. So all is
    taken from it at once. A client that has sent too much is told so, and cut off if it goes on.
    """

    def __init__(self, limit: int) -> None:
        """Begin empty; of one client so many bytes are kept, and as many refused one by one."""
        self.limit = limit
        self._heaps: dict[str, _Heap] = {}
        self._turns: deque[str] = deque()
        """Whose turn it is; everybody who has something here stands in it once."""

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, letter: Letter) -> bool:
        """Keep a message for later; False when its sender has too much here already."""
        key, size = letter[0].key, len(letter[3]) + _EACH
        heap = self._heaps.get(key)
        if heap is None:
            heap = self._heaps[key] = _Heap()
            self._turns.append(key)
        elif heap.bytes + size > self.limit:
            heap.surplus += size
            return False
        heap.bytes += size
        heap.letters.append(letter)
        return True

    def is_flooded(self, peer: Peer) -> bool:
        """Tell whether a client goes on although it was told that it sends too much."""
        heap = self._heaps.get(peer.key)
        return heap is not None and heap.surplus > self.limit

    def next(self) -> Letter:
        """Take out the oldest message of the client whose turn it is."""
        key = self._turns.popleft()
        heap = self._heaps[key]
        letter = heap.letters.popleft()
        if heap.letters:
            heap.bytes -= len(letter[3]) + _EACH
            self._turns.append(key)
        else:
            del self._heaps[key]
        return letter
