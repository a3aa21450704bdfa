"""The APIs and their versions: what Skidway's broker can offer, and what its client wants.

Versions from ``flexible_since`` on have the flexible headers and encoding (KIP-482). ``broker`` is
the range of versions that the broker offers. The broker's ApiVersions answer lists only the APIs
for which the broker registers a handler. ``client`` is the range that the client can use;
``choose`` returns the highest version that is in both ranges. The ranges contain the versions that
today's clients need:

* Produce is offered from 0, because librdkafka before 2.11.1 sends uncompressed batches if the
  lowest version is higher than 0. But versions 0-2 are answered with UNSUPPORTED_VERSION (KIP-896,
  KAFKA-18659).
* Fetch is offered up to 12, because librdkafka 2.6.0 always sends 12. Version 13 is not offered: it
  names topics only by id.
* SaslHandshake is offered from 0, because librdkafka 2.0.2 (Debian 12) logs in only then; it uses
  version 1. Version 0, after which a client sends bytes without headers, is answered with
  UNSUPPORTED_VERSION.
* The APIs of rules are offered up to 2: kafka-python takes a broker with 3 for Kafka 3.3, and then
  sends versions of other APIs that are not offered. Version 3 adds a type of resources that only
  delegation tokens need.
* ListOffsets, CreateTopics and DeleteTopics begin with the same version as in Apache Kafka 4.

To add an API to the broker (for example for transactions or SASL), add an entry here, a module with
the API's messages in this package, and a module with its handler in broker/api. Then add the
handler to ``SERVED`` in broker/api/registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple, Self

from skidway.kafka.errors import UnsupportedVersion


class VersionRange(NamedTuple):
    """A range of versions of an API, including both ends."""

    lowest: int
    highest: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.lowest <= version <= self.highest

    def __str__(self) -> str:
        return f"{self.lowest}-{self.highest}"


NEVER_FLEXIBLE = 1 << 15
"""The value of `flexible_since` for an API that has no flexible version."""


class ApiKey(IntEnum):
    """Kafka's API keys. Each key has a number, the first flexible version, the versions that the
    broker serves, and the versions that the client can use (if they are not given, the client can
    use all versions that the broker serves)."""

    PRODUCE = 0, 9, (0, 9), (3, 9)
    FETCH = 1, 12, (4, 12)
    LIST_OFFSETS = 2, 6, (1, 7)
    METADATA = 3, 9, (0, 11), (4, 12)
    OFFSET_COMMIT = 8, 8, (2, 8)
    OFFSET_FETCH = 9, 6, (1, 7)
    FIND_COORDINATOR = 10, 3, (0, 3)
    JOIN_GROUP = 11, 6, (2, 7)
    HEARTBEAT = 12, 4, (0, 4)
    LEAVE_GROUP = 13, 4, (0, 4)
    SYNC_GROUP = 14, 4, (0, 5)
    DESCRIBE_GROUPS = 15, 5, (0, 5)
    LIST_GROUPS = 16, 3, (0, 4)
    SASL_HANDSHAKE = 17, NEVER_FLEXIBLE, (0, 1), (1, 1)
    API_VERSIONS = 18, 3, (0, 3)
    CREATE_TOPICS = 19, 5, (2, 7)
    DELETE_TOPICS = 20, 4, (1, 6)
    DELETE_RECORDS = 21, 2, (0, 2)
    INIT_PRODUCER_ID = 22, 2, (0, 4)
    OFFSET_FOR_LEADER_EPOCH = 23, 4, (2, 4)
    DESCRIBE_ACLS = 29, 2, (1, 2), (1, 3)
    CREATE_ACLS = 30, 2, (1, 2), (1, 3)
    DELETE_ACLS = 31, 2, (1, 2), (1, 3)
    DESCRIBE_CONFIGS = 32, 4, (1, 4)
    ALTER_CONFIGS = 33, 2, (0, 2)
    DESCRIBE_LOG_DIRS = 35, 2, (1, 4)
    SASL_AUTHENTICATE = 36, 2, (0, 2)
    CREATE_PARTITIONS = 37, 2, (0, 3)
    DELETE_GROUPS = 42, 2, (0, 2)
    INCREMENTAL_ALTER_CONFIGS = 44, 1, (0, 1)
    OFFSET_DELETE = 47, NEVER_FLEXIBLE, (0, 0)
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50, 0, (0, 0)
    ALTER_USER_SCRAM_CREDENTIALS = 51, 0, (0, 0)
    DESCRIBE_CLUSTER = 60, 0, (0, 1)

    flexible_since: int
    broker: VersionRange
    client: VersionRange

    def __new__(
        cls,
        number: int,
        flexible_since: int,
        broker: tuple[int, int],
        client: tuple[int, int] | None = None,
    ) -> Self:
        key = int.__new__(cls, number)
        key._value_ = number
        key.flexible_since = flexible_since
        key.broker = VersionRange(*broker)
        key.client = VersionRange(*(client or broker))
        return key


_BY_NUMBER: Mapping[int, ApiKey] = {key.value: key for key in ApiKey}

PRODUCE_SERVED_SINCE = 3
"""Lower Produce versions are offered, but only answered with UNSUPPORTED_VERSION."""
SASL_HANDSHAKE_SERVED_SINCE = 1
"""So is the lower version of SaslHandshake."""


def known(number: int) -> ApiKey | None:
    """Returns the API with this key; None if `ApiKey` does not have the key."""
    return _BY_NUMBER.get(number)


def flexible(key: ApiKey, version: int) -> bool:
    """Returns whether this version of an API is flexible (KIP-482): it has compact lengths, tag
    sections, and headers with tags."""
    return version >= key.flexible_since


def choose(key: ApiKey, broker_ranges: Mapping[int, VersionRange]) -> int:
    """Returns the version that a client uses, which is the highest version in both the client's and
    the broker's range.

    `broker_ranges` comes from the broker's ApiVersions answer. Raises UnsupportedVersion if the
    broker does not offer the API, or if no version is in both ranges.
    """
    wanted = key.client
    offered = broker_ranges.get(key)
    if offered is None:
        raise UnsupportedVersion(f"the broker does not offer {key.name} ({key.value})")
    version = min(wanted.highest, offered.highest)
    if version < max(wanted.lowest, offered.lowest):
        raise UnsupportedVersion(
            f"the broker offers {key.name} in versions {offered}, this program speaks {wanted}"
        )
    return version
