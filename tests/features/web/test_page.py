"""Bytes become text, whatever was said about them."""

import codecs
import encodings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.features.web.page import decode_page, find_codec


@pytest.mark.parametrize(
    ("data", "stated", "text"),
    [
        pytest.param("é".encode(), "", "é", id="utf-8-unstated"),
        pytest.param(b"\xe9\x80", "", "é€", id="fallback"),
        pytest.param(b"\x80", "ISO-8859-1", "€", id="latin-1-is-windows-1252"),
        pytest.param("привет".encode("koi8-r"), "KOI8-R", "привет", id="header"),
        pytest.param("日本".encode("shift_jis"), "x-sjis", "日本", id="an-old-name"),
        pytest.param("中文".encode("gb18030"), '"gb2312"', "中文", id="quoted"),
        pytest.param(b"\xef\xbb\xbfa", "koi8-r", "a", id="mark-beats-header"),
        pytest.param("\ufeffa".encode("utf-16-le"), "", "a", id="utf-16-mark"),
        pytest.param(b'<meta charset="windows-1251">\xe0', "", None, id="meta"),
        pytest.param(
            b'<?xml version="1.0" encoding="iso-8859-7"?>\xe1', "", None, id="xml-declaration"
        ),
        pytest.param(b"<META CHARSET=utf-16>\xc3\xa9", "", "<META CHARSET=utf-16>é", id="a-lie"),
        pytest.param(b"\xff", "utf-8", "\ufffd", id="wrong"),
        pytest.param(b"abc", "rot13", "abc", id="no-charset-of-pages"),
        pytest.param(b"\\u0041", "unicode_escape", "\\u0041", id="no-escapes"),
        pytest.param(b"+AEE-", "utf-7", "+AEE-", id="no-utf-7"),
    ],
)
def test_a_page_is_decoded(data: bytes, stated: str, text: str | None) -> None:
    found = decode_page(data, stated)
    assert found == text if text is not None else found[-1] in "\u0430\u03b1"


def test_half_a_sign_at_a_cut_is_left_out() -> None:
    assert decode_page("€".encode()[:2], is_cut=True) == ""
    assert decode_page("€".encode()[:2], "utf-8") == "\ufffd"


@given(
    st.binary(max_size=300), st.text(max_size=20) | st.sampled_from(["utf-16", "big5", "euc_jp"])
)
def test_decoding_never_fails_and_its_text_can_be_sent(data: bytes, stated: str) -> None:
    decode_page(data, stated).encode()


def test_names_that_servers_make_up_are_not_remembered() -> None:
    before = len(encodings._cache)
    for at in range(100):
        assert find_codec(f"made-up-{at}") == ""
    assert len(encodings._cache) == before


def test_every_codec_that_is_named_exists() -> None:
    for name in ("utf-8", "windows-1252", "gbk", "euc-kr", "iso-8859-15", "macintosh"):
        assert codecs.lookup(find_codec(name))
