"""A body takes no more memory than its limit, however much would come out of it."""

import tracemalloc
import zlib

import pytest

from remit.features.web.head import Body

BOMB = 50_000_000
LIMIT = 10_000


@pytest.mark.parametrize(("encoding", "wbits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
def test_a_bomb_is_never_inflated_beyond_the_limit(encoding: str, wbits: int) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    bomb = packer.compress(bytes(BOMB)) + packer.flush()
    body = Body(encoding, limit=LIMIT * 100)
    tracemalloc.start()
    body.feed(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert body.is_full
    assert len(body.data) == LIMIT * 100
    assert peak < BOMB / 10


def test_what_is_not_compressed_is_taken_as_it_is() -> None:
    body = Body("", limit=LIMIT)
    body.feed(b"a")
    body.feed(b"b")
    body.end()
    assert (bytes(body.data), body.is_full, body.is_broken) == (b"ab", False, False)
