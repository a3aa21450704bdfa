"""Tests that the fast decoder, for the most frequent kinds of audit messages, and the generic
decoder give the same result for all bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skidway.audit.topic import messages, usual_messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Delta,
    Heartbeat,
    Message,
    MessageRefused,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.any_messages import deltas, heartbeats, seals
from support.promises import promise

said = st.one_of(deltas, seals, heartbeats)

SENDER = Sender(Tier.AGENT, "dc1", "7", "host", 1)
SOURCE = Source("dc1", "cid", "logs", "tid")
SEAL = Seal(SENDER, 5, 0, (SealedTopic(SOURCE, 9, 4, ((0, 1),)),))
DELTA = Delta(SENDER, 5, 0, (Range(SOURCE, 0, 1, 2),), (Count(SOURCE, 7, 0, 9, 1, 2, 3),))


@given(said)
@example(SEAL)
@example(DELTA)
@example(Heartbeat(SENDER, 5, 0))
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    """Decoding an encoded message with the fast decoder gives the same message, whether the fast
    decoder decodes the bytes itself or calls the generic decoder."""
    assert usual_messages.decode(encode(message)) == message


@promise("6 audit topic")
@given(
    said, st.integers(0, 1 << 10), st.sampled_from([b"", b"\0", b"\1", b"\2", b"\x80\0", b"\xff"]),
    st.integers(0, 2),
)  # fmt: skip
def test_damaged_messages_are_the_same_to_both_decoders(
    message: Message, place: int, put: bytes, cut: int
) -> None:
    """If bytes of a message are missing, changed or added, the fast and the generic decoder agree.
    Either both read the same message, or both refuse the bytes with the same sentence."""
    value = encode(message)
    at = place % len(value)
    value = value[:at] + put + value[at + cut :]
    assert _outcome(usual_messages.decode, value) == _outcome(messages.decode, value)


@pytest.mark.parametrize("message", [SEAL, DELTA, Heartbeat(SENDER, 5, 0)])
def test_every_changed_byte_is_the_same_to_both_decoders(message: Message) -> None:
    """If a byte of a message is changed, or if bytes at its end are missing, the fast and the
    generic decoder still agree. Either both read the same message, or both refuse the bytes with
    the same sentence."""
    value = encode(message)
    damaged = [value[:end] for end in range(len(value))]
    damaged += [
        value[:at] + bytes([other]) + value[at + 1 :]
        for at in range(10, len(value))
        for other in (0, 1, 2, 3, 4, 6, 8, 0x7F, 0x80, 0xFF)
    ]
    for each in [*damaged, value + b"\0"]:
        assert _outcome(usual_messages.decode, each) == _outcome(messages.decode, each)


@pytest.mark.parametrize("message", [SEAL, DELTA, Heartbeat(SENDER, 5, 0)])
def test_the_generic_decoder_is_not_asked_for_usual_messages(
    message: Message, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fast decoder reads a usual seal, delta or heartbeat without calling the generic
    decoder."""
    value = encode(message)
    monkeypatch.setattr(messages, "decode", None)
    assert usual_messages.decode(value) == message


def _outcome(decode: object, value: bytes) -> object:
    assert callable(decode)
    try:
        return decode(value)
    except MessageRefused as error:
        return str(error)
