from __future__ import annotations

import socket

import pytest

from skidway.http import hosts
from skidway.http.hosts import AllowedHosts
from support.processes import eventually


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LocalHost.:8081",
        "127.0.0.1",
        "127.0.0.53:8081",
        "[::1]:8081",
        "[::ffff:127.0.0.1]",
        socket.gethostname(),
        socket.gethostname().partition(".")[0] + ":9101",
        "web1.inventory.example",
        "web1",
        "10.9.8.7:8081",
        "[2001:db8::7]:8081",
        "schemas.example",
        "Schemas.Example:443",
        "[2001:db8:0::8]",
        None,
    ],
)
def test_names_and_addresses_of_this_host_are_allowed(host: str | None) -> None:
    """A server answers for loopback, for the names of its host, for the address at which the
    request arrived, and for the names in allowed.hosts; case, port and a last dot do not matter."""
    allowed = AllowedHosts(["schemas.example:80", "2001:DB8::8"], "web1.inventory.example")
    local = "2001:db8::7" if host is not None and "::7" in host else "10.9.8.7"
    assert allowed.allows(host, local)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8081",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        f"{socket.gethostname()}.evil.example",
        "evil.example:8081:9",
        "203.0.113.7",
        "0.0.0.0",
        "[::]:8081",
        "224.0.0.1",
        "127.0.0.1@evil.example",
        "[::1",
        "[::1]evil.example",
        "[::1].evil.example:80",
        "[::1]:80:90",
        "[localhost]",
        "[]",
        ":80",
        "localhost:evil.example",
        "localhost]",
        "localhost/evil.example",
        "127.0.0.1:80@evil.example",
        "2130706433",
        "x" * 10_000,
    ],
)
def test_other_hosts_are_refused(host: str) -> None:
    """Every other name, and an address that this host does not have, is refused, with a sentence of
    bounded length that names the setting."""
    allowed = AllowedHosts()
    assert not allowed.allows(host, "10.9.8.7")
    sentence = allowed.refusal(host)
    assert hosts.KEY in sentence
    assert len(sentence) < 300


def test_all_own_addresses_are_allowed() -> None:
    """A request that arrives at one address of the host may name another one of its addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("203.0.113.1", 9))  # sends nothing, but chooses the address
            own = sock.getsockname()[0]
        except OSError:
            own = "127.0.0.2"  # a host without network
    assert AllowedHosts().allows(own, "127.0.0.1")


def test_the_full_name_is_asked_for_without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The full name of the host is allowed as soon as the resolver has told it."""
    found = [(0, 0, 0, "here.full.example", ("", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    allowed = AllowedHosts()
    eventually(lambda: allowed.allows("here.full.example:80"))


def test_all_hosts_can_be_allowed() -> None:
    """With * in allowed.hosts, a server answers for every name."""
    assert AllowedHosts(["*"]).allows("evil.example", "10.9.8.7")
