"""Computes the settings of a topic's logs from the topic's settings, and checks settings before a
topic gets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from skidway.broker.log.config import LogConfig
from skidway.broker.topics.config_table import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    MIRROR_SOURCE,
    RETENTION_HOLD,
    TOPIC_CONFIGS,
    elements,
)
from skidway.kafka import gaps

VALUE_BYTES_MAX: Final = 32_000
"""A setting's value has at most this many bytes. In the newer, flexible versions of Kafka's
requests a client can send a longer value, but responses in the older versions cannot contain such a
value. Also, one ZooKeeper node contains all settings of a topic, and a node has at most 1 MB.
"""
_TIMESTAMP_TYPE: Final = "message.timestamp.type"
_LOG_FIELDS: Final = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "index.interval.bytes": "index_interval_bytes",
    "segment.index.bytes": "segment_index_bytes",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "retention.hold.max.bytes": "hold_bytes_max",
    "retention.hold.max.ms": "hold_ms_max",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "max.message.bytes": "max_message_bytes",
    "min.insync.replicas": "min_insync_replicas",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
}


def refusal(configs: Mapping[str, str | None]) -> str | None:
    """Returns a sentence that says what is wrong with a topic's settings; None if nothing is
    wrong.
    """
    for name, value in configs.items():
        known = TOPIC_CONFIGS.get(name)
        if known is None:
            return f"Unknown topic config name: {name}"
        if value is None:
            return f"{name} has no value"
        if len(value.encode()) > VALUE_BYTES_MAX:
            return f"{name} is longer than {VALUE_BYTES_MAX} bytes"
        wrong = known.check(value)
        if wrong is not None:
            return f"{name} {wrong}"
    return None


def log_config(defaults: LogConfig, configs: Mapping[str, str]) -> LogConfig:
    """Returns the settings for a topic's logs: the topic's own `configs`, and `defaults` for the
    settings that `configs` does not contain. Values that this version of the broker does not
    understand are ignored.
    """
    found: dict[str, Any] = {}
    for name, attribute in _LOG_FIELDS.items():
        value = configs.get(name)
        if value is not None and TOPIC_CONFIGS[name].check(value) is None:
            found[attribute] = int(value)
    kind = configs.get(_TIMESTAMP_TYPE, "")
    if kind in (CREATE_TIME, LOG_APPEND_TIME):
        found["append_time"] = kind == LOG_APPEND_TIME
    held_by = configs.get(RETENTION_HOLD, "")
    if TOPIC_CONFIGS[RETENTION_HOLD].check(held_by) is None:
        found["held_by"] = elements(held_by)
    mirrored = f"{MIRROR_SOURCE}topic" in configs
    named = configs.get(gaps.CONFIG, "")
    missing = () if gaps.refusal(named) is not None else tuple(gaps.decode(named))
    return replace(defaults, **found, contiguous=not mirrored, gaps=missing)


def log_value(config: LogConfig, name: str) -> str | None:
    """Returns the value that a log uses for a setting, as Kafka prints it; None if logs do not use
    the setting.
    """
    if name == _TIMESTAMP_TYPE:
        return LOG_APPEND_TIME if config.append_time else CREATE_TIME
    attribute = _LOG_FIELDS.get(name)
    return None if attribute is None else str(getattr(config, attribute))
