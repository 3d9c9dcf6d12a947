"""What may be asked: URLs, addresses, and connections that go to checked addresses alone.

A URL is taken apart once, so that no two readers see two hosts.

`ipaddress.is_global` is not asked about addresses: it says yes to multicast, to 6to4, NAT64 and
other addresses that carry a private IPv4 address inside, to site-local ones, to all of IPv6 that
nobody has handed out, and to services that clouds put on public-looking addresses; and what it says
depends on the version of Python. The lists below hold all of what IANA calls special, and decide
alone.

A name is resolved once. If any of its addresses is not allowed the host is refused: who answers
with a public and a private address is playing for time. The connection goes to one of the addresses
that were checked, so an answer that changes later changes nothing.
"""

import re
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import anyio
import httpcore
import httpx
import msgspec

from remit.errors import DeniedError, FetchError, InvalidDataError

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]

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
_TRIED = 4
_ATTEMPT_SECONDS = 0.4
"""For an address that others follow: one that is dead must not use up the whole second."""
_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this host
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local: metadata of clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; metadata of a cloud
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "168.63.129.16/32",  # inside Azure: the host's own agent
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: an IPv4 address inside
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
_UNICAST = ip_network("2000::/3")
"""All of IPv6 that was ever handed out; loopback, mapped, NAT64, local and multicast lie outside"""
_PRIVATE = tuple(
    ip_network(text)
    for text in (
        "10.0.0.0/8",
        "127.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "::1/128",
        "fc00::/7",
    )
)
_METADATA = ip_address("fd00:ec2::254")
"""Metadata of a cloud, on an address that is private and never link-local."""
_ISATAP = (0x00005EFE, 0x02005EFE)


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


async def resolve_name(host: str, port: int) -> list[str]:
    """All addresses of a host, as the system finds them."""
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to allowed addresses only."""

    def __init__(
        self,
        resolve: Resolve = resolve_name,
        *,
        private: bool = False,
        inner: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        """Prepare.

        Args:
            resolve: finds the addresses of a host.
            private: whether loopback and private networks are allowed.
            inner: makes the connections.
        """
        self._resolve = resolve
        self._private = private
        self._inner = inner or httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        *_positional: Any,
        **_options: Any,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers.

        Raises:
            DeniedError: one of the addresses is not allowed.
            FetchError: there are none, or none answers.
        """
        addresses = await self._addresses(host, port)
        for address in addresses[:-1]:
            with anyio.move_on_after(_ATTEMPT_SECONDS):
                try:
                    return await self._inner.connect_tcp(str(address), port, timeout)
                except (httpcore.ConnectError, httpcore.ConnectTimeout):
                    continue
        return await self._inner.connect_tcp(str(addresses[-1]), port, timeout)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        *_positional: Any,
        **_options: Any,
    ) -> httpcore.AsyncNetworkStream:
        """Never."""
        raise refused_host("unix")

    async def sleep(self, seconds: float) -> None:
        """Wait between attempts; there are none."""
        await anyio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> list[Address]:
        literal = parse_address(host)
        if literal is not None:
            texts = [str(literal)]
        else:
            try:
                texts = await self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                raise FetchError(f"the host {host!r} was not found", reason="dns") from error
        found = [parse_address(text) for text in texts]
        if not found:
            raise FetchError(f"the host {host!r} has no address", reason="dns")
        checked = [one for one in found if one is not None and self._may_dial(one)]
        if len(checked) < len(found):
            raise refused_host(host, private=self._private)
        return checked[:_TRIED]

    def _may_dial(self, address: Address) -> bool:
        return is_public(address) or (self._private and is_private(address))


def refused_host(host: str, *, private: bool = False) -> DeniedError:
    """The answer about a host that must not be asked; it says nothing of the addresses.

    Args:
        host: how the host was named.
        private: whether the operator allows loopback and private networks already.
    """
    message = f"the host {host!r} is not on the public internet"
    hint = "only public hosts are fetched from; the setting web_fetch_private allows private ones"
    if private:
        hint = "link-local addresses and the metadata of a cloud are never fetched from"
    return DeniedError(message, reason="limit", hint=hint)


def parse_address(text: str) -> Address | None:
    """An address in one of its usual forms, or None; zones are no part of one."""
    try:
        return None if "%" in text else ip_address(text)
    except ValueError:
        return None


def is_public(address: Address) -> bool:
    """Tell whether an address is on the public internet and nothing but that."""
    if isinstance(address, IPv6Address) and (address not in _UNICAST or _tunnels(address)):
        return False
    return not any(address in network for network in _SPECIAL)


def is_private(address: Address) -> bool:
    """Tell whether an address is of this host or a private network, and not of a cloud's agent."""
    return address != _METADATA and any(address in network for network in _PRIVATE)


def _tunnels(address: IPv6Address) -> bool:
    """Tell whether it is an ISATAP address, which leads to an IPv4 address that is not public."""
    marker, inside = int(address) >> 32 & 0xFFFFFFFF, IPv4Address(int(address) & 0xFFFFFFFF)
    return marker in _ISATAP and not is_public(inside)
