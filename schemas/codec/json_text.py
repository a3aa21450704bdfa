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

Values are read and written one by one, with fastavro. Between datum and JSON, a value is a *tagged*
Python value. Each value of a union of several types has a tag that says which of the types the
value has (`skidway.schemas.datum.plain_schema`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final

import fastavro
import pyarrow as pa

from skidway.schemas.avro_schema import (
    Array,
    AvroType,
    Fixed,
    Map,
    Record,
    Recursive,
    Union,
    default_fault,
)
from skidway.schemas.bounds import TEXT_MAX
from skidway.schemas.codec.arrow import (
    DECIMAL256_DIGITS,
    SchemaUnsupported,
    branches_of,
    decimal_type,
    member,
)
from skidway.schemas.codec.times import checked_time, is_time
from skidway.schemas.datum import MALFORMED, PlainSchema, read_checked, write_datum
from skidway.schemas.strict import DatumInvalid, value_end

Malformed: Final = (*MALFORMED, RecursionError)
"""The errors that a datum causes if it does not match its schema or is nested too deeply."""

_EXACT: Final = Context(prec=DECIMAL256_DIGITS)

Leaf = Callable[[AvroType, Any], Any]
Names = Mapping[int, Sequence[str]]


class JsonText:
    """Turns datums of one type into JSON texts, and the texts back into datums. Keeps no state
    between calls. Raises `SchemaUnsupported`."""

    def __init__(self, avro: AvroType) -> None:
        self._avro = avro
        schema = PlainSchema(defaults=False, tagged=True)
        try:
            self._plain = fastavro.parse_schema(schema.of(avro))
        except RecursionError:  # record types contain one another in too long a chain
            raise SchemaUnsupported("A type that contains itself is nested too deeply.") from None
        self._names = schema.names

    def read(self, data: bytes, begin: int, end: int) -> tuple[str | None, int]:
        """Reads the value that begins at `begin`, in a datum that ends at `end`. Returns the text
        of the value, and the position after the value. Raises an error of the tuple `Malformed`."""
        after = value_end(self._avro, data, begin, end)
        return self.of(read_checked(self._plain, data[begin:after])), after

    def of(self, value: Any) -> str | None:
        """Returns the text of a value. Wherever the schema has a union, the value must have a tag,
        as `plain_schema` describes. Raises an error of the tuple `Malformed`."""
        made = _changed(self._avro, value, _to_json)
        if made is None:
            return None
        text = json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        if len(text) > TEXT_MAX:
            raise DatumInvalid(f"its text has more than {TEXT_MAX} characters")
        return text

    def datum(self, text: str | None) -> bytes:
        """Returns the datum of a text that a method of this class has returned. For any
        other text, raises an error of the tuple `Malformed`."""
        value = None if text is None else json.loads(text)
        return write_datum(self._plain, _changed(self._avro, value, _from_json, self._names))


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


def scaled(raw: bytes, arrow: pa.DataType) -> Decimal:
    """Returns the decimal of these bytes. Raises ValueError if the decimal has too many digits."""
    digits = str(abs(unscaled := int.from_bytes(raw, "big", signed=True)))
    if len(digits) > arrow.precision:
        raise ValueError(f"a decimal has {len(digits)} digits, more than {arrow.precision}")
    return Decimal((unscaled < 0, tuple(map(int, digits)), -arrow.scale))


def _changed(avro: AvroType, value: Any, leaf: Leaf, names: Names | None = None) -> Any:
    """Returns `value` with each leaf (a value of a type without inner types) replaced by the result
    of the function `leaf`. names: if given, each value of a union becomes a pair with the name of
    its branch. (Without the name, fastavro would look for the branch by the whole value, at each
    level of nesting.) Each level needs only two nested calls, so that the stack is large enough for
    `bounds.DEPTH_MAX` levels."""
    if isinstance(avro, Recursive):
        avro = avro.type
    if not isinstance(avro, Union):
        return _parts_changed(avro, value, leaf, names)
    if value is None:
        return None
    members, number = branches_of(avro), 0
    if len(members) == 1:
        made = _parts_changed(avro.branches[members[0]], value, leaf, names)
    else:
        ((name, inner),) = value.items()
        number = int(name.removeprefix(member(0)[:-1]))
        made = {name: _parts_changed(avro.branches[members[number]], inner, leaf, names)}
    return made if names is None else (names[id(avro)][number], made)


def _parts_changed(avro: AvroType, value: Any, leaf: Leaf, names: Names | None) -> Any:
    made: Any = {}
    if isinstance(avro, Record):
        for each in avro.fields:
            made[each.name] = _changed(each.type, value[each.name], leaf, names)
    elif isinstance(avro, Map):
        for key, inner in value.items():
            made[key] = _changed(avro.values, inner, leaf, names)
    elif isinstance(avro, Array):
        made = []
        for item in value:
            made.append(_changed(avro.items, item, leaf, names))
    else:
        made = leaf(avro, value)
    return made


def _to_json(avro: AvroType, value: Any) -> Any:
    decimal = decimal_type(avro)
    if decimal is not None:
        return format(scaled(value, decimal), "f")
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return checked_time(avro, value) if is_time(avro) else value


def _from_json(avro: AvroType, value: Any) -> Any:
    decimal = decimal_type(avro)
    if decimal is not None:
        unscaled = int(Decimal(value).scaleb(decimal.scale, _EXACT))
        size = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(avro.size if isinstance(avro, Fixed) else size, "big", signed=True)
    if avro.kind in ("bytes", "fixed"):
        return value.encode("latin-1")
    return float(value) if avro.kind in ("float", "double") else value
