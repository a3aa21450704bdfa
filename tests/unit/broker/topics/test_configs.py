from __future__ import annotations

import pytest

from skidway.broker.log.config import FOREVER_MS, LogConfig
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.assignment import assign
from skidway.broker.topics.config_table import TOPIC_CONFIGS
from skidway.broker.topics.configs import log_config, log_value, refusal
from skidway.settings.spec import specs


@pytest.mark.parametrize(
    ("configs", "word"),
    [
        ({"no.such.key": "1"}, "no.such.key"),
        ({"retention.ms": "soon"}, "retention.ms"),
        ({"retention.ms": "-2"}, "retention.ms"),
        ({"segment.bytes": "10"}, "segment.bytes"),
        ({"cleanup.policy": "compact"}, "cleanup.policy"),
        ({"message.timestamp.type": "EventTime"}, "message.timestamp.type"),
        ({"compression.type": "zstd"}, "compression.type"),
        ({"compression.type": "lz4"}, "set compression.type in the producers"),
        ({"retention.ms": None}, "retention.ms"),
    ],
)
def test_settings_that_cannot_be_kept_are_refused(
    configs: dict[str, str | None], word: str
) -> None:
    """If the broker cannot do what a setting demands, it refuses the setting, and the error names
    the setting."""
    found = refusal(configs)
    assert found is not None
    assert word in found


def test_settings_that_make_sense_are_taken() -> None:
    """The broker accepts the Kafka settings that it supports, and its own settings that Kafka does
    not have."""
    assert (
        refusal({"retention.ms": "-1", "mirror.source.topic": "x", "retention.hold": "a"}) is None
    )


def test_a_log_acts_on_its_topics_settings() -> None:
    """A log uses its topic's settings. If the topic does not have a setting, or if the setting's
    value cannot be read, the log uses the broker's setting."""
    defaults = LogConfig(segment_bytes=5000)
    found = log_config(defaults, {"retention.ms": "77", "segment.ms": "x", "unknown": "1"})
    assert (found.segment_bytes, found.retention_ms) == (5000, 77)
    assert found.segment_ms == defaults.segment_ms
    assert log_value(found, "retention.ms") == "77"
    assert log_value(found, "cleanup.policy") is None


def test_a_mirror_may_have_gaps() -> None:
    """The log of a mirror topic can lack offsets. The log of any other topic must have every
    offset."""
    assert log_config(LogConfig(), {}).contiguous
    assert not log_config(LogConfig(), {"mirror.source.topic": "logs"}).contiguous


def test_every_default_is_legal_and_every_broker_key_exists() -> None:
    """Every topic setting has a legal default. Where the default comes from a broker setting, this
    broker setting exists."""
    known = set(specs(BrokerSettings))
    for each in TOPIC_CONFIGS.values():
        assert known.issuperset(each.broker_keys), each.name
        default = log_value(BrokerSettings().log_defaults(), each.name) or each.default
        if default:
            assert each.check(default) is None, each.name


def test_event_times_are_not_bounded_by_default() -> None:
    """By default, the broker accepts records with any event time, because agents may send old
    logs."""
    assert BrokerSettings().log_defaults().timestamp_after_max_ms == FOREVER_MS
    assert not BrokerSettings().log_defaults().bounds_timestamps


def test_partitions_go_round_the_brokers() -> None:
    """Partitions are assigned to the brokers in turn. If partitions are added later, the assignment
    continues with the broker after the broker of the topic's last partition."""
    assert assign(4, [1, 3, 7], 1) == {0: (3,), 1: (7,), 2: (1,), 3: (3,)}
    assert assign(2, [1, 3, 7], 1, 4) == {4: (7,), 5: (1,)}
