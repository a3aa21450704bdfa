"""Addresses of clients as rules write them, and ranges of addresses (KIP-1276).

A rule writes an address as Java does: `192.0.2.1`, and `2001:db8:0:0:0:0:0:1` in place of
`2001:db8::1`. The host of a rule that is written in another way applies to no client. A range is an
address and the number of bits that all its addresses share: `192.0.2.0/24`, `2001:db8::/32`. The
address in a range may be any of the range, in any notation.
"""

from __future__ import annotations

import re
import socket
from typing import Final

from skidway.dataclass import dataclass

_IPV4_RANGE: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_IPV6_RANGE: Final = re.compile(r"([^/]*:[^/]*)/(\d{1,3})", re.ASCII)
_IPV4_IN_IPV6: Final = bytes(10) + b"\xff\xff"
"""With these bytes begins an IPv6 address that stands for an IPv4 address (`::ffff:192.0.2.1`)."""


@dataclass(frozen=True, slots=True)
class AddressRange:
    """All addresses that begin with certain bits. first_bits: these bits, as a number. free_bits:
    how many bits follow them. address_bytes: 4 or 16."""

    first_bits: int
    free_bits: int
    address_bytes: int

    def covers(self, packed: bytes) -> bool:
        """Returns whether an address, as its bytes, is in this range."""
        return (
            len(packed) == self.address_bytes
            and int.from_bytes(packed) >> self.free_bits == self.first_bits
        )


def parse_range(host: str) -> AddressRange | None:
    """Returns the range that a rule's host stands for, or None if the text is no range. Notations
    that only Java knows (`[::1]/64`, `fe80::1%eth0/64`, `::1/+64`) are no ranges here."""
    if found := _IPV4_RANGE.fullmatch(host):
        *parts, shared_bits = map(int, found.groups())
        if max(parts) > 255 or shared_bits > 32:
            return None
        return _range(bytes(parts), shared_bits)
    if found := _IPV6_RANGE.fullmatch(host):
        packed, shared_bits = pack(found[1]), int(found[2])
        if packed is None or len(packed) != 16 or shared_bits > 128:
            return None
        return _range(packed, shared_bits)
    return None


def pack(address: str) -> bytes | None:
    """Returns the 4 or 16 bytes of an address, or None if the text is no address. As in Java, an
    IPv6 address that stands for an IPv4 address has 4 bytes."""
    try:
        if ":" not in address:
            return socket.inet_pton(socket.AF_INET, address)
        packed = socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):  # ValueError: the text has a null character
        return None
    return packed[12:] if packed.startswith(_IPV4_IN_IPV6) else packed


def as_java_writes(address: str) -> str:
    """Returns an address, in any notation, as Java's InetAddress.getHostAddress writes it. A text
    that is no address stays as it is."""
    plain, percent, zone = address.partition("%")
    packed = pack(plain)
    if packed is None:
        return address
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed)
    groups = (int.from_bytes(packed[at : at + 2]) for at in range(0, 16, 2))
    return ":".join(f"{group:x}" for group in groups) + percent + zone


def _range(packed: bytes, shared_bits: int) -> AddressRange:
    free_bits = 8 * len(packed) - shared_bits
    return AddressRange(int.from_bytes(packed) >> free_bits, free_bits, len(packed))
