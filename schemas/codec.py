"""Arrow record batches to Avro datums and back, for one schema.

Two paths give the same answers: `schemas.columns` (whole columns, the checked fast codec) for flat
records, `schemas.rows` (one datum at a time) for everything else, and for every batch in which the
fast path saw anything odd. A bad row or datum is set apart with its reason; the rest goes on.
Which Arrow type stands for which Avro type: `schemas.arrow`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from schemas.arrow import arrow_schema
from schemas.avro_schema import Record, parse
from schemas.canonical import canonical
from schemas.columns import FastPath, NotProven, wire_columns
from schemas.conform import NOT_UTF8, ColumnsRefused, conform
from schemas.rows import SlowPath
from skidway.errors import SkidwayError

__all__ = ["NOT_UTF8", "Codec", "ColumnsRefused", "Decoded", "EncodeRefused"]

BATCH_BYTES_MAX: Final = 1 << 30
"""Largest batch in memory, so that no array of datums passes Arrow's 2 GiB."""

SLOW_PIECE: Final = 32
"""Datums that are not worth another attempt of the fast path."""
NO_VALUE: Final = "there is no value"

Refused = list[tuple[int, str]]
Places = np.ndarray[Any, np.dtype[np.int64]]
Pieces = list[list[pa.Array]]


class EncodeRefused(SkidwayError):
    """Rows that the schema does not take: `refused` holds (index, reason) in order."""

    def __init__(self, refused: Refused) -> None:
        index, reason = refused[0]
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        super().__init__(f"The schema does not take row {index} ({reason}){more}.")
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a chunk of datums held.

    batch: the rows of the good datums, in order; its row count is the number of true in `good`.
    good: per datum, whether it decoded. refused: (index, reason) of the others, in order.
    """

    batch: pa.RecordBatch
    good: np.ndarray[Any, np.dtype[np.bool_]]
    refused: Refused


class Codec:
    """One schema's codec. Holds no state between calls; may be used from several threads.

    Raises `SchemaInvalid` or `SchemaUnsupported` for a schema that is none, or has no columns.
    """

    def __init__(self, schema: str | dict[str, Any]) -> None:
        avro = parse(schema)
        self.arrow_schema: pa.Schema = arrow_schema(avro)
        assert isinstance(avro, Record)  # anything else has no arrow_schema
        self._record = avro
        self.schema_json = canonical(avro)
        columns = wire_columns(avro, self.arrow_schema)
        self._fast = FastPath(columns, self.arrow_schema) if columns else None
        self._slow = SlowPath(avro, self.arrow_schema)

    @property
    def path(self) -> str:
        """Which codec usually does the work: `pyruhvro` or `fastavro`."""
        return "fastavro" if self._fast is None else "pyruhvro"

    @property
    def name(self) -> str:
        """Full name of the record."""
        return self._record.name

    @property
    def field_names(self) -> list[str]:
        """Names of the columns, in the schema's order."""
        return list(self.arrow_schema.names)

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """One datum per row. Raises `EncodeRefused` if the schema does not take a row."""
        datums, refused = self.encode_rows_checked(batch)
        if refused:
            raise EncodeRefused(refused)
        return datums

    def encode_rows_checked(self, batch: pa.RecordBatch) -> tuple[pa.BinaryArray, Refused]:
        """(datums, [(index, reason), ...]): as many datums as rows, null where refused.

        A column that is missing takes its field's default. Raises `ColumnsRefused` where columns
        and fields do not match, or the batch is larger than `BATCH_BYTES_MAX`.
        """
        if batch.nbytes > BATCH_BYTES_MAX:
            raise ColumnsRefused(f"A batch has {batch.nbytes} bytes, more than {BATCH_BYTES_MAX}.")
        columns, faults = conform(batch, self._record, self.arrow_schema)
        if not faults:
            datums, slow_faults = self._datums(columns, batch.num_rows)
            return datums, sorted(slow_faults.items())
        fit = np.ones(batch.num_rows, bool)
        fit[list(faults)] = False
        kept = np.flatnonzero(fit)
        rows = pa.array(kept)
        datums, slow_faults = self._datums([each.take(rows) for each in columns], len(kept))
        faults |= {int(kept[index]): reason for index, reason in slow_faults.items()}
        return _spread(datums, fit), sorted(faults.items())

    def decode(self, datums: pa.BinaryArray) -> Decoded:
        """The rows of all good datums, and which were bad and why. A null is a bad datum."""
        if datums.type != pa.binary():
            datums = datums.cast(pa.binary())
        count, places, faults = len(datums), np.arange(len(datums)), {}
        if datums.null_count:
            valid = np.asarray(datums.is_valid())
            places, datums = np.flatnonzero(valid), datums.drop_null()
            faults = dict.fromkeys(np.flatnonzero(~valid).tolist(), NO_VALUE)
        pieces: list[list[pa.Array]] = []
        self._decode_piece(datums, places, pieces, faults)
        good = np.ones(count, bool)
        good[list(faults)] = False
        columns = pieces[0]
        if len(pieces) > 1:
            columns = [pa.concat_arrays(each) for each in zip(*pieces, strict=True)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self.arrow_schema)
        return Decoded(batch, good, sorted(faults.items()))

    def _decode_piece(
        self, datums: pa.BinaryArray, places: Places, pieces: Pieces, faults: dict[int, str]
    ) -> None:
        """Adds the columns of `datums`, and the faults of those at `places`.

        By halves where the fast path refuses: a few bad datums make a few slow ones.
        """
        if self._fast is not None:
            try:
                pieces.append(self._fast.decode(datums))
            except NotProven:
                half = len(datums) // 2
                if half >= SLOW_PIECE:
                    self._decode_piece(datums.slice(0, half), places[:half], pieces, faults)
                    self._decode_piece(datums.slice(half), places[half:], pieces, faults)
                    return
            else:
                return
        columns, found = self._slow.decode(datums.to_pylist())
        pieces.append(columns)
        faults.update((int(places[index]), reason) for index, reason in found.items())

    def _datums(self, columns: list[pa.Array], rows: int) -> tuple[pa.BinaryArray, dict[int, str]]:
        if self._fast is not None:
            try:
                return self._fast.encode(columns), {}
            except NotProven:
                pass
        datums, faults = self._slow.encode(columns, rows)
        return pa.array(datums, pa.binary()), faults


def _spread(datums: pa.BinaryArray, fit: np.ndarray[Any, np.dtype[np.bool_]]) -> pa.BinaryArray:
    """`datums` at the places where `fit` is true, null at the others."""
    places = np.cumsum(fit) - 1
    return datums.take(pa.array(places, mask=~fit))
