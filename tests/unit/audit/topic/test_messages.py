"""Tests how audit messages are encoded as bytes and decoded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.topic import messages
from skidway.audit.topic.messages import (
    Announcement,
    Heartbeat,
    Message,
    MessageRefused,
    Seal,
    Sender,
    Tier,
)
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


def test_a_seal_without_topics_is_refused() -> None:
    """A seal always has a table of its topics, which may be empty. A seal without this table is
    refused."""
    seal = Seal(Sender(Tier.AGENT, "dc1", "7", "host", 1), 5, 0, ())
    assert messages.decode(messages.encode(seal)) == seal
    name, record = single_object.decode(messages.encode(seal))
    with pytest.raises(MessageRefused, match="a seal has no topics"):
        messages.decode(single_object.encode(name, record | {"sealed": None}))


def test_a_message_cut_short_is_refused() -> None:
    """A message whose last bytes are missing is refused."""
    whole = messages.encode(Heartbeat(Sender(Tier.AGENT, "dc1", "7", "host", 1), 5, 0))
    with pytest.raises(MessageRefused):
        messages.decode(whole[:-3])
