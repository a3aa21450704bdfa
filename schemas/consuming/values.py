"""Decodes the values of records into Python values. If a value begins with a schema id, it is
decoded with the schema that has this id. Other values stay unchanged."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.errors import Unreachable
from skidway.schemas import wire
from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.client import RegistryRefused, SchemaTexts
from skidway.schemas.codec import Codec
from skidway.schemas.codec.arrow import SchemaUnsupported
from skidway.schemas.codec.objects import Map, objects

CODECS_MAX: Final = 1_000
"""At most this many schemas are kept in memory. Values of further schemas are not decoded."""


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a record. If it was decoded, `schema_id` is set, and `decoded` is the result."""

    raw: bytes | None
    schema_id: int | None = None
    decoded: Any = None

    @property
    def line(self) -> bytes:
        """Returns the value as one line to print: JSON if the value was decoded, otherwise its
        unchanged bytes."""
        if self.schema_id is None:
            return self.raw or b""
        return json.dumps(plain(self.decoded), ensure_ascii=False).encode()


class Values:
    """Decodes values with the schemas of a registry. Values that cannot be decoded stay unchanged.
    For each reason why values cannot be decoded, this object calls `note` once, with the reason. It
    does not call `note` for values that are not decoded because of `CODECS_MAX`.

    is_named: whether the registry's URL is set. If it is not set, and the registry at the default
    URL is unreachable, values stay unchanged, and no error is raised.
    """

    def __init__(
        self, registry: SchemaTexts, note: Callable[[str], object], *, is_named: bool = True
    ) -> None:
        self._registry = registry
        self._note = note
        self._is_named = is_named
        self._codecs: dict[int, Codec | None] = {}
        self._told: set[str] = set()

    def read(self, values: pa.BinaryArray) -> list[Value]:
        """Returns one `Value` for each value. Raises Unreachable if the registry's URL is set and
        the registry does not answer."""
        found = [Value(raw) for raw in values.to_pylist()]
        ids, datums = wire.split(values)
        for schema_id in np.unique(ids[ids >= 0]).tolist():
            codec = self._codec(schema_id)
            if codec is None:
                continue
            rows = np.flatnonzero(ids == schema_id)
            decoded = codec.decode(datums.take(pa.array(rows)))
            good = rows[decoded.good].tolist()
            for row, document in zip(good, objects(decoded.batch), strict=True):
                found[row] = Value(found[row].raw, schema_id, document)
            if decoded.refused:
                self._tell(f"values that are no datum of their schema {schema_id} are not decoded")
        return found

    def _codec(self, schema_id: int) -> Codec | None:
        if schema_id not in self._codecs and len(self._codecs) < CODECS_MAX:
            self._codecs[schema_id] = self._asked(schema_id)
        return self._codecs.get(schema_id)

    def _asked(self, schema_id: int) -> Codec | None:
        try:
            return Codec(self._registry.schema(schema_id))
        except (RegistryRefused, SchemaInvalid, SchemaUnsupported) as error:
            self._tell(f"values with schema {schema_id} are not decoded: {error}")
        except Unreachable as error:
            if self._is_named:
                raise
            self._tell(f"values are not decoded, name their registry with --registry: {error}")
        return None

    def _tell(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._note(sentence)


def plain(value: Any) -> Any:
    """Returns a decoded value (see `skidway.schemas.codec.objects`), converted so that every reader
    of JSON takes it. Bytes become text if they are UTF-8. If they are not, they become base64, and
    so do all other bytes in the lists and maps of the same field; its name then ends with
    `_base64`, so that nobody mistakes base64 for text (`_base64_base64`, and so on, if the record
    has a field of that name). Times become text as in RFC 3339; decimals,
    NaN and infinities become text."""
    return _plain(value, is_base64=not _is_text(value))


def _plain(value: Any, *, is_base64: bool) -> Any:
    if isinstance(value, Map):
        return {name: _plain(each, is_base64=is_base64) for name, each in value.items()}
    if isinstance(value, Mapping):
        return _fields({str(name): each for name, each in value.items()})
    if isinstance(value, list | tuple):
        return [_plain(each, is_base64=is_base64) for each in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii") if is_base64 else value.decode("utf-8")
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def text_of(value: bytes) -> tuple[str, str]:
    """Returns a suffix for the name of the field that has the value, and the value as text. If the
    value is UTF-8, the suffix is empty. Other bytes become base64, and the suffix is `_base64`."""
    try:
        return "", value.decode("utf-8")
    except UnicodeDecodeError:
        return "_base64", base64.b64encode(value).decode("ascii")


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    taken, made = {*record}, {}
    for name, value in record.items():
        shown = name
        if not _is_text(value):
            while shown in taken:
                shown += "_base64"
            taken.add(shown)
        made[shown] = plain(value)
    return made


def _is_text(value: Any) -> bool:
    """Returns whether all bytes of a field's value are UTF-8, also those in lists and maps. The
    bytes in a record inside belong to the fields of that record."""
    if isinstance(value, bytes):
        return not text_of(value)[0]
    if isinstance(value, Map):
        return all(map(_is_text, value.values()))
    return not isinstance(value, list | tuple) or all(map(_is_text, value))
