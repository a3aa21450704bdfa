"""Defines the codec of one schema. For each batch it chooses one of three implementations, the
paths `pyruhvro`, `columns` and `fastavro`, and separates bad rows from good rows."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import leading_back, parse
from skidway.schemas.bounds import ITEMS_BYTES_MAX, item_types
from skidway.schemas.codec import metrics
from skidway.schemas.codec.arrow import SchemaUnsupported, arrow_schema, as_record, column_bytes
from skidway.schemas.codec.conform import ColumnsRefused, conform, default_column
from skidway.schemas.codec.fast_path import FastPath, NotProven, wire_columns
from skidway.schemas.codec.reading import read_columns, reader_of
from skidway.schemas.codec.rows import Rows, default_bytes
from skidway.schemas.codec.spreading import batch_of, spread
from skidway.schemas.codec.writing import Fragment, TooLong, joined, writer_of

BATCH_BYTES_MAX: Final = 1 << 30
"""A batch may take at most this many bytes in memory, so that no array of datums exceeds Arrow's
limit of 2 GiB."""
NO_VALUE: Final = "there is no value"

Refused = list[tuple[int, str]]
Faults = dict[int, str]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class EncodeRefused(SkidwayError):
    """Raised if rows do not fit the schema. `refused` has (index, reason) for each of these rows,
    in order."""

    def __init__(self, refused: Refused) -> None:
        index, reason = refused[0]
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        super().__init__(f"The schema does not take row {index} ({reason}){more}.")
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of decoding several datums: the rows, and the refused datums.

    `good` says for each datum whether it was decoded. `batch` has one row for each decoded datum,
    in order. `refused` has (index, reason) for each datum that was not decoded, in order.
    """

    batch: pa.RecordBatch
    good: np.ndarray[Any, np.dtype[np.bool_]]
    refused: Refused


class Codec:
    """Encodes and decodes datums of one schema. Keeps no state between calls. Several threads may
    use one codec.

    Raises `SchemaInvalid` for an invalid schema, and `SchemaUnsupported` for a schema that cannot
    become columns. A field's default in the schema is checked only when it is used. So if a
    registry has accepted an invalid default, datums that do not need the default can still be
    decoded.
    """

    def __init__(self, schema: str | dict[str, Any] | list[Any]) -> None:
        avro = parse(schema, check_defaults=False)
        self.arrow_schema: pa.Schema = arrow_schema(avro)
        self._record = as_record(avro)
        self._leading_back = leading_back(self._record)
        self._name = getattr(avro, "name", avro.kind)
        pairs = list(zip(self._record.fields, self.arrow_schema, strict=True))
        columns = wire_columns(self._record)
        self._fast = FastPath(columns) if columns else None
        self._readers = [reader_of(each.type, column.type) for each, column in pairs]
        self._writers = [writer_of(each.type) for each, _ in pairs]
        self._is_text = [each.type.kind for each in self._record.fields] == ["string"]
        self._has_items = bool(item_types(self._record) or self._leading_back)
        self._rows = Rows(self._record, self.arrow_schema)
        metrics.made(self.path)

    @property
    def path(self) -> str:
        """Returns the name of the implementation that encodes: `pyruhvro` or `columns`. Decoding
        always begins with `columns`."""
        return metrics.COLUMNS if self._fast is None else metrics.PYRUHVRO

    @property
    def name(self) -> str:
        """Returns the full name of the schema's record, enum or fixed. For any other schema,
        returns its kind."""
        return str(self._name)

    def check_encodes(self) -> None:
        """Raises `SchemaUnsupported` if a type of the schema contains itself. The codec can only
        read such types: it returns their values as JSON texts. It does not encode them, because it
        would have to take JSON texts from the caller, and nothing checks these texts."""
        if self._leading_back:
            place = self._leading_back
            raise SchemaUnsupported(f"Field {place} contains itself: its values are only read.")

    def row_bytes(self, most: int) -> int:
        """Returns about how many bytes each row takes at least: those of its columns and defaults.
        Counts no further than a little above `most`."""
        known: dict[str, int] = {}
        total = sum(column_bytes(each.type, known) for each in self._record.fields)
        for field in self._record.fields:
            if field.has_default and total <= most:
                total += default_bytes(field.type, field.default, most - total)
        return total

    def default_column(self, name: str, count: int) -> pa.Array:
        """Returns a column with `count` rows that all have the default of a field. Raises
        `ColumnsRefused` if the field has no valid default."""
        at = self.arrow_schema.get_field_index(name)
        return default_column(self._record.fields[at], self.arrow_schema.field(at), count)

    def encode(self, batch: pa.RecordBatch) -> pa.BinaryArray:
        """Returns one datum per row. Raises `EncodeRefused` if a row does not fit the schema, and
        the errors of `encode_rows_checked`."""
        datums, refused = self.encode_rows_checked(batch)
        if refused:
            raise EncodeRefused(refused)
        return datums

    def encode_rows_checked(self, batch: pa.RecordBatch) -> tuple[pa.BinaryArray, Refused]:
        """Returns the datums, and (index, reason) for each refused row. A refused row has a null in
        place of its datum.

        If a column is missing, encodes the default of its field. Raises `ColumnsRefused` if columns
        and fields do not match, or if the batch or its datums are too large (`BATCH_BYTES_MAX`,
        `DATUM_BYTES_MAX`). Raises `SchemaUnsupported` if a type of the schema contains itself
        (`check_encodes`).
        """
        columns, rows, refused = self._checked(batch)
        datums = self._datums(columns, rows)
        if not refused:
            return datums, []
        fit = np.ones(batch.num_rows, bool)
        fit[[index for index, _ in refused]] = False
        return spread(datums, fit), refused

    def encode_pieces_checked(self, batch: pa.RecordBatch) -> tuple[list[pa.BinaryArray], Refused]:
        """Returns columns of bytes, and (index, reason) for each refused row. Each column has one
        row for each row of the batch that is not refused. A row's datum consists of the row's bytes
        in all columns, joined. If the schema has only a text field, there is one column with the
        lengths and one with the texts. A caller that puts more bytes around each datum can join
        columns of these bytes and the returned columns in one step. So it copies the text only
        once.

        Fills missing columns and raises errors like `encode_rows_checked`.
        """
        columns, rows, refused = self._checked(batch)
        if self._is_text:
            return self._fragments(columns, rows), refused
        return [self._datums(columns, rows)], refused

    def _checked(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], int, Refused]:
        """Returns the columns of the rows that fit the schema, the number of these rows, and
        (index, reason) for each other row."""
        self.check_encodes()
        if batch.nbytes > BATCH_BYTES_MAX:
            raise ColumnsRefused(f"A batch has {batch.nbytes} bytes, more than {BATCH_BYTES_MAX}.")
        columns, faults = conform(batch, self._record, self.arrow_schema)
        if not faults:
            return columns, batch.num_rows, []
        metrics.refused("encode", len(faults))
        fit = np.ones(batch.num_rows, bool)
        fit[list(faults)] = False
        kept = np.flatnonzero(fit)
        rows = pa.array(kept)
        return [each.take(rows) for each in columns], len(kept), sorted(faults.items())

    def decode(self, datums: pa.BinaryArray) -> Decoded:
        """Returns the rows of all good datums, and the index and reason of each bad datum. A null
        is a bad datum."""
        if datums.type != pa.binary():
            datums = datums.cast(pa.binary())
        if not datums.null_count:
            return self._decode_parts(datums)
        valid = np.asarray(datums.is_valid())
        found, places = self._decode_parts(datums.drop_null()), np.flatnonzero(valid)
        faults = dict.fromkeys(np.flatnonzero(~valid).tolist(), NO_VALUE)
        faults |= {int(places[index]): reason for index, reason in found.refused}
        valid[places] = found.good
        return Decoded(found.batch, valid, sorted(faults.items()))

    def _decode_parts(self, datums: pa.BinaryArray) -> Decoded:
        """Decodes datums, in several parts if the schema has arrays, maps or types that become JSON
        texts. A part has at most `ITEMS_BYTES_MAX` bytes, or is a single longer datum. The parts
        limit the memory: each item of an array or map needs about a hundred bytes while it is
        decoded, and a text is longer than its datum."""
        cuts = _cuts(datums) if self._has_items else [0, len(datums)]
        parts = [self._decode(datums.slice(begin, end - begin)) for begin, end in pairwise(cuts)]
        if len(parts) == 1:
            return parts[0]
        columns = zip(*(each.batch.columns for each in parts), strict=True)
        refused = [
            (begin + index, reason)
            for begin, part in zip(cuts, parts, strict=False)
            for index, reason in part.refused
        ]
        good = np.concatenate([each.good for each in parts])
        batch = self._batch([pa.concat_arrays(each) for each in columns], good)
        return Decoded(batch, good, refused)

    def _decode(self, datums: pa.BinaryArray) -> Decoded:
        columns, bad = read_columns(self._readers, datums)
        metrics.datums("decode", metrics.COLUMNS, len(datums) - int(bad.sum()))
        if not bad.any():
            return Decoded(self._batch(columns, ~bad), ~bad, [])
        return self._decode_rows(datums, columns, bad)

    def _decode_rows(self, datums: pa.BinaryArray, columns: list[pa.Array], bad: Mask) -> Decoded:
        """Reads the datums in `bad` one by one, with fastavro. If one of them turns out to be good,
        inserts its row into the columns, in the order of the datums."""
        good = ~bad
        places = np.flatnonzero(bad)
        found, faults = self._rows.decode(datums.take(pa.array(places)).to_pylist())
        kept = [each.filter(pa.array(good)) for each in columns]
        good[places] = True
        good[places[list(faults)]] = False
        metrics.datums("decode", metrics.FASTAVRO, len(places) - len(faults))
        metrics.refused("decode", len(faults))
        if len(faults) < len(places):
            rows = np.concatenate([np.flatnonzero(~bad), places[good[places]]])
            order = pa.array(np.argsort(rows, kind="stable"))
            kept = [pa.concat_arrays(parts).take(order) for parts in zip(kept, found, strict=True)]
        refused = [(int(places[index]), reason) for index, reason in faults.items()]
        return Decoded(self._batch(kept, good), good, sorted(refused))

    def _batch(self, columns: list[pa.Array], good: Mask) -> pa.RecordBatch:
        return batch_of(columns, self.arrow_schema, int(good.sum()))

    def _datums(self, columns: list[pa.Array], rows: int) -> pa.BinaryArray:
        if self._fast is not None:
            try:
                datums = self._fast.encode(columns)
            except NotProven:
                pass
            else:
                metrics.datums("encode", metrics.PYRUHVRO, rows)
                return datums
        try:
            return joined(self._fragments(columns, rows), rows)
        except TooLong as error:
            raise ColumnsRefused(str(error)) from None

    def _fragments(self, columns: list[pa.Array], rows: int) -> list[Fragment]:
        fragments = [
            fragment
            for writer, column in zip(self._writers, columns, strict=True)
            for fragment in writer(column)
        ]
        metrics.datums("encode", metrics.COLUMNS, rows)
        return fragments


def _cuts(datums: pa.BinaryArray) -> list[int]:
    """Divides the datums into parts of at most `ITEMS_BYTES_MAX` bytes; a longer datum is a part of
    its own. Returns the index at which each part begins, and as the last element the number of
    datums."""
    if not len(datums):
        return [0, 0]
    bounds = np.frombuffer(datums.buffers()[1], np.int32)
    ends = bounds[datums.offset : datums.offset + len(datums) + 1].astype(np.int64)
    cuts = [0]
    while cuts[-1] < len(datums):
        fitting = int(np.searchsorted(ends, ends[cuts[-1]] + ITEMS_BYTES_MAX, "right")) - 1
        cuts.append(max(fitting, cuts[-1] + 1))
    return cuts
