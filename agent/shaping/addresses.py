"""Masks the addresses of IPv6 and IPv4 in a text."""

from __future__ import annotations

import re
from ipaddress import IPv6Address

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|[01]?[0-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.[0-9])")
# A search begins only behind a sign that is neither a dot nor a part of a word, and its repetitions
# never go back, so no text makes it slow.
_COLONED = re.compile(r"(?<![\w.])[0-9A-Fa-f.]*+:[0-9A-Fa-f:.]*+")
_IPV6_CHARACTERS_MAX = 45
# how many colons an address without `::` has: 6 if it ends with an IPv4 address, 7 if not
_IPV6_COLONS = (6, 7)


def mask_ips(text: str, shown: str) -> str:
    """Puts `shown` in place of each address of IPv6 or IPv4 in a text."""
    if "::" in text or text.count(":") >= min(_IPV6_COLONS):
        text = _COLONED.sub(lambda found: _without_ipv6(found, shown), text)
    return _IPV4.sub(shown, text)


def _without_ipv6(found: re.Match[str], shown: str) -> str:
    """Returns a run of digits and colons with `shown` in place of its address. Behind the address
    may be a port (as Java writes it), a name, or the end of a clause."""
    run = found[0]
    behind = found.string[found.end() : found.end() + 1]
    is_cut = behind.isalnum() or behind == "_"  # a name begins behind the last colon
    address = (run[: run.rindex(":")] if is_cut else run).rstrip(".")
    head, _, port = address.rpartition(":")
    if not _is_ipv6(address) and (port.isdecimal() or not port):
        address = head
    return shown + run[len(address) :] if _is_ipv6(address) else run


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
