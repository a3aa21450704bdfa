"""Tests which addresses of brokers are legal."""

from __future__ import annotations

import contextlib
import socket

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.kafka.client.group_offsets import coordinator
from skidway.kafka.errors import KafkaError
from skidway.kafka.host_names import is_address
from skidway.kafka.protocol.find_coordinator import FindCoordinatorResponse


@pytest.mark.parametrize(
    "host",
    ["a", "kafka_1.example.org", "example.org.", "xn--bcher-kva.example", "127.0.0.1", "::1",
     "fe80::1%eth0.100", "::ffff:127.0.0.1", "a" * 63],
)  # fmt: skip
def test_legal_hosts(host: str) -> None:
    """Names in ASCII and numeric addresses are legal."""
    assert is_address(host, 9092)


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("a.:%-"), max_size=70))
@example("a..b")
@example(".a")
@example("a" * 64)
@example("1::2..3")
@example("fe80::1%\x1b[31m")
@example("a\n")
def test_a_legal_host_can_be_looked_up(host: str) -> None:
    """For any legal host, Python's resolver finds addresses or raises OSError, and the host has no
    control characters."""
    if is_address(host, 1):
        assert host.isascii()
        assert host.isprintable()
        host.encode("idna")
        with contextlib.suppress(OSError):
            socket.getaddrinfo(host, 1, flags=socket.AI_NUMERICHOST)


@pytest.mark.parametrize(("host", "port"), [("a..b", 9092), ("a", 0), ("a", 65536), ("", 9092)])
def test_a_coordinator_without_an_address_is_not_available(host: str, port: int) -> None:
    """If a broker names a coordinator to which nobody can connect, the group has no coordinator
    now."""
    with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
        coordinator(FindCoordinatorResponse(node_id=1, host=host, port=port))
