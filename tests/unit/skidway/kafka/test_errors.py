"""Tests the exceptions and messages that are made from Kafka's error codes."""

from __future__ import annotations

import pytest

from skidway.errors import SkidwayError
from skidway.kafka.errors import (
    RETRIABLE,
    BrokerUnreachable,
    ErrorCode,
    KafkaError,
    OffsetOutOfRange,
    ProtocolError,
    Truncated,
    UnsupportedVersion,
    error_for,
)
from skidway.kafka.types import TopicPartition


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_every_code_has_a_sentence(code: ErrorCode) -> None:
    """Every error code becomes an exception whose message contains the code's name and number."""
    error = error_for(code.value)
    assert error.code is code
    assert code.name in str(error)
    assert str(code.value) in str(error)
    assert error.retriable == (code in RETRIABLE)


def test_the_peers_words_are_kept() -> None:
    """If the broker sends a message with an error, the exception's message contains it."""
    error = error_for(37, "4 partitions are fewer than 5")
    assert str(error) == "INVALID_PARTITIONS (37): 4 partitions are fewer than 5"


def test_unknown_code() -> None:
    """An unknown error code becomes UNKNOWN_SERVER_ERROR. The exception's message contains its
    number."""
    error = error_for(12345, "what")
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "12345" in str(error)
    assert "what" in str(error)
    assert not error.retriable


def test_offset_out_of_range_keeps_its_fields() -> None:
    """The exception OffsetOutOfRange contains the requested offset and the range of offsets in the
    log."""
    error = OffsetOutOfRange(TopicPartition("logs", 3), 5, 10, 20)
    assert (error.tp, error.requested) == (TopicPartition("logs", 3), 5)
    assert (error.log_start_offset, error.high_watermark) == (10, 20)
    assert str(error).endswith("offset 5 of logs-3 is not in the log, which holds 10 to 20")


def test_families() -> None:
    """There are different classes of exceptions for an error that a broker reports, for bytes that
    do not follow the protocol, and for a broker that does not answer. The exit status for a broker
    that does not answer is 3, and for the other two it is 1."""
    assert issubclass(OffsetOutOfRange, KafkaError)
    assert issubclass(UnsupportedVersion, KafkaError)
    assert issubclass(Truncated, ProtocolError)
    assert not issubclass(ProtocolError, KafkaError)
    assert issubclass(KafkaError, SkidwayError)
    assert not issubclass(BrokerUnreachable, KafkaError | ProtocolError)
    assert BrokerUnreachable.exit_code == 3
    assert KafkaError.exit_code == ProtocolError.exit_code == 1
