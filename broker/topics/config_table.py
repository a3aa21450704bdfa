"""The settings that a topic can have, by Kafka's names: their types, checks and defaults.

A topic setting may list keys of the broker's settings (`broker_keys`). If a topic does not set a
value, the first of these keys that is set gives the value; a setting without such keys has a fixed
default. Some settings are stored and shown although the broker does not act on them, because
clients and tools expect them. But the broker refuses a value that asks for compaction, or for a
compression other than the producer's.
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
"""The prefix of settings that only mirrors write."""
MIRROR_SOURCE: Final = "mirror.source."
RETENTION_HOLD: Final = "retention.hold"
CREATE_TIME: Final = "CreateTime"
LOG_APPEND_TIME: Final = "LogAppendTime"
_INT_MAX = (1 << 31) - 1
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_READER = re.compile(r"[^/\0,\s]{1,249}")

Check = Callable[[str], str | None]
"""A function that gets a setting's value. If the value is wrong, it returns the reason, in words
that can follow the setting's name; otherwise it returns None.
"""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One setting of a topic. If a topic does not have the setting, its value comes from the first
    of `broker_keys` (settings of the broker) that is set, or else is `default`, written as Kafka
    prints it.
    """

    name: str
    type: ConfigType
    check: Check
    default: str = ""
    broker_keys: tuple[str, ...] = ()
    help: str = ""


def between(least: int, most: int) -> Check:
    """Returns a check that allows only whole numbers from `least` to `most`."""

    def check(text: str) -> str | None:
        if _WHOLE.fullmatch(text) is None:
            return f"must be a whole number, not {text!r}"
        value = int(text)
        return None if least <= value <= most else f"must be from {least} to {most}, not {value}"

    return check


def one_of(*choices: str) -> Check:
    """Returns a check that allows only the values in `choices`."""

    def check(text: str) -> str | None:
        return None if text in choices else f"must be {' or '.join(choices)}, not {text!r}"

    return check


def compression(text: str) -> str | None:
    """A check that allows only `producer`, because the broker stores batches with the producer's
    compression."""
    if text == "producer":
        return None
    return (
        f"must be producer, not {text!r}: batches keep the codec that they came with; set "
        "compression.type in the producers"
    )


def fraction(text: str) -> str | None:
    """A check that allows only a number from 0 to 1."""
    good = _NUMBER.fullmatch(text) is not None and float(text) <= 1
    return None if good else f"must be a number from 0 to 1, not {text!r}"


def readers(text: str) -> str | None:
    """A check that allows only a list of consumer groups, each with a name that a path in ZooKeeper
    can contain."""
    for name in elements(text):
        if _READER.fullmatch(name) is None or name in (".", ".."):
            return f"must be names of groups, without '/' and spaces, not {name!r}"
    return None


def elements(text: str) -> tuple[str, ...]:
    """Returns the elements of a setting whose value is a comma-separated list."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def any_text(_text: str) -> str | None:
    """A check that allows every value."""
    return None


_LONG = ConfigType.LONG
_INT = ConfigType.INT
_STRING = ConfigType.STRING
_LIST = ConfigType.LIST
_BOOLEAN = ConfigType.BOOLEAN

_COMPACTED = "For compacted topics, which this broker does not have."
_RECOMPRESSED = "For brokers that compress again, which this one does not."
_REPLICAS = "For topics with more than one replica, which this broker does not have."
_TIERED = "For tiered storage, which this broker does not have."

# Columns: name; type; check; default, or a tuple of the broker keys that give the default; help.
# fmt: off
_TABLE: Final[tuple[tuple[str, ConfigType, Check, str | tuple[str, ...], str], ...]] = (
    ("cleanup.policy", _LIST, one_of("delete"), "delete",
     "What happens to old segments: they are deleted."),
    ("compression.gzip.level", _INT, one_of("-1"), "-1", _RECOMPRESSED),
    ("compression.lz4.level", _INT, one_of("9"), "9", _RECOMPRESSED),
    ("compression.type", _STRING, compression, "producer",
     "Batches keep the codec of their producer."),
    ("compression.zstd.level", _INT, one_of("3"), "3", _RECOMPRESSED),
    ("delete.retention.ms", _LONG, between(0, FOREVER_MS), "86400000", _COMPACTED),
    ("errors.deadletterqueue.group.enable", _BOOLEAN, one_of("false"), "false",
     "For share groups, which this broker does not have."),
    ("file.delete.delay.ms", _LONG, between(0, FOREVER_MS), ("log.segment.delete.delay.ms",),
     "Time between taking a segment out and removing its files."),
    ("flush.messages", _LONG, between(1, FOREVER_MS), ("log.flush.interval.messages",),
     "Records after which a log is flushed although nobody waits."),
    ("flush.ms", _LONG, between(0, FOREVER_MS), ("log.flush.interval.ms",),
     "Time after which a log is flushed although nobody waits."),
    ("follower.replication.throttled.replicas", _LIST, one_of(""), "", _REPLICAS),
    ("index.interval.bytes", _INT, between(0, _INT_MAX), ("log.index.interval.bytes",),
     "Bytes of log for one index entry."),
    ("leader.replication.throttled.replicas", _LIST, one_of(""), "", _REPLICAS),
    ("local.retention.bytes", _LONG, one_of("-2"), "-2", _TIERED),
    ("local.retention.ms", _LONG, one_of("-2"), "-2", _TIERED),
    ("max.compaction.lag.ms", _LONG, between(1, FOREVER_MS), str(FOREVER_MS), _COMPACTED),
    ("max.decompressed.message.bytes", _INT, one_of("2147483639"), "2147483639",
     "For brokers that decompress, which this one does not."),
    ("max.message.bytes", _INT, between(0, _INT_MAX), ("message.max.bytes",),
     "Largest record batch."),
    ("message.timestamp.after.max.ms", _LONG, between(0, FOREVER_MS),
     ("log.message.timestamp.after.max.ms",), "How far ahead of the clock event times may be."),
    ("message.timestamp.before.max.ms", _LONG, between(0, FOREVER_MS),
     ("log.message.timestamp.before.max.ms",), "How far behind the clock event times may be."),
    ("message.timestamp.type", _STRING, one_of(CREATE_TIME, LOG_APPEND_TIME),
     ("log.message.timestamp.type",),
     "CreateTime: records keep their producer's time; LogAppendTime: that of appending."),
    ("min.cleanable.dirty.ratio", ConfigType.DOUBLE, fraction, "0.5", _COMPACTED),
    ("min.compaction.lag.ms", _LONG, between(0, FOREVER_MS), "0", _COMPACTED),
    ("min.insync.replicas", _INT, between(1, _INT_MAX), ("min.insync.replicas",),
     "In-sync replicas that acks=all needs."),
    ("preallocate", _BOOLEAN, one_of("false"), "false", "Segments grow as they are written."),
    ("remote.copy.lag.bytes", _LONG, one_of("-1"), "-1", _TIERED),
    ("remote.copy.lag.ms", _LONG, one_of("0"), "0", _TIERED),
    ("remote.log.copy.disable", _BOOLEAN, one_of("false"), "false", _TIERED),
    ("remote.log.delete.on.disable", _BOOLEAN, one_of("false"), "false", _TIERED),
    ("remote.storage.enable", _BOOLEAN, one_of("false"), "false", _TIERED),
    ("retention.bytes", _LONG, between(UNLIMITED, FOREVER_MS), ("log.retention.bytes",),
     "Size of a partition above which its oldest segments expire; -1 = no limit."),
    ("retention.ms", _LONG, between(UNLIMITED, FOREVER_MS),
     ("log.retention.ms", "log.retention.hours"),
     "Age by time of appending at which segments expire; -1 = no limit."),
    ("segment.bytes", _INT, between(1024, _INT_MAX), ("log.segment.bytes",), "Size of a segment."),
    ("segment.index.bytes", _INT, between(4096, _INT_MAX), ("log.index.size.max.bytes",),
     "Size of an index at which its segment is rolled."),
    ("segment.jitter.ms", _LONG, between(0, FOREVER_MS), "0",
     "Not used: segments are rolled by append time."),
    ("segment.ms", _LONG, between(1, FOREVER_MS), ("log.roll.ms", "log.roll.hours"),
     "Time after a segment's first append at which it is rolled."),
    ("unclean.leader.election.enable", _BOOLEAN, one_of("false"), "false",
     "A replica that is not in sync never becomes leader."),
    (RETENTION_HOLD, _LIST, readers, "",
     "Groups (mirror, loader) whose offsets hold segments back, up to two limits."),
    ("retention.hold.max.bytes", _LONG, between(UNLIMITED, FOREVER_MS),
     ("log.retention.hold.max.bytes",),
     "Size of a partition above which retention.hold holds nothing; -1 = no limit."),
    ("retention.hold.max.ms", _LONG, between(UNLIMITED, FOREVER_MS), ("log.retention.hold.max.ms",),
     "Age by time of appending above which retention.hold holds nothing; -1 = no limit."),
    ("mirror.source.cluster", _STRING, any_text, "",
     "Name of the cluster that this topic mirrors."),
    ("mirror.source.cluster.id", _STRING, any_text, "",
     "Id of the cluster that this topic mirrors."),
    ("mirror.source.topic", _STRING, any_text, "", "Name of the topic that this topic mirrors."),
    ("mirror.source.topic.id", _STRING, any_text, "", "Id of the topic that this topic mirrors."),
    (gaps.CONFIG, _LIST, gaps.refusal, "",
     "Offsets that the mirror could not get, as partition:first-end:reason."),
)
# fmt: on

TOPIC_CONFIGS: Final[Mapping[str, TopicConfig]] = {
    name: TopicConfig(name, kind, check, default, help=text)
    if isinstance(default, str)
    else TopicConfig(name, kind, check, broker_keys=default, help=text)
    for name, kind, check, default, text in _TABLE
}
