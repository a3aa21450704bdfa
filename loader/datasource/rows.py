"""Turns the record batches of one offset range into rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from skidway import row_columns
from skidway.audit.counts.counts import identify
from skidway.errors import SkidwayError
from skidway.kafka import columns
from skidway.kafka.batch import read_header
from skidway.kafka.columns import DecodedRecords
from skidway.loader.datasource.columns import PLACES, value_columns
from skidway.loader.datasource.options import Options
from skidway.loader.datasource.ranges import OffsetRange
from skidway.loader.reading.columns import Int64s, Records, WrittenRows, select, values_of
from skidway.loader.reading.decoder import Decoder
from skidway.row_columns import HEADERS, TIMESTAMP
from skidway.schemas.codec.times import FAR_TIME, far

Places = Callable[[Records], tuple[pa.Array, pa.Array]]


class Rows:
    """Makes rows that have the wanted columns, in the wanted order. A batch's rows do not depend on
    earlier batches."""

    def __init__(
        self,
        part: OffsetRange,
        wanted: pa.Schema,
        options: Options,
        decoder: Decoder | None,
        places: Places | None,
    ) -> None:
        """decoder: decodes the values; None if no value has to be decoded. places: a function that
        returns the hosts and paths of records; None if the query wants neither hosts nor paths."""
        self._part, self._wanted, self._decoder, self._places = part, wanted, decoder, places
        self._skips = options.skip_undecodable
        self._since, self._until = options.since_ms, options.until_ms
        self._with_headers = "_headers" in wanted.names
        self._checks_times = self._skips or TIMESTAMP.name in wanted.names

    def of(self, raw: memoryview) -> pa.RecordBatch:
        """Returns a row for each record of the batch whose offset is in the range and whose event
        time the query wants. If a value cannot be decoded, or if Spark cannot hold the event time,
        skips the record or raises SkidwayError, as the option `undecodable` says."""
        if self._since is not None and read_header(raw).max_timestamp < self._since:
            return pa.RecordBatch.from_pylist([], self._wanted)
        batch = columns.decode(raw, with_headers=self._with_headers)
        chosen = self._timed(batch, self._chosen(batch))
        found, chosen = self._values(batch, chosen)
        found |= self._own(batch, chosen)
        arrays = [self._column(found.get(field.name), field, len(chosen)) for field in self._wanted]
        return pa.RecordBatch.from_arrays(arrays, schema=self._wanted)

    def _chosen(self, batch: DecodedRecords) -> Int64s:
        is_in = (batch.offsets >= self._part.first) & (batch.offsets < self._part.end)
        if self._since is not None:
            is_in &= batch.timestamps >= self._since
        if self._until is not None:
            is_in &= batch.timestamps < self._until
        return np.flatnonzero(is_in)

    def _timed(self, batch: DecodedRecords, chosen: Int64s) -> Int64s:
        """Returns the indices of the records whose event times Spark can hold. The loader rejects
        the other records, with the reason `timestamp`."""
        mask = far(batch.timestamps[chosen]) if self._checks_times else None
        if mask is None:
            return chosen
        if not self._skips:
            raise self._refusal(batch.offsets[chosen[mask][0]], "timestamp", FAR_TIME)
        return chosen[~mask]

    def _values(self, batch: DecodedRecords, chosen: Int64s) -> tuple[dict[str, pa.Array], Int64s]:
        """Returns the columns of the values, and the indices of the records whose values could be
        decoded."""
        rows = pa.array(chosen)
        if not self._part.schema:
            return {"key": batch.keys.take(rows), "value": batch.values.take(rows)}, chosen
        if self._decoder is None:
            return {}, chosen
        decoded = self._decoder.decode(batch.values.take(rows))
        if decoded.refused and not self._skips:
            index, (reason, detail) = min(decoded.refused.items())
            raise self._refusal(batch.offsets[chosen[index]], reason, detail)
        names = self._decoder.schema.names
        return dict(zip(names, decoded.columns, strict=True)), chosen[decoded.good]

    def _own(self, batch: DecodedRecords, chosen: Int64s) -> Mapping[str, pa.Array]:
        offsets = batch.offsets[chosen]
        origins = None if batch.origins is None else select(batch.origins, chosen)
        identified = identify(origins, batch.has_origin[chosen], self._part.partition, offsets)
        records = Records(self._part.partition, offsets, batch.timestamps[chosen], identified)
        hosts = files = pa.nulls(len(chosen), pa.string())
        if self._places is not None:
            hosts, files = self._places(records)
        headers = None if batch.headers is None else batch.headers.take(pa.array(chosen))
        rows = WrittenRows(records, hosts, files, self._part.topic, headers)
        wanted = [
            each for each in row_columns.columns() if each is not HEADERS or headers is not None
        ]
        return dict(zip([each.name for each in wanted], values_of(wanted, rows), strict=True))

    def _column(self, column: pa.Array | None, field: pa.Field, count: int) -> pa.Array:
        if column is None:  # only another topic's schema has the column
            return pa.nulls(count, field.type)
        if column.type == field.type:
            return column
        try:
            return column.cast(field.type)
        except pa.ArrowException as error:
            raise SkidwayError(
                f"{self._where()}: the column {field.name} is {column.type}, and cannot be read as "
                f"{field.type}: {error}"
            ) from error

    def _refusal(self, offset: int, reason: str, detail: str) -> SkidwayError:
        return SkidwayError(f"{self._where()} offset {offset}: {reason} {detail}".rstrip())

    def _where(self) -> str:
        return f"{self._part.topic} partition {self._part.partition}"


def needs_values(part: OffsetRange, wanted: pa.Schema, options: Options) -> bool:
    """Returns whether values have to be decoded. Values have to be decoded if the query wants a
    column of the values, or if it must skip records whose values cannot be decoded.
    """
    if not part.schema:
        return False
    names = value_columns(part.schema).names
    return options.skip_undecodable or not set(wanted.names).isdisjoint(names)


def needs_places(wanted: pa.Schema) -> bool:
    """Returns whether the query wants the host or the path of files."""
    return not set(wanted.names).isdisjoint(PLACES)
