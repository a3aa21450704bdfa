"""Listeners at which a client need not authenticate, and that other hosts can reach.

Whoever reaches such a listener may read, write and delete. So a program refuses to listen there,
unless the setting `insecure.listeners` says that the network keeps strangers away. Listeners for
metrics are not counted here: they answer questions only, and listen on loopback by default.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from prometheus_client import Gauge

from skidway.errors import ConfigurationRefused
from skidway.settings import DEFAULT_DIRECTORY, peek, setting

KEY: Final = "insecure.listeners"
PROGRAMS: Final = ("zookeeper", "broker", "registry", "audit")
"""The programs that have the setting."""

_LISTENERS = Gauge(
    "skidway_insecure_listeners",
    "1 for each listener that other hosts can reach without authentication.",
    ["listener"],
)


def insecure_listeners_setting() -> Any:
    """Declares the field `insecure_listeners: bool` of a program's settings class."""
    return setting(
        KEY,
        False,
        help="Whether to listen on other addresses than loopback although clients need not"
        " authenticate: whoever reaches the port may do everything.",
    )


def reachable(listeners: Iterable[tuple[str, str]]) -> list[str]:
    """Returns those listeners that other hosts can reach. listeners: pairs of a listener as people
    write it, and its host; an empty host means every address."""
    return [text for text, host in listeners if not is_loopback(host)]


def refuse(listeners: Iterable[str], *, allowed: bool) -> None:
    """Raises ConfigurationRefused if there are such listeners, and the setting does not allow
    them."""
    found = ", ".join(listeners)
    if found and not allowed:
        raise ConfigurationRefused(
            f"{found}: other hosts reach this, and whoever reaches it may do everything, because"
            f" nobody has to authenticate. Listen on 127.0.0.1, or set {KEY}: true if the network"
            " keeps strangers away"
        )


def tell(listeners: Iterable[str]) -> None:
    """Shows these listeners in the program's metrics."""
    for each in listeners:
        _LISTENERS.labels(each).set(1)


def installed(directory: Path = DEFAULT_DIRECTORY) -> Iterator[str]:
    """Yields the programs whose configuration on this host, as far as this user may read it, has
    the setting."""
    for program in PROGRAMS:
        value = peek(KEY, None, program=program, directory=directory)
        if value is not None and value.lower() == "true":
            yield program


def is_loopback(host: str) -> bool:
    """Whether all addresses of a host are loopback. A name without an address counts as one that
    others may reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        pass
    if not host:
        return False
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in found)
