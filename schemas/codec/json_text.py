"""Turns values whose type contains itself into JSON text, one text for each value of a field, and
back.

The text is the JSON that Spark's `to_json` would return for a nested column of the type. (This
column cannot exist, because it would be nested without end.) For example, a record has a field
`value`, and a field `next` of the record's own type. A query of a nested column would use
`next.value`; a query of the text uses `get_json_object(next, '$.value')`. This table shows the JSON
of each type:

| Avro | JSON |
|---|---|
| record, map | object |
| array | array |
| union of null and one type | the value, or null, without the name of the type |
| union of several types | object with one field: member0, or member1, ..., as in `arrow`; or null |
| boolean, int, long, float, double | true or false, number; "NaN", "Infinity", "-Infinity" |
| date, time, timestamp | the number in the datum |
| string, enum | text |
| bytes, fixed | text of the characters U+0000 to U+00FF, one for each byte, as in Avro's JSON |
| decimal | text of its digits, such as "-1.50" |

Fields are in the order of the schema, and the text has no spaces between fields. If the whole value
is null, the row of the column is null, and not the text `null`. A value is refused if its text
would be longer than `bounds.TEXT_MAX`, or if it is nested too deeply (`skidway.schemas.strict`).

Values are read and written one by one (`json_values`). A value that fastavro has read, with the
rest of its datum, or that comes from a default, is a *tagged* Python value before it becomes JSON.
Each value of a union of several types has a tag that says which of the types the value has
(`skidway.schemas.datum.plain_schema`).
"""

from __future__ import annotations

import json
from typing import Any, Final

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Map,
    Record,
    Recursive,
    Union,
    default_fault,
)
from skidway.schemas.bounds import TEXT_MAX
from skidway.schemas.codec.arrow import branches_of, member, member_number
from skidway.schemas.codec.json_values import ValueReader, leaf_json, put_value
from skidway.schemas.datum import MALFORMED
from skidway.schemas.strict import DatumInvalid, value_end

Malformed: Final = (*MALFORMED, RecursionError)
"""The errors that a datum causes if it does not match its schema or is nested too deeply."""


class JsonText:
    """Turns datums of one type into JSON texts, and the texts back into datums. Keeps no state, so
    it costs nothing to make one for each field of a schema."""

    def __init__(self, avro: AvroType) -> None:
        self._avro = avro

    def read(self, data: bytes, begin: int, end: int) -> tuple[str | None, int]:
        """Reads the value that begins at `begin`, in a datum that ends at `end`. Returns the text
        of the value, and the position after the value. Raises an error of the tuple `Malformed`."""
        after = value_end(self._avro, data, begin, end)
        return _text(ValueReader(data, begin).value(self._avro)), after

    def of(self, value: Any) -> str | None:
        """Returns the text of a value. Wherever the schema has a union, the value must have a tag,
        as `plain_schema` describes. Raises an error of the tuple `Malformed`."""
        return _text(_changed(self._avro, value))

    def datum(self, text: str | None) -> bytes:
        """Returns the datum of a text that a method of this class has returned. For any
        other text, raises an error of the tuple `Malformed`."""
        datum = bytearray()
        put_value(self._avro, None if text is None else json.loads(text), datum)
        return bytes(datum)


def _text(made: Any) -> str | None:
    if made is None:
        return None
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if len(text) > TEXT_MAX:
        raise DatumInvalid(f"its text has more than {TEXT_MAX} characters")
    return text


def tagged_default(avro: AvroType, value: Any) -> Any:
    """Returns the value of a field's default, which is a JSON value in the schema. Each value of a
    union of several types gets a tag that says which type it has (see `plain_schema`). If a value
    fits several types of the union, the tag names the first of them, as the specification demands.
    If the default is invalid, raises one of `DEFAULT_FAULTS` (in the module `rows`)."""
    if isinstance(avro, Recursive):
        return tagged_default(avro.type, value)
    if isinstance(avro, Union):
        if value is None:
            return None
        members = [avro.branches[at] for at in branches_of(avro)]
        fitting = (at for at, each in enumerate(members) if default_fault(each, value) is None)
        number = next(fitting, None)
        if number is None:
            raise ValueError(f"{value} fits no branch")
        made = tagged_default(members[number], value)
        return made if len(members) == 1 else {member(number): made}
    if isinstance(avro, Record):
        return {
            each.name: tagged_default(each.type, value.get(each.name, each.default))
            for each in avro.fields
        }
    if isinstance(avro, Array):
        return [tagged_default(avro.items, each) for each in value]
    if isinstance(avro, Map):
        return {key: tagged_default(avro.values, each) for key, each in value.items()}
    if avro.kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    return float(value) if avro.kind in ("float", "double") else value


def _changed(avro: AvroType, value: Any) -> Any:
    """Returns `value` with each leaf (a value of a type without inner types) as JSON. Each level
    needs only two nested calls, so that the stack is large enough for `bounds.DEPTH_MAX` levels."""
    if isinstance(avro, Recursive):
        avro = avro.type
    if not isinstance(avro, Union):
        return _parts_changed(avro, value)
    if value is None:
        return None
    if avro.members_count == 1:
        return _parts_changed(avro.branches[avro.member_at(0)], value)
    ((tag, inner),) = value.items()
    return {tag: _parts_changed(avro.branches[avro.member_at(member_number(tag))], inner)}


def _parts_changed(avro: AvroType, value: Any) -> Any:
    made: Any = {}
    if isinstance(avro, Record):
        for each in avro.fields:
            made[each.name] = _changed(each.type, value[each.name])
    elif isinstance(avro, Map):
        for key, inner in value.items():
            made[key] = _changed(avro.values, inner)
    elif isinstance(avro, Array):
        made = []
        for item in value:
            made.append(_changed(avro.items, item))
    else:
        made = leaf_json(avro, value)
    return made
