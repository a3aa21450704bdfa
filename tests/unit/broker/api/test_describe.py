from __future__ import annotations

import pytest

from skidway.broker.api.describe import describe_broker, describe_topic, inherited
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.config_table import TOPIC_CONFIGS
from skidway.kafka import gaps
from skidway.kafka.gaps import Gap
from skidway.kafka.protocol.describe_configs import (
    ConfigSource,
    ConfigType,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    ResourceType,
)
from skidway.kafka.protocol.messages import encode
from skidway.settings.spec import specs

KAFKAS = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type
compression.zstd.level delete.retention.ms file.delete.delay.ms flush.messages flush.ms
follower.replication.throttled.replicas index.interval.bytes leader.replication.throttled.replicas
local.retention.bytes local.retention.ms max.compaction.lag.ms max.message.bytes
message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.type
min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
remote.copy.lag.bytes remote.copy.lag.ms errors.deadletterqueue.group.enable
max.decompressed.message.bytes remote.log.copy.disable remote.log.delete.on.disable
remote.storage.enable retention.bytes
retention.ms segment.bytes segment.index.bytes segment.jitter.ms segment.ms
unclean.leader.election.enable
"""


def row(rows: list[DescribeConfigsResourceResult], name: str) -> DescribeConfigsResourceResult:
    return next(each for each in rows if each.name == name)


def test_every_setting_that_kafka_has_is_shown() -> None:
    """DescribeConfigs returns every topic setting of Apache Kafka 4.4, each with a value and a
    description."""
    rows = describe_topic(BrokerSettings(), {})
    assert set(KAFKAS.split()) <= {each.name for each in rows}
    assert all(each.documentation and each.value is not None for each in rows)
    assert {each.config_source for each in rows} == {ConfigSource.DEFAULT_CONFIG}


def test_synonyms_say_what_would_count_without_the_first() -> None:
    """In the answer to DescribeConfigs, the synonyms of a topic's setting list all values that are
    set for it, in this order: the topic's own value, the value in the broker's configuration, the
    default. The first value in the list is the one that applies."""
    settings = BrokerSettings(retention_hours=5)
    shown = row(describe_topic(settings, {"retention.ms": "77"}), "retention.ms")
    assert (shown.value, shown.config_source) == ("77", ConfigSource.TOPIC_CONFIG)
    assert [(each.name, each.value, each.source) for each in shown.synonyms] == [
        ("retention.ms", "77", ConfigSource.TOPIC_CONFIG),
        ("log.retention.hours", "5", ConfigSource.STATIC_BROKER_CONFIG),
        ("log.retention.hours", "168", ConfigSource.DEFAULT_CONFIG),
    ]
    shown = row(describe_topic(settings, {}), "retention.ms")
    assert (shown.value, shown.config_source) == ("18000000", ConfigSource.STATIC_BROKER_CONFIG)


def test_what_a_mirror_writes_is_read_only() -> None:
    """In the answer to DescribeConfigs, the settings that only a mirror writes are read-only."""
    rows = describe_topic(BrokerSettings(), {"mirror.source.topic": "logs"})
    assert row(rows, "mirror.source.topic").read_only
    assert not row(rows, "retention.ms").read_only


def test_every_setting_of_the_broker_is_shown() -> None:
    """DescribeConfigs returns every broker setting with its type. If a value is not the default,
    the broker's configuration is given as its source."""
    rows = describe_broker(BrokerSettings(segment_bytes=4096))
    assert [each.name for each in rows] == list(specs(BrokerSettings))
    assert all(each.read_only for each in rows)
    changed = row(rows, "log.segment.bytes")
    assert (changed.value, changed.config_source, changed.config_type) == (
        "4096",
        ConfigSource.STATIC_BROKER_CONFIG,
        ConfigType.INT,
    )
    assert [each.value for each in changed.synonyms] == ["4096", "1073741824"]
    assert row(rows, "log.retention.ms").value is None
    assert row(rows, "auto.create.topics.enable").config_type is ConfigType.BOOLEAN
    assert row(rows, "log.retention.bytes").config_type is ConfigType.LONG
    assert row(rows, "listeners").config_type is ConfigType.LIST


@pytest.mark.parametrize("name", TOPIC_CONFIGS)
def test_inherited_values_are_legal(name: str) -> None:
    """The value that a topic inherits from the broker is always valid for the topic's setting. If
    the setting is a list, and a client appends an element, the new list begins with the inherited
    elements."""
    value = inherited(BrokerSettings())[name]
    assert TOPIC_CONFIGS[name].check(value) is None or value == ""


def test_many_gaps_are_shown_in_parts_that_every_client_can_read() -> None:
    """Gaps are offset ranges that a mirror lacks. The topic setting `mirror.gaps` lists them. If a
    topic has the maximum number of gaps with the longest possible texts, DescribeConfigs divides
    the list among several values. No value is longer than an int16 length allows, and together the
    values contain all gaps. A few gaps need only one value."""
    named = [Gap(9_999, (1 << 62) + 2 * n, (1 << 62) + 2 * n + 1, "expired") for n in range(1000)]
    rows = describe_topic(BrokerSettings(), {gaps.CONFIG: gaps.encode(named)})
    found = {each.name: each.value or "" for each in rows if each.name.startswith(gaps.CONFIG)}
    assert sorted(found) == ["mirror.gaps", "mirror.gaps.2"]
    assert gaps.decode(gaps.told(found)) == named
    assert all(each.read_only for each in rows if each.name in found)
    result = DescribeConfigsResult(
        resource_type=ResourceType.TOPIC, resource_name="logs", configs=tuple(rows)
    )
    for version in range(1, 5):
        assert encode(DescribeConfigsResponse(results=(result,)), version)
    few = describe_topic(BrokerSettings(), {gaps.CONFIG: gaps.encode(named[:2])})
    shown = [each for each in few if each.name.startswith(gaps.CONFIG)]
    assert [each.value for each in shown] == [gaps.encode(named[:2])]
