"""Tests how audit messages are encoded as bytes and decoded."""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.topic import messages
from skidway.audit.topic.messages import (
    Announcement,
    Bounds,
    Delta,
    Heartbeat,
    Message,
    MessageRefused,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from skidway.schemas import single_object
from support.any_messages import announcements, deltas, heartbeats, seals


@given(st.one_of(deltas, seals, heartbeats, announcements))
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    """Decoding an encoded message gives the same message again."""
    assert messages.decode(messages.encode(message)) == message


@given(st.one_of(deltas, announcements))
def test_announcements_are_found_among_other_messages(message: Message) -> None:
    """An announcement is an agent's message that it has found a file. The function that reads only
    announcements returns them, and returns None for every other message."""
    wanted = message if isinstance(message, Announcement) else None
    assert messages.announcement_in(messages.encode(message)) == wanted


def test_a_damaged_announcement_is_refused() -> None:
    """The function that reads only announcements (an agent's messages about the files that it has
    found) returns None for bytes that are no message. It raises an error for an announcement whose
    last bytes are missing."""
    assert messages.announcement_in(b"hello, audit") is None
    source = Source("main", "", "logs", "")
    header = messages.encode(Announcement(0, 1, 1, "h", "/p", 1, 1, b"", 0, source))[:10]
    with pytest.raises(MessageRefused):
        messages.announcement_in(header)


@pytest.mark.parametrize("value", [b"", b"\xc3\x01", b"hello, audit", b"\xc3\x01" + b"\0" * 40])
def test_other_bytes_are_refused_with_a_sentence(value: bytes) -> None:
    """Bytes that are not an audit message are refused, and the error is one sentence. Any program
    may write such bytes to the topic."""
    with pytest.raises(MessageRefused, match="_skidway_audit"):
        messages.decode(value)


def test_a_seal_of_before_last_words_is_none() -> None:
    """A seal in an old schema has no field `final`, which marks the last word of an agent. Such a
    seal can still be read, and counts as not final."""
    source = Source("dc1", "cid", "logs", "tid")
    seal = Seal(Sender(Tier.AGENT, "dc1", "7", "host", 1), 5, 0, (SealedTopic(source, 9, 4),))
    _, record = single_object.decode(messages.encode(seal))
    assert (record.pop("lateness_ms"), record.pop("ahead_ms")) == (0, 0)
    assert (record.pop("columns"), record.pop("sealed") is None) == (None, False)
    sealed = {"sealed_until": 9, "at": 4, "offsets": []}
    record["seals"] = [asdict(source) | sealed]
    path = resources.files("skidway.schemas").joinpath("history", "audit-1.avsc")
    value = single_object.Messages([path.read_text("utf-8")]).encode("Audit", record)
    assert value[:10] != messages.encode(seal)[:10]
    assert messages.decode(value) == seal


def test_a_message_of_before_bounds_says_nothing_of_them() -> None:
    """A message in an old schema does not say how late, or how far ahead of the agent's clock,
    event times may be (the bounds). It can still be read. A message without bounds and the same
    message with bounds count as two messages."""
    said = Sender(Tier.AGENT, "dc1", "7", "host", 1, Bounds(120_000, 3_600_000))
    unsaid = Sender(Tier.AGENT, "dc1", "7", "host", 1)
    _, record = single_object.decode(messages.encode(Delta(unsaid, 5, 0)))
    del record["lateness_ms"], record["ahead_ms"], record["columns"], record["sealed"]
    path = resources.files("skidway.schemas").joinpath("history", "audit-2.avsc")
    value = single_object.Messages([path.read_text("utf-8")]).encode("Audit", record)
    assert messages.decode(value) == Delta(unsaid, 5, 0)
    assert value in messages.encodings(Delta(unsaid, 5, 0))
    assert value not in messages.encodings(Delta(said, 5, 0))


def test_an_announcement_of_before_births_tells_none() -> None:
    """An announcement (an agent's message that it has found a file) in an old schema has no birth
    time of the file. It can still be read, and the audit identifies the file by the file's first
    bytes."""
    source = Source("dc1", "cid", "logs", "tid")
    said = Announcement(1, 7, 8, "host", "/x", 1, 2, b"f", 4, source, length=9)
    _, record = single_object.decode(messages.encode(said))
    assert record.pop("born_ns") is None
    path = resources.files("skidway.schemas").joinpath("history", "announcement-1.avsc")
    value = single_object.Messages([path.read_text("utf-8")]).encode("Announcement", record)
    assert value[:10] != messages.encode(said)[:10]
    assert messages.decode(value) == said


def test_a_message_cut_short_is_refused() -> None:
    """A message whose last bytes are missing is refused."""
    whole = messages.encode(Heartbeat(Sender(Tier.AGENT, "dc1", "7", "host", 1), 5, 0))
    with pytest.raises(MessageRefused):
        messages.decode(whole[:-3])
