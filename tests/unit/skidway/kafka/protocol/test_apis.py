"""Tests which API versions Skidway's broker offers, which versions Skidway's client uses, and which
version a client chooses."""

from __future__ import annotations

import pytest

from skidway.broker.api.registry import SERVED
from skidway.kafka.errors import UnsupportedVersion
from skidway.kafka.protocol import ApiKey, VersionRange, choose
from skidway.kafka.protocol.apis import known
from support.messages import REQUESTS, RESPONSES

OFFERED = {  # all clients of docs/clients.md work with these versions
    ApiKey.PRODUCE: (0, 9),
    ApiKey.FETCH: (4, 12),
    ApiKey.LIST_OFFSETS: (1, 7),
    ApiKey.METADATA: (0, 11),
    ApiKey.OFFSET_COMMIT: (2, 8),
    ApiKey.OFFSET_FETCH: (1, 7),
    ApiKey.FIND_COORDINATOR: (0, 3),
    ApiKey.JOIN_GROUP: (2, 7),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 4),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 5),
    ApiKey.LIST_GROUPS: (0, 4),
    ApiKey.API_VERSIONS: (0, 3),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.INIT_PRODUCER_ID: (0, 4),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (2, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (1, 4),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.DESCRIBE_ACLS: (1, 2),
    ApiKey.CREATE_ACLS: (1, 2),
    ApiKey.DELETE_ACLS: (1, 2),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
}
KAFKA_4_4 = {  # what Apache Kafka 4.4 offers
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6),
    11: (0, 9), 12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4),
    19: (2, 7), 20: (1, 6), 21: (0, 2), 22: (0, 6), 23: (2, 4), 29: (1, 3), 30: (1, 3),
    31: (1, 3), 32: (1, 4), 33: (0, 2), 35: (1, 5), 36: (0, 2), 37: (0, 3), 42: (0, 3),
    44: (0, 1), 47: (0, 0), 50: (0, 0), 51: (0, 0), 60: (0, 2),
}  # fmt: skip


def test_offered() -> None:
    """The broker offers exactly the versions of the APIs in `OFFERED`, which are all that it
    serves."""
    assert {key: tuple(key.broker) for key in ApiKey} == OFFERED
    assert set(SERVED) == set(OFFERED)


def test_fetch_reaches_12_and_produce_begins_at_0() -> None:
    """The broker offers Fetch version 12, because librdkafka 2.6.0 always sends it. The broker
    offers Produce version 0, because otherwise older versions of librdkafka use fewer compression
    codecs."""
    assert ApiKey.FETCH.broker.highest == 12
    assert ApiKey.PRODUCE.broker.lowest == 0


@pytest.mark.parametrize("key", ApiKey, ids=lambda key: key.name)
def test_every_version_has_a_message(key: ApiKey) -> None:
    """The broker offers a range of versions of each API, and Skidway's client uses a range. The
    classes of the API's request and response support every version in these ranges."""
    for versions in (key.broker, key.client):
        for message in (REQUESTS[key], RESPONSES[key]):
            assert versions.lowest in message.VERSIONS
            assert versions.highest in message.VERSIONS


def test_choose_with_apache_kafka() -> None:
    """If the broker is Apache Kafka 4.4, Skidway's client chooses the highest versions that the
    client supports."""
    offered = {key: VersionRange(*versions) for key, versions in KAFKA_4_4.items()}
    assert choose(ApiKey.METADATA, offered) == 12
    assert choose(ApiKey.PRODUCE, offered) == 9
    assert choose(ApiKey.FETCH, offered) == 12
    assert {choose(key, offered) for key in ApiKey}  # `choose` refuses no API


def test_choose_with_our_broker() -> None:
    """If the broker is Skidway's, Skidway's client chooses the highest version that the broker
    offers."""
    offered = {int(key): VersionRange(*versions) for key, versions in OFFERED.items()}
    assert choose(ApiKey.METADATA, offered) == 11


@pytest.mark.parametrize("offered", [VersionRange(0, 2), VersionRange(13, 15)])
def test_nothing_in_common(offered: VersionRange) -> None:
    """If client and broker have no version in common, the error contains both ranges of
    versions."""
    with pytest.raises(UnsupportedVersion, match=f"{offered}.*4-12"):
        choose(ApiKey.FETCH, {1: offered})


def test_not_offered() -> None:
    """If the broker does not offer an API, the error names the API."""
    with pytest.raises(UnsupportedVersion, match=r"CREATE_PARTITIONS \(37\)"):
        choose(ApiKey.CREATE_PARTITIONS, {})


def test_our_client_never_creates_a_topic_by_asking() -> None:
    """Skidway's client never sends Metadata in a version below 4, because before version 4 a
    request for metadata may create topics."""
    assert ApiKey.METADATA.client.lowest == 4


def test_known() -> None:
    """Every API is found by its key, and an unknown key is no API."""
    assert known(18) is ApiKey.API_VERSIONS
    assert known(999) is None
