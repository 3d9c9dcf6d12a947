"""The head of an answer is believed as far as it can be; its body keeps within its limit."""

import tracemalloc
import zlib

import pytest

from remit.features.web.fetch import Body, ResponseHead

BOMB = 50_000_000
LIMIT = 10_000


def head(**headers: str) -> ResponseHead:
    named = ((name.replace("_", "-").encode(), value.encode()) for name, value in headers.items())
    return ResponseHead.read(200, named)


@pytest.mark.parametrize(
    ("disposition", "url", "name"),
    [
        ("", "http://h/a/b.html?c=d", "b.html"),
        ("", "http://h/a/b%20c.html", "b c.html"),
        ("", "http://h/a/..%2f..%2fetc%2fpasswd", "passwd"),
        ("", "http://h/dir/", "dir"),
        ("", "http://h/", None),
        ("", "http://h/%2e%2e", None),
        ("attachment; filename=x.pdf", "http://h/y", "x.pdf"),
        ('attachment; filename="a \\"b\\".pdf"', "http://h/y", 'a "b".pdf'),
        ('attachment; filename="../../x.sh"', "http://h/y", "x.sh"),
        ('attachment; filename="C:\\\\win\\\\x.exe"', "http://h/y", "x.exe"),
        ("attachment; filename=a; filename*=UTF-8''%e2%82%ac.txt", "http://h/y", "€.txt"),
        ("attachment; filename*=utf-7''x", "http://h/y", "y"),
        ("attachment; filename=a\tb", "http://h/y", "a"),
        ('inline; filename=""', "http://h/y", "y"),
    ],
)
def test_the_name_of_a_file_is_never_a_path(disposition: str, url: str, name: str | None) -> None:
    assert head(content_disposition=disposition).filename(url) == name


@pytest.mark.parametrize(
    ("kind", "textual"),
    [
        ("text/html", True),
        ("TEXT/CSV; charset=x", True),
        ("application/vnd.api+json", True),
        ("image/svg+xml", True),
        ("application/octet-stream", True),
        ("", True),
        ("image/png", False),
        ("application/zip", False),
        ("video/mp4", False),
    ],
)
def test_the_media_type_says_whether_there_is_text_to_expect(kind: str, *, textual: bool) -> None:
    assert head(content_type=kind).is_textual == textual


def test_headers_are_shown_without_what_could_harm_and_no_longer_than_needed() -> None:
    found = head(content_type="text/x\x07\t y" + "z" * 1000, last_modified="\x1b[31m")
    assert len(found.content_type or "") == 256
    assert (found.content_type or "").startswith("text/x y")
    assert found.last_modified == "[31m"


@pytest.mark.parametrize("text", ["-1", "1e9", "9" * 40, " 5", "٣"])
def test_a_length_that_is_none_is_not_believed(text: str) -> None:
    assert head(content_length=text).stated_size is None


def test_a_page_without_a_media_type_is_known_by_its_start() -> None:
    assert head().is_page(b"\n <!DOCTYPE html><p>")
    assert not head(content_type="text/plain").is_page(b"<html>")


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
