"""What is asked for: a URL that was taken apart once, so that no two readers see two hosts."""

import re

import httpx
import msgspec

from remit.errors import InvalidDataError
from remit.features.web.addresses import parse_address

URL_LIMIT = 4096
_HOST_LIMIT = 253
_PORTS = {"http": 80, "https": 443}
_LAST_PORT = 65_535
_USUAL_PORTS = frozenset({80, 443, 8080, 8443})
_NEVER = re.compile(r"[\x00-\x1f\x7f\\]")
"""Readers of URLs disagree about these."""
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?\.?")
_USER = re.compile(r"[^/?#]*//[^/?#]*@")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


class Target(msgspec.Struct, frozen=True):
    """A URL that may be asked for, as far as its text tells."""

    url: str
    scheme: str
    host: str
    """In ASCII; an IPv6 address stands without brackets."""
    port: int
    path: bytes

    @property
    def name(self) -> str:
        """The host as rules about hosts see it."""
        return f"[{self.host}]" if ":" in self.host else self.host

    def follow(self, location: str, *, any_port: bool) -> "Target":
        """Where a redirect leads.

        Raises:
            InvalidDataError: nowhere that may be asked.
        """
        if _NEVER.search(location) or len(location) > URL_LIMIT:
            raise _wrong("the redirect is no URL", "")
        try:
            return parse_target(str(httpx.URL(self.url).join(location)), any_port=any_port)
        except (httpx.InvalidURL, ValueError, TypeError) as error:
            raise _wrong(f"the redirect is no URL: {str(error)[:200]}", "") from error


def parse_target(text: str, *, any_port: bool) -> Target:
    """Take a URL apart, and refuse what is unusual about it.

    Raises:
        InvalidDataError: it is no http or https URL, or one that somebody made to deceive.
    """
    if len(text) > URL_LIMIT:
        raise _wrong(f"a URL has at most {URL_LIMIT} characters", "")
    if _NEVER.search(text) or text != text.strip():
        raise _wrong("the URL has a character that no URL has", "write it as %XX")
    try:
        url = httpx.URL(text)
        host = url.raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError) as error:
        raise _wrong(f"that is no URL: {str(error)[:200]}", "") from error
    if url.scheme not in _PORTS:
        raise _wrong("a URL starts with http:// or https://", "other schemes are not fetched")
    if url.userinfo or _USER.match(text):
        raise _wrong("the URL has a user name in it", "leave out everything before the @")
    _check_host(host)
    port = _PORTS[url.scheme] if url.port is None else url.port
    if port not in _USUAL_PORTS and not (any_port and 0 < port <= _LAST_PORT):
        usual = ", ".join(map(str, sorted(_USUAL_PORTS)))
        raise _wrong(f"port {port} is not fetched from", f"the ports are {usual}")
    clean = str(url.copy_with(fragment=None))
    return Target(clean, url.scheme, host, port, url.raw_path)


def _check_host(host: str) -> None:
    if parse_address(host) is not None:
        return
    if not _HOST.fullmatch(host) or ".." in host or len(host) > _HOST_LIMIT:
        raise _wrong("the URL has no host that could be asked", "as in https://example.com/page")
    last = host.removesuffix(".").rpartition(".")[2]
    if _NUMBER.fullmatch(last):
        # Resolvers read 2130706433, 0x7f.1 and 0177.0.0.1 as addresses; we do not guess with them.
        raise _wrong("the host is an unusual way to write an address", "write it as 192.0.2.1")


def _wrong(message: str, hint: str) -> InvalidDataError:
    return InvalidDataError(message, hint=hint, details={"path": "$.url"})
