"""The settings that a topic can have, by Kafka's names; and what a log makes of them.

A setting that a topic does not have is the broker's (`log.*`, `message.*` keys). Those that our
broker stores and shows without acting on them are there because clients and tools expect them; a
value that would change what is stored (compaction, recompression, LogAppendTime) is refused rather
than ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from broker.log.config import FOREVER_MS, UNLIMITED, LogConfig
from skidway.kafka import gaps
from skidway.kafka.protocol.describe_configs import ConfigType

MIRROR_SOURCE: Final = "mirror.source."
RETENTION_HOLD: Final = "retention.hold"
_INT_MAX = (1 << 31) - 1

Check = Callable[[str], str | None]
"""What is wrong with a value, in words that follow its name; None if nothing."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One setting of a topic; `default` as Kafka would print it, if no broker key gives it."""

    name: str
    type: ConfigType
    check: Check
    default: str = ""
    broker_key: str = ""
    help: str = ""


def between(least: int, most: int) -> Check:
    """Whole numbers from `least` to `most`."""

    def check(text: str) -> str | None:
        try:
            value = int(text)
        except ValueError:
            return f"must be a whole number, not {text!r}"
        return None if least <= value <= most else f"must be from {least} to {most}, not {value}"

    return check


def one_of(*choices: str) -> Check:
    """Exactly these."""

    def check(text: str) -> str | None:
        return None if text in choices else f"must be {' or '.join(choices)}, not {text!r}"

    return check


def any_text(_text: str) -> str | None:
    """Anything."""
    return None


_LONG = ConfigType.LONG
_INT = ConfigType.INT
_STRING = ConfigType.STRING
_LIST = ConfigType.LIST
_BOOLEAN = ConfigType.BOOLEAN

_TABLE: Final = (
    TopicConfig(
        "cleanup.policy",
        _LIST,
        one_of("delete"),
        "delete",
        help="What becomes of old segments; they are deleted.",
    ),
    TopicConfig(
        "compression.type",
        _STRING,
        one_of("producer"),
        "producer",
        help="Batches keep the codec of their producer.",
    ),
    TopicConfig(
        "delete.retention.ms",
        _LONG,
        between(0, FOREVER_MS),
        "86400000",
        help="For compacted topics, which this broker does not have.",
    ),
    TopicConfig(
        "file.delete.delay.ms",
        _LONG,
        between(0, FOREVER_MS),
        broker_key="log.segment.delete.delay.ms",
        help="Time between taking a segment out and removing its files.",
    ),
    TopicConfig(
        "flush.messages",
        _LONG,
        between(1, FOREVER_MS),
        broker_key="log.flush.interval.messages",
        help="Records after which a log is flushed although nobody waits.",
    ),
    TopicConfig(
        "flush.ms",
        _LONG,
        between(0, FOREVER_MS),
        broker_key="log.flush.interval.ms",
        help="Time after which a log is flushed although nobody waits.",
    ),
    TopicConfig(
        "index.interval.bytes",
        _INT,
        between(0, _INT_MAX),
        broker_key="log.index.interval.bytes",
        help="Bytes of log for one index entry.",
    ),
    TopicConfig(
        "max.compaction.lag.ms",
        _LONG,
        between(1, FOREVER_MS),
        str(FOREVER_MS),
        help="For compacted topics, which this broker does not have.",
    ),
    TopicConfig(
        "max.message.bytes",
        _INT,
        between(0, _INT_MAX),
        broker_key="message.max.bytes",
        help="Largest record batch.",
    ),
    TopicConfig(
        "message.timestamp.after.max.ms",
        _LONG,
        between(0, FOREVER_MS),
        broker_key="log.message.timestamp.after.max.ms",
        help="How far ahead of the clock event times may be.",
    ),
    TopicConfig(
        "message.timestamp.before.max.ms",
        _LONG,
        between(0, FOREVER_MS),
        broker_key="log.message.timestamp.before.max.ms",
        help="How far behind the clock event times may be.",
    ),
    TopicConfig(
        "message.timestamp.type",
        _STRING,
        one_of("CreateTime"),
        "CreateTime",
        help="Records keep the time that their producer gave them.",
    ),
    TopicConfig(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        any_text,
        "0.5",
        help="For compacted topics, which this broker does not have.",
    ),
    TopicConfig(
        "min.compaction.lag.ms",
        _LONG,
        between(0, FOREVER_MS),
        "0",
        help="For compacted topics, which this broker does not have.",
    ),
    TopicConfig(
        "min.insync.replicas",
        _INT,
        between(1, _INT_MAX),
        broker_key="min.insync.replicas",
        help="In-sync replicas without which acks=all is refused.",
    ),
    TopicConfig(
        "preallocate", _BOOLEAN, one_of("false"), "false", help="Segments grow as they are written."
    ),
    TopicConfig(
        "retention.bytes",
        _LONG,
        between(UNLIMITED, FOREVER_MS),
        broker_key="log.retention.bytes",
        help="Size of a partition above which its oldest segments go; -1 = no limit.",
    ),
    TopicConfig(
        "retention.ms",
        _LONG,
        between(UNLIMITED, FOREVER_MS),
        broker_key="log.retention.ms",
        help="Age by time of appending at which segments go; -1 = no limit.",
    ),
    TopicConfig(
        "segment.bytes",
        _INT,
        between(1024, _INT_MAX),
        broker_key="log.segment.bytes",
        help="Size of a segment.",
    ),
    TopicConfig(
        "segment.index.bytes",
        _INT,
        between(4096, _INT_MAX),
        broker_key="log.index.size.max.bytes",
        help="Size of an index at which its segment is rolled.",
    ),
    TopicConfig(
        "segment.jitter.ms",
        _LONG,
        between(0, FOREVER_MS),
        "0",
        help="Not used: segments are rolled by append time.",
    ),
    TopicConfig(
        "segment.ms",
        _LONG,
        between(1, FOREVER_MS),
        broker_key="log.roll.ms",
        help="Time after a segment's first append at which it is rolled.",
    ),
    TopicConfig(
        "unclean.leader.election.enable",
        _BOOLEAN,
        one_of("false"),
        "false",
        help="A replica that is not in sync never becomes leader.",
    ),
    TopicConfig(
        RETENTION_HOLD,
        _LIST,
        any_text,
        "",
        help="Readers (mirror, loader) whose offsets hold segments back.",
    ),
    TopicConfig(
        "mirror.source.cluster",
        _STRING,
        any_text,
        "",
        help="Name of the cluster that this topic mirrors.",
    ),
    TopicConfig(
        "mirror.source.cluster.id",
        _STRING,
        any_text,
        "",
        help="Id of the cluster that this topic mirrors.",
    ),
    TopicConfig(
        "mirror.source.topic",
        _STRING,
        any_text,
        "",
        help="Name of the topic that this topic mirrors.",
    ),
    TopicConfig(
        "mirror.source.topic.id",
        _STRING,
        any_text,
        "",
        help="Id of the topic that this topic mirrors.",
    ),
    TopicConfig(
        gaps.CONFIG,
        _LIST,
        gaps.refusal,
        "",
        help="Offsets that the mirror could not have, as partition:first-end:reason.",
    ),
)

TOPIC_CONFIGS: Final[Mapping[str, TopicConfig]] = {each.name: each for each in _TABLE}

_LOG_FIELDS: Final = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "index.interval.bytes": "index_interval_bytes",
    "segment.index.bytes": "segment_index_bytes",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "max.message.bytes": "max_message_bytes",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
}


def refusal(configs: Mapping[str, str | None]) -> str | None:
    """What is wrong with a topic's settings, in a sentence; None if nothing."""
    for name, value in configs.items():
        known = TOPIC_CONFIGS.get(name)
        if known is None:
            return f"Unknown topic config name: {name}"
        if value is None:
            return f"{name} has no value"
        wrong = known.check(value)
        if wrong is not None:
            return f"{name} {wrong}"
    return None


def log_config(defaults: LogConfig, configs: Mapping[str, str]) -> LogConfig:
    """What a log acts on; settings that this version does not understand are passed over."""
    found = {}
    for name, attribute in _LOG_FIELDS.items():
        value = configs.get(name)
        if value is not None and TOPIC_CONFIGS[name].check(value) is None:
            found[attribute] = int(value)
    mirrored = f"{MIRROR_SOURCE}topic" in configs
    named = configs.get(gaps.CONFIG, "")
    missing = () if gaps.refusal(named) is not None else tuple(gaps.decode(named))
    return replace(defaults, **found, contiguous=not mirrored, gaps=missing)


def log_value(config: LogConfig, name: str) -> str | None:
    """The value that a log acts on, as Kafka prints it; None if a log does not know it."""
    attribute = _LOG_FIELDS.get(name)
    return None if attribute is None else str(getattr(config, attribute))
