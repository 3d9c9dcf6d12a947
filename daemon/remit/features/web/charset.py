"""Bytes of a page turned into text: what the bytes say themselves beats what was said of them."""

import codecs
import re
from encodings import normalize_encoding
from encodings.aliases import aliases

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Python knows more codecs (zlib, idna, unicode_escape); only those that pages are written in count.
_KNOWN = (
    "utf-8",
    "utf-16-le",
    "utf-16-be",
    "cp866",
    "cp874",
    "cp932",
    "cp949",
    "cp1250",
    "cp1251",
    "cp1252",
    "cp1253",
    "cp1254",
    "cp1255",
    "cp1256",
    "cp1257",
    "cp1258",
    "koi8-r",
    "koi8-u",
    "mac-roman",
    "mac-cyrillic",
    "tis-620",
    "shift_jis",
    "euc_jp",
    "iso2022_jp",
    "euc_kr",
    "gb18030",
    "big5",
    "big5hkscs",
    "iso8859-2",
    "iso8859-3",
    "iso8859-4",
    "iso8859-5",
    "iso8859-6",
    "iso8859-7",
    "iso8859-8",
    "iso8859-10",
    "iso8859-13",
    "iso8859-14",
    "iso8859-15",
    "iso8859-16",
)
# Pages that say the name on the left are written in what stands on the right.
_MEANT = {
    "ascii": "cp1252",
    "iso8859_1": "cp1252",
    "latin_1": "cp1252",
    "iso8859_9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "utf_16": "utf-16-le",
    "x_sjis": "shift_jis",
}


def _label(name: str) -> str:
    return normalize_encoding(name).lower()


_CODECS = {_label(codec): codec for codec in _KNOWN} | _MEANT
# A table of our own: `codecs.lookup` remembers every name that it was ever asked for.
_LABELS = {alias: _CODECS[codec] for alias, codec in aliases.items() if codec in _CODECS} | _CODECS
_META = re.compile(
    rb"<meta[^>]{0,512}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{1,40})"
    rb"|^\s*<\?xml[^>]{0,256}?encoding\s*=\s*[\"']([a-zA-Z0-9_:.-]{1,40})"
)
_META_BYTES = 4096
_NAME_LIMIT = 40
_SLICE = 65_536
_LAST_RESORT = "cp1252"


def decode_page(data: bytes, stated: str = "", *, is_cut: bool = False) -> str:
    """Text of a page. It never fails: what cannot be read becomes U+FFFD.

    Args:
        data: its bytes.
        stated: the charset of its header, if any.
        is_cut: whether more should have come, so that half a sign may stand at the end.
    """
    mark, name = next(((m, n) for m, n in _MARKS if data.startswith(m)), (b"", ""))
    codec = name or find_codec(stated) or find_codec(_declared(data)) or _guess(data, is_cut=is_cut)
    decoder = codecs.getincrementaldecoder(codec)("replace")
    # In slices: some codecs spend a call on every wrong byte, and others must get their turn.
    texts = [decoder.decode(data[at : at + _SLICE]) for at in range(len(mark), len(data), _SLICE)]
    return "".join(texts) if is_cut else "".join(texts) + decoder.decode(b"", final=True)


def find_codec(name: str) -> str:
    """The codec of a charset's name; empty when it is none that pages are written in."""
    name = name.strip().strip("\"'")
    return _LABELS.get(_label(name), "") if name.isascii() and len(name) <= _NAME_LIMIT else ""


def _declared(data: bytes) -> str:
    found = _META.search(data[:_META_BYTES].lower())
    if found is None:
        return ""
    name = (found[1] or found[2]).decode("ascii")
    # It was read as ASCII, so it cannot be that.
    return "utf-8" if find_codec(name).startswith("utf-16") else name


def _guess(data: bytes, *, is_cut: bool) -> str:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data, final=not is_cut)
    except UnicodeDecodeError:
        return _LAST_RESORT
    return "utf-8"
