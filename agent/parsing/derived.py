"""The schema of a source that names none: strings, and the parsed time.

raw     one string field `line`
regex   each named group a string field, and with `timestamp` configured the parsed time as
        timestamp-millis in a field `timestamp` (`event_time` where a group has that name)
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from skidway.errors import ConfigurationRefused

LINE_FIELD: Final = "line"
TIME_FIELDS: Final = ("timestamp", "event_time")

_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_]")
_STRING = "string"
_TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}


def record_name(topic: str) -> str:
    """The topic as an Avro name: other characters than a name's become `_`."""
    name = _NOT_OF_A_NAME.sub("_", topic)
    return f"_{name}" if name[:1].isdigit() else name


def raw_schema(topic: str) -> str:
    """Of a raw source."""
    return _schema(topic, [(LINE_FIELD, _STRING)])


def regex_schema(topic: str, groups: Sequence[str], *, with_time: bool) -> str:
    """Of a regex source."""
    fields: list[tuple[str, object]] = [(group, _STRING) for group in groups]
    if with_time:
        fields.append((time_field(groups), _TIMESTAMP))
    return _schema(topic, fields)


def time_field(groups: Sequence[str]) -> str:
    """The name of the field that takes the parsed time."""
    for name in TIME_FIELDS:
        if name not in groups:
            return name
    raise ConfigurationRefused(
        "the parser's groups take both names of the time's field "
        f"({' and '.join(TIME_FIELDS)}); rename one of them"
    )


def _schema(topic: str, fields: Sequence[tuple[str, object]]) -> str:
    document = {
        "type": "record",
        "name": record_name(topic),
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    return json.dumps(document)
