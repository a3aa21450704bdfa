"""Tests the head of an audit message: its first fields, which a program can read without decoding
the whole message."""

from __future__ import annotations

from itertools import product

import pytest

from skidway.audit.topic.head import DELTA, HEARTBEAT, SEAL, Head, head_of, sort_of
from skidway.audit.topic.messages import (
    Announcement,
    Delta,
    Heartbeat,
    MessageRefused,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.kafka.source import Source

MADE = {
    DELTA: lambda sender: Delta(sender, 70_000, 0),
    SEAL: lambda sender: Seal(sender, 70_000, 0, ()),
    HEARTBEAT: lambda sender: Heartbeat(sender, 70_000, 0),
}
ANNOUNCED = encode(Announcement(0, 1, 1, "h", "/p", 1, 1, b"", 0, Source("main", "", "logs", "")))


def value_of(kind: str, tier: Tier) -> bytes:
    """Returns a message of the given kind and tier."""
    return encode(MADE[kind](Sender(tier, "dc1", "/out/logs", "host", 3)))


def test_a_head_says_what_the_whole_message_says() -> None:
    """The head of a message (kind, tier, producer, epoch and number) has the same values as the
    decoded message. So the loader, which first reads the heads, skips no message that it needs."""
    for kind, tier in product(MADE, Tier):
        value = value_of(kind, tier)
        assert sort_of(value) == (kind, tier)
        assert head_of(value) == Head("/out/logs", 3, 70_000)


@pytest.mark.parametrize("value", [b"", b"hello, audit", ANNOUNCED, value_of(SEAL, Tier.HDFS)[:11]])
def test_other_values_have_no_sort(value: bytes) -> None:
    """Only deltas, seals and heartbeats have kind and tier in their first bytes. For any other
    value, and for a message that is cut off there, reading kind and tier gives None. The reader
    then decodes the whole value to find out what it is."""
    assert sort_of(value) is None


def test_bytes_that_name_no_tier_have_no_sort() -> None:
    """Any program may write to the audit topic. If a message names a tier that does not exist,
    reading kind and tier from its head gives None."""
    value = bytearray(value_of(DELTA, Tier.AGENT))
    value[11] = 0x7F
    assert sort_of(bytes(value)) is None


@pytest.mark.parametrize("value", [b"hello, audit", ANNOUNCED, value_of(DELTA, Tier.HDFS)[:14]])
def test_a_damaged_head_is_refused(value: bytes) -> None:
    """If the head of a message (its first fields) cannot be read, MessageRefused is raised, as for
    a message that cannot be decoded. So readers handle both errors in the same way."""
    with pytest.raises(MessageRefused):
        head_of(value)
