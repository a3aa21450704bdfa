"""Tests the addresses and ranges in rules, beside Python's module ipaddress."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_network

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from skidway.kafka.acls.hosts import as_java_writes, pack, parse_range

Address = IPv4Address | IPv6Address
ADDRESSES = st.ip_addresses() | st.sampled_from(["10.0.0.1", "10.0.0.2", "::1", "::2"]).map(
    lambda text: IPv6Address(text) if ":" in text else IPv4Address(text)
)


def is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


@given(ADDRESSES, st.integers(0, 128), ADDRESSES, st.integers(0, 128))
@example(IPv4Address("255.255.255.255"), 32, IPv4Address("255.255.255.254"), 31)
@example(IPv4Address("0.0.0.0"), 0, IPv4Address("255.255.255.255"), 0)
def test_a_range_covers_the_addresses_that_begin_like_it(
    start: Address, shared_bits: int, other: Address, flipped: int
) -> None:
    """A range covers the addresses that share its first bits, and no others."""
    assume(not is_mapped(start) and shared_bits <= start.max_prefixlen)
    near = type(start)(int(start) ^ (1 << flipped % start.max_prefixlen))
    parsed = parse_range(f"{start}/{shared_bits}")
    network = ip_network(f"{start}/{shared_bits}", strict=False)
    assert parsed is not None
    for address in (start, near, other):
        if not is_mapped(address):
            assert parsed.covers(address.packed) == (address in network)


@pytest.mark.parametrize(
    "text",
    ["", "*", "/", "10.0.0.1", "::1", "10.0.0.0/33", "10.0.0.256/8", "10.0.0/8", "10.0.0.0/", "::/",
     "10.0.0.0/8/8", "::/129", "::/-1", "g::/8", "::ffff:10.0.0.0/104", "[::1]/64", "fe80::1%lo/8",
     "::1/+64", "\u0661.0.0.0/8", "::/\u0661", "a/8", ":\0:/8", "10.0.0.0/8\n"],
)  # fmt: skip
def test_other_texts_are_no_ranges(text: str) -> None:
    """A text that is not an address, a slash and a number of bits is no range."""
    assert parse_range(text) is None


@given(ADDRESSES)
@example(IPv6Address("::"))
@example(IPv6Address("1:0:0:2::"))
@example(IPv6Address("::ffff:10.0.0.1"))
def test_addresses_have_one_form(address: Address) -> None:
    """Each notation of an address becomes the same text: IPv6 in eight groups without leading
    zeros, and IPv4 also if it is packed into IPv6."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        expected = str(address.ipv4_mapped)
    elif isinstance(address, IPv6Address):
        expected = ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
    else:
        expected = str(address)
    assert as_java_writes(str(address)) == as_java_writes(address.exploded) == expected
    assert as_java_writes(expected) == expected


@pytest.mark.parametrize(
    ("text", "written"),
    [("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"), ("example.org", "example.org"), ("", ""),
     ("%", "%"), ("a:b", "a:b")],
)  # fmt: skip
def test_zones_and_other_texts_stay(text: str, written: str) -> None:
    """The zone of an address stays, and so does what is no address."""
    assert as_java_writes(text) == written


def test_what_is_no_address_has_no_bytes() -> None:
    """Only addresses have bytes."""
    assert pack("10.0.0.1") == pack("::ffff:10.0.0.1") == bytes([10, 0, 0, 1])
    assert pack("::1") == bytes([*bytes(15), 1])
    for text in ("", "10.0.0", "10.0.0.1/8", "::g", "example.org", "10.0.0.1\0", ":\0:"):
        assert pack(text) is None
