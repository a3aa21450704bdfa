"""Kafka's error codes, and the exceptions that broker and client raise for them.

Names and numbers come from Kafka's protocol guide ("Error Codes"). Numbers never change. A code
that is not in `ErrorCode` is read as UNKNOWN_SERVER_ERROR; the exception's text has the code's
number.

There are three kinds of exceptions:

* ``KafkaError``: the peer answered with an error code, or this side uses Kafka's code for an error
  that it has found itself (for example, ``UnsupportedVersion``).
* ``ProtocolError``: the peer's bytes do not follow the protocol. Later bytes cannot be understood
  either, so the connection is closed.
* ``BrokerUnreachable``: no broker answered in time.
"""

from __future__ import annotations

from enum import IntEnum

from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.types import TopicPartition


class ErrorCode(IntEnum):
    """Kafka's error codes, by Kafka's names."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    STALE_CONTROLLER_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    SNAPSHOT_NOT_FOUND = 98
    POSITION_OUT_OF_RANGE = 99
    UNKNOWN_TOPIC_ID = 100
    DUPLICATE_BROKER_REGISTRATION = 101
    BROKER_ID_NOT_REGISTERED = 102
    INCONSISTENT_TOPIC_ID = 103
    INCONSISTENT_CLUSTER_ID = 104
    TRANSACTIONAL_ID_NOT_FOUND = 105
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    INELIGIBLE_REPLICA = 107
    NEW_LEADER_ELECTED = 108
    MISMATCHED_ENDPOINT_TYPE = 114


RETRIABLE: frozenset[ErrorCode] = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,  # damaged in transit: the next copy may arrive intact
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""The error codes that Kafka calls retriable: the same request may succeed later, perhaps only
after the client has got new metadata.
"""


class KafkaError(SkidwayError):
    """The peer answered with an error code."""

    def __init__(self, code: ErrorCode, text: str | None = None) -> None:
        super().__init__(f"{code.name} ({code.value}): {text}" if text else _sentence(code))
        self.code = code

    @property
    def retriable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code in RETRIABLE


class OffsetOutOfRange(KafkaError):
    """A fetch asked for an offset that is not in the log.

    `log_start_offset` or `high_watermark` is -1 if the peer did not send it.
    """

    def __init__(
        self, tp: TopicPartition, requested: int, log_start_offset: int, high_watermark: int
    ) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"offset {requested} of {tp} is not in the log, which holds "
            f"{log_start_offset} to {high_watermark}",
        )
        self.tp = tp
        self.requested = requested
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class BrokerUnreachable(Unreachable):
    """No broker of the cluster answered in time."""


class ProtocolError(SkidwayError):
    """The peer's bytes do not follow the protocol; the connection must be closed."""


class Truncated(ProtocolError):
    """A field, array or structure runs past the end of its message."""


class TrailingBytes(ProtocolError):
    """A message is followed by bytes that do not belong to it."""


class BadValue(ProtocolError):
    """A message has a value that the type of the field forbids, such as a negative length, null, or
    text that is not UTF-8."""


class FrameTooLarge(ProtocolError):
    """A length prefix is negative or above the limit. No memory was allocated for the frame."""


class UnexpectedTls(ProtocolError):
    """A client speaks TLS to a listener without TLS."""


class NotAuthenticated(ProtocolError):
    """A request comes before the client has logged in, or after the end of its login."""


class NotOffered(ProtocolError):
    """A request has a version of an API that the broker does not offer. api: the API's name, or its
    number if it has no name here. client_id: of the client that sent the request."""

    def __init__(self, api: str, version: int, client_id: str | None) -> None:
        super().__init__(f"version {version} of API {api} is not offered")
        self.api = api
        self.version = version
        self.client_id = client_id


class UnknownApi(NotOffered):
    """A request has an API key that `protocol.apis.ApiKey` does not have."""


class UnsupportedVersion(KafkaError):
    """Client and broker have no common version of an API, or the common version lacks a field that
    the request needs.
    """

    def __init__(self, text: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, text)


def error_for(code: int, text: str | None = None) -> KafkaError:
    """Returns the exception for an error code from the wire, with the peer's text if it sent
    one."""
    try:
        return KafkaError(ErrorCode(code), text)
    except ValueError:
        said = f": {text}" if text else ""
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"unknown error code {code}{said}")


def _sentence(code: ErrorCode) -> str:
    words = code.name.lower().replace("_", " ")
    again = ", it may work if tried again" if code in RETRIABLE else ""
    return f"{code.name} ({code.value}): the broker refused this with {words}{again}"
