"""Connections that go to an address which was checked, and to no other.

The name is resolved once. If any of its addresses is not allowed the host is refused: who answers
with a public and a private address is playing for time. The connection goes to one of the
addresses that were checked, so an answer that changes later changes nothing.
"""

import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio
import httpcore

from remit.errors import DeniedError, FetchError
from remit.features.web.addresses import Address, is_private, is_public, parse_address

Resolve = Callable[[str, int], Awaitable[list[str]]]

_TRIED = 4
_ATTEMPT_SECONDS = 0.4
"""For an address that others follow: one that is dead must not use up the whole second."""


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
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
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
        socket_options: Iterable[Any] | None = None,
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
