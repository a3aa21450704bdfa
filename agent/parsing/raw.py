"""Puts each whole line, unchanged, into a string field of the schema."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skidway.agent.parsing.parser import NO_TIME, Parsed
from skidway.errors import ConfigurationRefused


class RawParser:
    """Fills one string field of the schema: the only field without a default, or the first string
    field if all fields have defaults. Raises ConfigurationRefused if several fields have no
    default, or if the field is no string.
    """

    def __init__(self, schema: pa.Schema, has_default: frozenset[str]) -> None:
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        needed = [field.name for field in schema if field.name not in has_default]
        named = needed or texts[:1]
        if len(named) != 1 or named[0] not in texts:
            raise ConfigurationRefused(
                "a raw parser fills one string field; the schema needs "
                f"{', '.join(needed) or 'none'}: give it one string field, or use another parser"
            )
        self._field = named[0]

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Makes a row of every line. This parser does not check whether a line is UTF-8. The codec
        checks it later, when it encodes the rows as Avro.
        """
        count = len(lines)
        batch = pa.RecordBatch.from_arrays([lines.view(pa.string())], names=[self._field])
        return Parsed(np.arange(count), batch, np.full(count, NO_TIME), [])
