"""By which names this server may be asked.

A web page can point a name of its own at this machine and have the browser of somebody ask it. The
browser then says that name as `Host`, so a request under a name that nobody gave us is refused.
"""

import re
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from remit.model.paths import HostRules

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]{1,255})(:[0-9]{1,5})?")


class Hosts:
    """The address that is listened on, this machine's own name, and what the operator named."""

    def __init__(self, bound: str, named: Iterable[str] = ()) -> None:
        self._bound = ip_address(bound.partition("%")[0])
        self._named = HostRules(allow_hosts=tuple(named))

    def allow(self, shown: Sequence[bytes]) -> bool:
        """Tell whether a request with these `Host` headers is meant for us."""
        found = _HOST.fullmatch(shown[0].decode("latin-1").lower()) if len(shown) == 1 else None
        if found is None:
            return False
        host = found[1].removesuffix(".")
        if self._named.allow(host):
            return True
        try:
            address = ip_address(host.strip("[]"))
        except ValueError:
            return host == "localhost" and self._is_here()
        return self._is_ours(address)

    def _is_here(self) -> bool:
        return self._bound.is_loopback or self._bound.is_unspecified

    def _is_ours(self, address: IPv4Address | IPv6Address) -> bool:
        """An address cannot be pointed elsewhere; whoever listens on all has many."""
        if self._bound.is_unspecified:
            return True
        return address == self._bound or (address.is_loopback and self._bound.is_loopback)
