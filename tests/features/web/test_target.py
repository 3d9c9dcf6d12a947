"""No address that is not on the public internet is ever taken for one that is."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remit.features.web.target import is_private, is_public, parse_address

REFUSED_V4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "168.63.129.16/32",
]
REFUSED_V6 = [
    "::/3",
    "::/96",
    "::ffff:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
    "4000::/2",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]

EDGES = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
]


def inside(text: str) -> st.SearchStrategy[IPv4Address | IPv6Address]:
    network = ip_network(text)
    first, last = int(network.network_address), int(network.broadcast_address)
    return st.integers(first, last).map(type(network.network_address))


PRIVATE_V4 = st.one_of([inside(text) for text in REFUSED_V4])
ANY_V4 = st.integers(0, 2**32 - 1)


@given(st.one_of([inside(text) for text in [*REFUSED_V4, *REFUSED_V6]]))
def test_no_address_of_a_special_network_is_public(address: IPv4Address | IPv6Address) -> None:
    assert not is_public(address)


@given(PRIVATE_V4, st.integers(0, 2**32 - 1))
def test_no_ipv6_address_that_carries_a_private_one_is_public(
    inner: IPv4Address, host: int
) -> None:
    number = int(inner)
    carriers = [
        number,  # compatible
        0xFFFF << 32 | number,  # mapped
        0xFFFF << 48 | number,  # translated
        0x64FF9B << 96 | number,  # NAT64
        0x2002 << 112 | number << 80 | host,  # 6to4
        0x2001 << 112 | host << 64 | (number ^ 0xFFFFFFFF),  # Teredo
        0x2606_4700 << 96 | 0x0000_5EFE << 32 | number,  # ISATAP
        0x2606_4700 << 96 | 0x0200_5EFE << 32 | number,
    ]
    assert [str(one) for one in map(IPv6Address, carriers) if is_public(one)] == []


@given(ANY_V4.map(IPv4Address) | st.integers(0, 2**128 - 1).map(IPv6Address))
def test_a_public_address_is_global_unicast_and_is_not_private(
    address: IPv4Address | IPv6Address,
) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast
        assert not is_private(address)


@given(st.integers(0, 2**32 - 1).map(IPv4Address) | inside("2000::/3"))
def test_what_lies_in_no_special_network_is_public_whatever_the_version_of_python(
    address: IPv4Address | IPv6Address,
) -> None:
    is_special = any(address in ip_network(text) for text in [*REFUSED_V4, *REFUSED_V6])
    carries = isinstance(address, IPv6Address) and int(address) >> 32 & 0xFDFFFFFF == 0x5EFE
    assume(not carries)
    assert is_public(address) is not is_special


@pytest.mark.parametrize("text", EDGES)
def test_a_special_network_ends_where_its_list_says(text: str) -> None:
    network = ip_network(text)
    first, last = network.network_address, network.broadcast_address
    assert not is_public(first)
    assert not is_public(last)
    assert is_public(first - 1)
    assert is_public(last + 1)


@pytest.mark.parametrize(
    "text",
    ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"],
)
def test_ordinary_servers_are_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    [
        "224.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "fec0::1",
        "192.0.0.9",
        "3fff::1",
    ],
)
def test_what_some_versions_of_the_library_let_pass_is_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize(
    "text",
    ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"],
)
def test_the_metadata_of_clouds_is_not_reached_even_where_private_networks_are(text: str) -> None:
    assert not is_public(ip_address(text))
    assert not is_private(ip_address(text))


@pytest.mark.parametrize("text", ["127.0.0.1", "::1", "10.1.2.3", "192.168.1.1", "fd12::1"])
def test_loopback_and_private_networks_are_private(text: str) -> None:
    assert is_private(ip_address(text))


@pytest.mark.parametrize("text", ["fe80::1%eth0", "127.1", "0x7f000001", "example.com", ""])
def test_only_usual_forms_are_addresses(text: str) -> None:
    assert parse_address(text) is None
