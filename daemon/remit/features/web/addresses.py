"""Which addresses belong to the public internet.

`ipaddress.is_global` is not asked: it says yes to multicast, to 6to4, NAT64 and other addresses
that carry a private IPv4 address inside, to site-local ones, to all of IPv6 that nobody has handed
out, and to services that clouds put on public-looking addresses; and what it says depends on the
version of Python. The lists below hold all of what IANA calls special, and decide alone.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Address = IPv4Address | IPv6Address

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
