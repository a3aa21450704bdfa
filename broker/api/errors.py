"""Maps the broker's exceptions to Kafka's error codes. The handlers of requests call `code_of` for
an exception to find out which code the client gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skidway.broker.coordination.access_store import NoCredential, NoRoom
from skidway.broker.coordination.store import TopicExists, TopicGone
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.offset_lookup import OffsetOutside
from skidway.broker.log.producer_id import NotThisProducersId
from skidway.broker.log.producer_state import InvalidProducerEpoch, OutOfOrderSequence
from skidway.broker.log.validation import (
    BatchCorrupt,
    BatchInvalid,
    BatchTooLarge,
    ReadOnlyTopic,
    TimestampRefused,
    UnsupportedCompression,
    UnsupportedFormat,
)
from skidway.broker.partitions.replica import NotEnoughReplicas
from skidway.broker.topics.administration import TooManyTopics
from skidway.broker.topics.alteration import ChangeRefused, ConfigRefused
from skidway.errors import Unreachable
from skidway.kafka.errors import ErrorCode

CODES: Final[Mapping[type[Exception], ErrorCode]] = {
    BatchCorrupt: ErrorCode.CORRUPT_MESSAGE,
    BatchInvalid: ErrorCode.INVALID_RECORD,
    ChangeRefused: ErrorCode.INVALID_REQUEST,
    ConfigRefused: ErrorCode.INVALID_CONFIG,
    BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    DamagedLog: ErrorCode.KAFKA_STORAGE_ERROR,
    InvalidProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    NoCredential: ErrorCode.RESOURCE_NOT_FOUND,
    NoRoom: ErrorCode.POLICY_VIOLATION,
    NotThisProducersId: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    OffsetOutside: ErrorCode.OFFSET_OUT_OF_RANGE,
    OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ReadOnlyTopic: ErrorCode.INVALID_REQUEST,
    StorageFailed: ErrorCode.KAFKA_STORAGE_ERROR,
    TimestampRefused: ErrorCode.INVALID_TIMESTAMP,
    TooManyTopics: ErrorCode.POLICY_VIOLATION,
    TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    TopicGone: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Unreachable: ErrorCode.REQUEST_TIMED_OUT,
    UnsupportedCompression: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    UnsupportedFormat: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}


def code_of(error: Exception) -> ErrorCode:
    """Returns the code that a client gets for an exception."""
    for kind in type(error).__mro__:
        code = CODES.get(kind)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR
