"""The names for which a server answers: what a client may put in the header Host.

A web page in an operator's browser can make its own name mean 127.0.0.1 or an address of the
operator's network (DNS rebinding). The browser then lets the page read the answers of our server,
but still sends the page's name in Host. So a server answers only requests that name it: by a
loopback name, by a name of this host, by one of the host's own addresses, or by a name in the
setting `allowed.hosts`.

HTTP/1.0 has no Host; browsers always send it, so a request without it is answered.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from skidway.host_name import host_name as name_of_host
from skidway.settings import setting

KEY: Final = "allowed.hosts"
STATUS: Final = 421
_ALL: Final = "*"
_SHOWN_MAX: Final = 100
_HOST: Final = re.compile(r"(?:\[(?P<address>[^][]*)\]|(?P<name>[^][:@/\s]*))(?::[0-9]*)?")


def allowed_hosts_setting() -> Any:
    """Declares the field `allowed_hosts: list[str]` of a program's settings class."""
    return setting(
        KEY,
        [],
        help="Names for which the HTTP servers of this program answer, besides loopback, this"
        " host's names and its addresses: every alias in the URLs of clients; * for all names.",
    )


class AllowedHosts:
    """Decides whether a server answers for a name."""

    def __init__(self, more: Sequence[str] = (), host_name: str | None = None) -> None:
        """more: the setting. host_name: the setting host.name of the program, if it has one."""
        own = [name_of_host(None), name_of_host(host_name)]
        self._all = _ALL in more
        self._names = {"localhost", *map(_host, more), *_with_short(own)}
        # Asking for the full name may ask DNS, which may hang.
        threading.Thread(target=self._find_full_name, name="host-name", daemon=True).start()

    def allows(self, header: str | None, local: str = "") -> bool:
        """Returns whether the server answers a request with this Host. local: the address at which
        the request arrived."""
        if header is None or self._all:
            return True
        host = _host(header)
        address = _address(host)
        if address is None:
            return host != "" and host in self._names
        return (
            address.is_loopback
            or str(address) in self._names
            or address == _address(local)
            or _is_own(address)
        )

    def refusal(self, header: str) -> str:
        """Returns the sentence for a client whose Host is not allowed."""
        return (
            f"This server does not answer for the host {header[:_SHOWN_MAX]!r}; if it is one of its"
            f" names, add it to the setting {KEY}"
        )

    def _find_full_name(self) -> None:
        try:
            found = socket.getaddrinfo(name_of_host(None), None, flags=socket.AI_CANONNAME)
        except OSError:
            return
        self._names.update(_with_short(entry[3] for entry in found if entry[3]))


def _with_short(names: Iterable[str]) -> Iterable[str]:
    for each in map(_host, names):
        yield each
        if _address(each) is None:
            yield each.partition(".")[0]


def _host(text: str) -> str:
    """Returns the host of `host:port`, as it is compared; "" for any other text."""
    text = text.strip().lower()
    parts = _HOST.fullmatch(text)
    address = _address(text if parts is None else parts["address"] or parts["name"])
    if address is not None:
        return str(address)
    return (parts["name"] or "").removesuffix(".") if parts is not None else ""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _is_own(address: IPv4Address | IPv6Address) -> bool:
    """Whether this host has the address now: only then may a socket be bound to it."""
    if address.is_unspecified or address.is_multicast:
        return False
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.bind((str(address), 0))
    except OSError:
        return False
    return True
