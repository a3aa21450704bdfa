"""The settings that a topic can have, by Kafka's names: their types, checks and defaults.

A setting that a topic does not have is the broker's (its `broker_keys`, the first that is set).
Those that our broker stores and shows without acting on them are there because clients and tools
expect them; a value that would change what is stored (compaction, recompression) is refused rather
than ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from skidway.broker.log.config import FOREVER_MS, UNLIMITED
from skidway.kafka import gaps
from skidway.kafka.protocol.describe_configs import ConfigType

MIRROR: Final = "mirror."
"""Begins the names of the settings that mirrors write; nobody else changes them."""
MIRROR_SOURCE: Final = "mirror.source."
RETENTION_HOLD: Final = "retention.hold"
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
_INT_MAX = (1 << 31) - 1
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_READER = re.compile(r"[^/\0,\s]{1,249}")

Check = Callable[[str], str | None]
"""What is wrong with a value, in words that follow its name; None if nothing."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One setting of a topic; `default` as Kafka would print it, if no broker key gives it."""

    name: str
    type: ConfigType
    check: Check
    default: str = ""
    broker_keys: tuple[str, ...] = ()
    help: str = ""


def between(least: int, most: int) -> Check:
    """Whole numbers from `least` to `most`."""

    def check(text: str) -> str | None:
        if _WHOLE.fullmatch(text) is None:
            return f"must be a whole number, not {text!r}"
        value = int(text)
        return None if least <= value <= most else f"must be from {least} to {most}, not {value}"

    return check


def one_of(*choices: str) -> Check:
    """Exactly these."""

    def check(text: str) -> str | None:
        return None if text in choices else f"must be {' or '.join(choices)}, not {text!r}"

    return check


def compression(text: str) -> str | None:
    """Only that of the producers: nothing is compressed again."""
    if text == "producer":
        return None
    return (
        f"must be producer, not {text!r}: batches keep the codec that they came with; set "
        "compression.type in the producers"
    )


def fraction(text: str) -> str | None:
    """A number from 0 to 1."""
    good = _NUMBER.fullmatch(text) is not None and float(text) <= 1
    return None if good else f"must be a number from 0 to 1, not {text!r}"


def readers(text: str) -> str | None:
    """Names of groups, as they are in ZooKeeper's paths."""
    for name in elements(text):
        if _READER.fullmatch(name) is None or name in (".", ".."):
            return f"must be names of groups, without '/' and spaces, not {name!r}"
    return None


def elements(text: str) -> tuple[str, ...]:
    """The elements of a setting that is a list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


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
        "compression.gzip.level",
        _INT,
        one_of("-1"),
        "-1",
        help="For brokers that compress again, which this one does not.",
    ),
    TopicConfig(
        "compression.lz4.level",
        _INT,
        one_of("9"),
        "9",
        help="For brokers that compress again, which this one does not.",
    ),
    TopicConfig(
        "compression.type",
        _STRING,
        compression,
        "producer",
        help="Batches keep the codec of their producer.",
    ),
    TopicConfig(
        "compression.zstd.level",
        _INT,
        one_of("3"),
        "3",
        help="For brokers that compress again, which this one does not.",
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
        broker_keys=("log.segment.delete.delay.ms",),
        help="Time between taking a segment out and removing its files.",
    ),
    TopicConfig(
        "flush.messages",
        _LONG,
        between(1, FOREVER_MS),
        broker_keys=("log.flush.interval.messages",),
        help="Records after which a log is flushed although nobody waits.",
    ),
    TopicConfig(
        "flush.ms",
        _LONG,
        between(0, FOREVER_MS),
        broker_keys=("log.flush.interval.ms",),
        help="Time after which a log is flushed although nobody waits.",
    ),
    TopicConfig(
        "follower.replication.throttled.replicas",
        _LIST,
        one_of(""),
        "",
        help="For topics with more than one replica, which this broker does not have.",
    ),
    TopicConfig(
        "index.interval.bytes",
        _INT,
        between(0, _INT_MAX),
        broker_keys=("log.index.interval.bytes",),
        help="Bytes of log for one index entry.",
    ),
    TopicConfig(
        "leader.replication.throttled.replicas",
        _LIST,
        one_of(""),
        "",
        help="For topics with more than one replica, which this broker does not have.",
    ),
    TopicConfig(
        "local.retention.bytes",
        _LONG,
        one_of("-2"),
        "-2",
        help="For tiered storage, which this broker does not have.",
    ),
    TopicConfig(
        "local.retention.ms",
        _LONG,
        one_of("-2"),
        "-2",
        help="For tiered storage, which this broker does not have.",
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
        broker_keys=("message.max.bytes",),
        help="Largest record batch.",
    ),
    TopicConfig(
        "message.timestamp.after.max.ms",
        _LONG,
        between(0, FOREVER_MS),
        broker_keys=("log.message.timestamp.after.max.ms",),
        help="How far ahead of the clock event times may be.",
    ),
    TopicConfig(
        "message.timestamp.before.max.ms",
        _LONG,
        between(0, FOREVER_MS),
        broker_keys=("log.message.timestamp.before.max.ms",),
        help="How far behind the clock event times may be.",
    ),
    TopicConfig(
        "message.timestamp.type",
        _STRING,
        one_of(CREATE_TIME, LOG_APPEND_TIME),
        broker_keys=("log.message.timestamp.type",),
        help="CreateTime: records keep the time of their producer; LogAppendTime: of appending.",
    ),
    TopicConfig(
        "min.cleanable.dirty.ratio",
        ConfigType.DOUBLE,
        fraction,
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
        broker_keys=("min.insync.replicas",),
        help="In-sync replicas without which acks=all is refused.",
    ),
    TopicConfig(
        "preallocate", _BOOLEAN, one_of("false"), "false", help="Segments grow as they are written."
    ),
    TopicConfig(
        "remote.log.copy.disable",
        _BOOLEAN,
        one_of("false"),
        "false",
        help="For tiered storage, which this broker does not have.",
    ),
    TopicConfig(
        "remote.log.delete.on.disable",
        _BOOLEAN,
        one_of("false"),
        "false",
        help="For tiered storage, which this broker does not have.",
    ),
    TopicConfig(
        "remote.storage.enable",
        _BOOLEAN,
        one_of("false"),
        "false",
        help="For tiered storage, which this broker does not have.",
    ),
    TopicConfig(
        "retention.bytes",
        _LONG,
        between(UNLIMITED, FOREVER_MS),
        broker_keys=("log.retention.bytes",),
        help="Size of a partition above which its oldest segments go; -1 = no limit.",
    ),
    TopicConfig(
        "retention.ms",
        _LONG,
        between(UNLIMITED, FOREVER_MS),
        broker_keys=("log.retention.ms", "log.retention.hours"),
        help="Age by time of appending at which segments go; -1 = no limit.",
    ),
    TopicConfig(
        "segment.bytes",
        _INT,
        between(1024, _INT_MAX),
        broker_keys=("log.segment.bytes",),
        help="Size of a segment.",
    ),
    TopicConfig(
        "segment.index.bytes",
        _INT,
        between(4096, _INT_MAX),
        broker_keys=("log.index.size.max.bytes",),
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
        broker_keys=("log.roll.ms", "log.roll.hours"),
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
        readers,
        "",
        help="Groups (mirror, loader) whose offsets hold segments back, up to two limits.",
    ),
    TopicConfig(
        "retention.hold.max.bytes",
        _LONG,
        between(UNLIMITED, FOREVER_MS),
        broker_keys=("log.retention.hold.max.bytes",),
        help="Size of a partition above which nobody holds segments back; -1 = no limit.",
    ),
    TopicConfig(
        "retention.hold.max.ms",
        _LONG,
        between(UNLIMITED, FOREVER_MS),
        broker_keys=("log.retention.hold.max.ms",),
        help="Age by time of appending above which nobody holds segments back; -1 = no limit.",
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
