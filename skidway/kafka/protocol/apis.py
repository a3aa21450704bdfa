"""Which APIs and versions there are: for brokers to offer, for clients to want.

``flexible_since`` decides the headers and the encoding of a version (KIP-482). ``broker`` is what
our broker can serve: its ApiVersions answer is computed from the handlers that it registers, each
within this range. ``client`` is what our client can speak; ``choose`` takes the highest that both
have. The ranges are those that today's clients were seen to need, all of them with one set:

* Produce is offered from 0, because librdkafka before 2.11.1 sends uncompressed batches if the
  lowest version is above 0; 0-2 are answered with UNSUPPORTED_VERSION (KIP-896, KAFKA-18659).
* Fetch reaches 12, because librdkafka 2.6.0 always sends 12; not 13, which names topics by id only.
* ListOffsets, CreateTopics and DeleteTopics begin where Apache Kafka 4 begins.

More APIs (transactions, SASL) are added here, in a file of their own name, and to the
registry in the package's ``__init__``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from skidway.kafka.errors import ErrorCode, UnknownApi, UnsupportedVersion


class ApiKey(IntEnum):
    """Kafka's API keys."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    INCREMENTAL_ALTER_CONFIGS = 44
    OFFSET_DELETE = 47
    DESCRIBE_CLUSTER = 60


class VersionRange(NamedTuple):
    """Versions of an API, both ends included."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __str__(self) -> str:
        return f"{self.lowest}-{self.highest}"


class Api(NamedTuple):
    """What is known of one API."""

    flexible_since: int
    broker: VersionRange
    client: VersionRange


NEVER_FLEXIBLE = 1 << 15
"""`flexible_since` of an API none of whose versions is flexible."""

APIS: Mapping[ApiKey, Api] = {
    ApiKey.PRODUCE: Api(9, VersionRange(0, 9), VersionRange(3, 9)),
    ApiKey.FETCH: Api(12, VersionRange(4, 12), VersionRange(4, 12)),
    ApiKey.LIST_OFFSETS: Api(6, VersionRange(1, 7), VersionRange(1, 7)),
    ApiKey.METADATA: Api(9, VersionRange(0, 11), VersionRange(4, 12)),
    ApiKey.OFFSET_COMMIT: Api(8, VersionRange(2, 8), VersionRange(2, 8)),
    ApiKey.OFFSET_FETCH: Api(6, VersionRange(1, 7), VersionRange(1, 7)),
    ApiKey.FIND_COORDINATOR: Api(3, VersionRange(0, 3), VersionRange(0, 3)),
    ApiKey.JOIN_GROUP: Api(6, VersionRange(2, 7), VersionRange(2, 7)),
    ApiKey.HEARTBEAT: Api(4, VersionRange(0, 4), VersionRange(0, 4)),
    ApiKey.LEAVE_GROUP: Api(4, VersionRange(0, 4), VersionRange(0, 4)),
    ApiKey.SYNC_GROUP: Api(4, VersionRange(0, 5), VersionRange(0, 5)),
    ApiKey.DESCRIBE_GROUPS: Api(5, VersionRange(0, 5), VersionRange(0, 5)),
    ApiKey.LIST_GROUPS: Api(3, VersionRange(0, 4), VersionRange(0, 4)),
    ApiKey.API_VERSIONS: Api(3, VersionRange(0, 3), VersionRange(0, 3)),
    ApiKey.CREATE_TOPICS: Api(5, VersionRange(2, 7), VersionRange(2, 7)),
    ApiKey.DELETE_TOPICS: Api(4, VersionRange(1, 6), VersionRange(1, 6)),
    ApiKey.DELETE_RECORDS: Api(2, VersionRange(0, 2), VersionRange(0, 2)),
    ApiKey.INIT_PRODUCER_ID: Api(2, VersionRange(0, 4), VersionRange(0, 4)),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Api(4, VersionRange(2, 4), VersionRange(2, 4)),
    ApiKey.DESCRIBE_CONFIGS: Api(4, VersionRange(1, 4), VersionRange(1, 4)),
    ApiKey.ALTER_CONFIGS: Api(2, VersionRange(0, 2), VersionRange(0, 2)),
    ApiKey.DESCRIBE_LOG_DIRS: Api(2, VersionRange(1, 4), VersionRange(1, 4)),
    ApiKey.CREATE_PARTITIONS: Api(2, VersionRange(0, 3), VersionRange(0, 3)),
    ApiKey.DELETE_GROUPS: Api(2, VersionRange(0, 2), VersionRange(0, 2)),
    ApiKey.OFFSET_DELETE: Api(NEVER_FLEXIBLE, VersionRange(0, 0), VersionRange(0, 0)),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Api(1, VersionRange(0, 1), VersionRange(0, 1)),
    ApiKey.DESCRIBE_CLUSTER: Api(0, VersionRange(0, 1), VersionRange(0, 1)),
}

PRODUCE_SERVED_SINCE = 3
"""Produce versions below are offered and answered with UNSUPPORTED_VERSION, nothing else."""


def known(key: int) -> ApiKey:
    """The API of a key from the wire; raises UnknownApi."""
    try:
        return ApiKey(key)
    except ValueError:
        raise UnknownApi(f"a request for API {key}, which is not known here") from None


def flexible(key: ApiKey, version: int) -> bool:
    """Whether this version has compact lengths, tag sections and the longer headers."""
    return version >= APIS[key].flexible_since


def choose(key: ApiKey, broker_ranges: Mapping[int, VersionRange]) -> int:
    """The version a client uses: the highest that it wants and the broker offers.

    `broker_ranges` is the broker's ApiVersions answer. Raises UnsupportedVersion, which names both
    ranges.
    """
    wanted = APIS[key].client
    offered = broker_ranges.get(key)
    if offered is None:
        raise UnsupportedVersion(f"the broker does not offer {key.name} ({key.value})")
    version = min(wanted.highest, offered.highest)
    if version < max(wanted.lowest, offered.lowest):
        raise UnsupportedVersion(
            f"the broker offers {key.name} in versions {offered}, this program speaks {wanted}"
        )
    return version


_KNOWN_SINCE: Mapping[tuple[ApiKey, ErrorCode], tuple[int, ErrorCode]] = {
    (ApiKey.PRODUCE, ErrorCode.KAFKA_STORAGE_ERROR): (4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ApiKey.FETCH, ErrorCode.KAFKA_STORAGE_ERROR): (6, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    (ApiKey.LIST_OFFSETS, ErrorCode.OFFSET_NOT_AVAILABLE): (5, ErrorCode.LEADER_NOT_AVAILABLE),
    (ApiKey.METADATA, ErrorCode.LISTENER_NOT_FOUND): (6, ErrorCode.LEADER_NOT_AVAILABLE),
    (ApiKey.DELETE_TOPICS, ErrorCode.TOPIC_DELETION_DISABLED): (3, ErrorCode.INVALID_REQUEST),
    (ApiKey.INIT_PRODUCER_ID, ErrorCode.PRODUCER_FENCED): (4, ErrorCode.INVALID_PRODUCER_EPOCH),
}


def code_for(key: ApiKey, version: int, code: ErrorCode) -> ErrorCode:
    """The error code to answer with: clients of older versions get the one that they understand.

    A client takes a code that its version does not have for an unknown error and gives up, where
    the older code makes it ask for metadata and try again.
    """
    since, before = _KNOWN_SINCE.get((key, code), (0, code))
    return code if version >= since else before
