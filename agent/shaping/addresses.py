"""Masks the addresses of IPv6 and IPv4 in a text."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from string import hexdigits

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.[0-9])")
# A search begins only where a word begins, and its repetitions never go back, so no text makes it
# slow.
_COLONED = re.compile(r"(?<![\w:.])[\w.]*+:[\w.]*+:[\w:.]*+")
_IPV6_CHARACTERS_MAX = 45
# how many colons an address without `::` has: 6 if it ends with an IPv4 address, 7 if not
_IPV6_COLONS = (6, 7)


def mask_ips(text: str, shown: str) -> str:
    """Puts `shown` in place of each address of IPv6 or IPv4 in a text."""
    if "::" in text or text.count(":") >= min(_IPV6_COLONS):
        text = _COLONED.sub(lambda found: _without_ipv6(found[0], shown), text)
    return _IPV4.sub(shown, text)


def _without_ipv6(word: str, shown: str) -> str:
    """Returns a word with `shown` in place of its address. A name and a colon may be before the
    address; a port (as Java writes it) or the end of a clause may be behind it."""
    name, colon, rest = word.partition(":")
    before = name + colon if name.strip(hexdigits) else ""
    address = (rest if before else word).rstrip(".")
    head, _, port = address.rpartition(":")
    if not _is_ipv6(address) and (port.isdecimal() or not port):
        address = head
    return before + shown + word[len(before + address) :] if _is_ipv6(address) else word


def _is_ipv6(text: str) -> bool:
    """Whether a text is an IPv6 address. A text without a digit, such as a::b, does not count: it
    is more likely a name in program code.
    """
    is_short = "::" in text
    if not (is_short or text.count(":") in _IPV6_COLONS) or len(text) > _IPV6_CHARACTERS_MAX:
        return False
    if not any(map(str.isdigit, text)):
        return False
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
