"""Error codes and the sentences made of them."""

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
    """Every error code becomes an exception that names the code and its number."""
    error = error_for(code.value)
    assert error.code is code
    assert code.name in str(error)
    assert str(code.value) in str(error)
    assert error.retriable == (code in RETRIABLE)


def test_the_peers_words_are_kept() -> None:
    """The broker's message about an error is part of the sentence."""
    error = error_for(37, "4 partitions are fewer than 5")
    assert str(error) == "INVALID_PARTITIONS (37): 4 partitions are fewer than 5"


def test_unknown_code() -> None:
    """An unknown code becomes UNKNOWN_SERVER_ERROR and keeps its number in the sentence."""
    error = error_for(12345, "what")
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "12345" in str(error)
    assert "what" in str(error)
    assert not error.retriable


def test_offset_out_of_range_keeps_its_fields() -> None:
    """OffsetOutOfRange tells which offset was asked for and which offsets the log holds."""
    error = OffsetOutOfRange(TopicPartition("logs", 3), 5, 10, 20)
    assert (error.tp, error.requested) == (TopicPartition("logs", 3), 5)
    assert (error.log_start_offset, error.high_watermark) == (10, 20)
    assert str(error).endswith("offset 5 of logs-3 is not in the log, which holds 10 to 20")


def test_families() -> None:
    """An error that a broker reports, bytes that are no protocol, and a broker that does not answer
    raise exceptions of different classes, all with an exit status."""
    assert issubclass(OffsetOutOfRange, KafkaError)
    assert issubclass(UnsupportedVersion, KafkaError)
    assert issubclass(Truncated, ProtocolError)
    assert not issubclass(ProtocolError, KafkaError)
    assert issubclass(KafkaError, SkidwayError)
    assert BrokerUnreachable.exit_code == 3
