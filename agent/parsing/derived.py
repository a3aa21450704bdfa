"""Derives the schema of a source that names no schema. The schema's fields are strings, unless the
text below says otherwise, or `parser.types` gives another type to a group or column.

raw     one string field `line`
regex   a string field for each named group; if `timestamp` is set, also the parsed time as
        timestamp-millis in a field `timestamp` (or `event_time`, if a group is named `timestamp`)
csv     the same, with columns instead of groups
logfmt  the same, with the configured columns and the keys of the time instead of groups; these
        fields may be null, because a line may lack a key. A map `_extra` has the other keys

A source with `container` also has fields for the stream and the time (`containers.FIELDS`). A
source with `path.pattern` has a string field for each of the pattern's named groups. A source with
the setting `fields` or `labels` has a string field for each entry of the setting. A source with
`replay` has the fields `replayed.FIELDS`, which are numbers or null. Two settings add a boolean
field that is false by default: `on_error: replace` adds the field that the module `replacing` sets,
and `timestamp.on_error: read_time` adds TIME_MARK. Because of the default, a schema with such a
field and a schema without it are compatible in both directions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from skidway.agent.parsing import replayed
from skidway.agent.parsing.containers import STREAM, TIME
from skidway.agent.parsing.parser import EXTRA, TIME_MARK
from skidway.agent.parsing.replacing import MARK, check_groups
from skidway.errors import ConfigurationRefused
from skidway.schemas.avro_schema import PRIMITIVES

LINE_FIELD: Final = "line"
TIME_FIELDS: Final = ("timestamp", "event_time")

_NOT_OF_A_NAME = re.compile(r"[^A-Za-z0-9_]")
_STRING = "string"
_EXTRA = {"type": "map", "values": "string"}
_TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}


def record_name(topic: str) -> str:
    """Returns the topic as an Avro name. Characters that are not allowed in an Avro name become
    `_`. If the topic begins with a digit, or has the name of a primitive type, `_` is put before
    it.
    """
    name = _NOT_OF_A_NAME.sub("_", topic)
    return f"_{name}" if name[:1].isdigit() or name in PRIMITIVES else name


def schema(
    topic: str,
    groups: Sequence[str],
    *,
    with_time: bool = False,
    with_mark: bool = False,
    with_time_mark: bool = False,
    is_container: bool = False,
    added: Sequence[str] = (),
    types: Mapping[str, str] | None = None,
    with_origin: bool = False,
    optional: Collection[str] = (),
    with_extra: bool = False,
) -> str:
    """Returns the schema of a source.

    groups: the fields that the parser fills. types: the types of the groups that are not strings.
    The fields of these groups may be null, and so may the fields of the `optional` groups. added:
    string fields whose values do not come from the record's bytes. with_time: whether the parser
    finds the event time. with_origin: whether repaired records may be replayed. with_extra: whether
    the map EXTRA takes keys that belong to no field. Raises ConfigurationRefused if two fields
    would have the same name, or if `types` names something that is no group.
    """
    if with_mark:
        check_groups(groups)
    types = types or {}
    unknown = sorted(types.keys() - set(groups))
    if unknown:
        raise ConfigurationRefused(
            f"parser.types: {unknown[0]!r} is no group of parser.pattern, and none of "
            "parser.columns"
        )
    kinds = {group: types.get(group, _STRING) for group in groups}
    fields: list[tuple[str, object]] = [
        (group, ["null", kind] if kind != _STRING or group in optional else _STRING)
        for group, kind in kinds.items()
    ]
    if with_extra:
        fields.append((EXTRA, _EXTRA))
    if with_time:
        fields.append((time_field(groups), _TIMESTAMP))
    further: list[tuple[str, object]] = [(name, _STRING) for name in added]
    if with_origin:
        further += [(name, ["null", "long"]) for name in replayed.FIELDS]
    if is_container:
        further = [(STREAM, _STRING), (TIME, _TIMESTAMP), *further]
    marks = [
        name for name, is_there in ((MARK, with_mark), (TIME_MARK, with_time_mark)) if is_there
    ]
    names = [*(name for name, _ in (*fields, *further)), *marks]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationRefused(
            f"two fields would have the name {twice!r}: fields come from the parser, container, "
            "path.pattern, fields and labels, from on_error and replay; rename one of them"
        )
    return _schema(topic, fields, further, marks)


def time_field(groups: Sequence[str]) -> str:
    """Returns the name of the field that takes the parsed time: `timestamp`, or `event_time` if a
    group is named `timestamp`. Raises ConfigurationRefused if groups have both names."""
    for name in TIME_FIELDS:
        if name not in groups:
            return name
    raise ConfigurationRefused(
        "the parser's groups take both names of the time's field "
        f"({' and '.join(TIME_FIELDS)}); rename one of them"
    )


def _schema(
    topic: str,
    fields: Sequence[tuple[str, object]],
    further: Sequence[tuple[str, object]],
    marks: Sequence[str],
) -> str:
    """Returns the schema as JSON. further: fields that may be added to the source later; they have
    defaults, so the schemas before and after the addition are compatible.
    """
    members: list[dict[str, object]] = [
        {"name": name, "type": kind} | _default(kind) for name, kind in fields
    ]
    members += [
        {"name": name, "type": kind, "default": _default_of_further(kind)} for name, kind in further
    ]
    members += [{"name": name, "type": "boolean", "default": False} for name in marks]
    document = {"type": "record", "name": record_name(topic), "fields": members}
    return json.dumps(document)


def _default_of_further(kind: object) -> object:
    if type(kind) is list:
        return None
    return "" if kind == _STRING else 0


def _default(kind: object) -> dict[str, object]:
    if type(kind) is list:
        return {"default": None}
    return {"default": {}} if kind is _EXTRA else {}
