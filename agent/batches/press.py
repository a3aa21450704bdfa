"""A press is a compiled recipe. A press makes record batches from readings. A reading is an intent
(a promised byte range of a file) with its bytes. The batches depend only on the intents, the bytes
and the recipe.

    bytes -> records -> columns -> (left out) -> datums -> (rejects) -> partitions -> batches
             framing    parser     rules         codec                  routing      cuts, encode

One call makes the batches of readings of several files, if the readings share the recipe and the
moment of reading. So a turn of the agent's loop that reads a hundred quiet files costs little more
than a turn that reads one busy file. What a record becomes never depends on the other records of
the same call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types

from skidway.agent.batches import rejected, routing
from skidway.agent.batches.filtered import Filtered
from skidway.agent.batches.framed_lines import FramedLines, hole_detail, overlong
from skidway.agent.batches.outcomes import outcomes
from skidway.agent.batches.parsers import added_fields, build_parser, framer_of
from skidway.agent.batches.records import Int64s, Records, distinct, sizes_of
from skidway.agent.batches.rejected import RejectedLine
from skidway.agent.batches.shape import filters_of, shape_of, without_left_out
from skidway.agent.parsing import lines as line_columns
from skidway.agent.parsing import replayed
from skidway.agent.parsing.added_fields import AddedFields
from skidway.agent.parsing.byte_order import UTF_8, marked
from skidway.agent.parsing.parser import (
    ENCODING,
    NO_MATCH,
    NO_TIME,
    NUL_BYTES,
    SCHEMA,
    TIMESTAMP,
    TOO_LONG,
    Parsed,
    Reject,
    in_places,
)
from skidway.agent.parsing.replacing import MARK
from skidway.agent.recipe import Recipe, TopicSnapshot
from skidway.agent.values.intents import Reading
from skidway.agent.values.tracked import ReadingOutcome
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.kafka import codecs, partitioning
from skidway.kafka.batch import HEADER_BYTES, EncodedBatch
from skidway.kafka.columns import RECORD_OVERHEAD_MAX, Pieces, cuts, encode
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec, NotUtf8
from skidway.schemas.wire import prefix

Partitions = int | Int64s
"""Either the one partition of all rows, or an array with the partition of each row."""

_PLAIN = (NO_MATCH, TIMESTAMP, TOO_LONG)
"""If a line is rejected for one of these reasons, the detail of the reject (a sentence about the
error) never quotes a value of the line. So the rules of `shape`, which hide secret values, need not
change the detail.
"""

AHEAD_MS_MAX = 3_600_000
"""If a record's event time is later than the moment of reading by more than this many milliseconds,
the record gets the moment of reading as its timestamp.
"""


@dataclass(frozen=True, slots=True)
class PressedBatch:
    """A record batch, and the indexes of the readings whose records it contains."""

    tp: TopicPartition
    encoded: EncodedBatch
    readings: tuple[int, ...]
    is_rejected: bool


@dataclass(frozen=True, slots=True)
class Pressed:
    """The batches and outcomes that one call of a press makes of its readings.

    batches: the batches, in the order in which they must be sent.
    outcomes: for each reading, what became of its bytes.
    records: how many records of the data topic are made from the readings.
    rejected: the lines that become records of the rejected topic.
    unbelieved_times: how many records had an event time that was too far ahead or before 1970, and
        got the moment of reading as their timestamp.
    replaced: how many records have U+FFFD in place of bytes that are not UTF-8.
    unread_times: how many records should have a time, but have none that could be read, and got
        the moment of reading instead.
    pieces: how many records and rejected lines are only a part of what the source's multiline
        settings call a record.
    filtered: the records that rules or the parser left out; None if the recipe leaves nothing out.
    coloured: from how many lines codes for terminals were taken before they were parsed.
    fieldless: by name, in how many lines members or keys had no field (see Parsed); the names are
        texts of the log.
    """

    batches: list[PressedBatch]
    outcomes: list[ReadingOutcome]
    records: int
    rejected: list[RejectedLine]
    unbelieved_times: int
    replaced: int
    unread_times: int = 0
    pieces: int = 0
    filtered: Filtered | None = None
    coloured: int = 0
    fieldless: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The records and the rejected lines of some readings. refused: for each rejected line, the
    index of its reading, and the line.
    """

    refused: list[tuple[int, RejectedLine]]
    records: Records | None = None
    unbelieved: int = 0
    replaced: int = 0
    unread_times: int = 0
    pieces: int = 0
    filtered: Filtered | None = None
    coloured: int = 0
    fieldless: Mapping[str, int] = field(default_factory=dict)


class Press:
    """A compiled recipe. Raises ConfigurationRefused if its parser, schema and key do not fit
    together, and SchemaUnsupported if records of the schema cannot be encoded.
    """

    def __init__(self, recipe: Recipe, codec: codecs.Codec = codecs.ZSTD) -> None:
        self.recipe = recipe
        self._compression = codec
        self._codec = Codec(recipe.schema.text)
        self._codec.check_encodes()
        if not self._codec.arrow_schema.names:
            raise ConfigurationRefused(
                f"source of topic {recipe.data.name}: the schema's record has no fields for what a "
                "line says"
            )
        self._rejected_codec = Codec(recipe.rejected_schema.text)
        self.framer = framer_of(recipe)
        # The encoding of the files. A replay's file is JSON in UTF-8 (see `replayed`); for such a
        # file, the encoding in `recipe` is only that of the line in each JSON object.
        self._outer_encoding = UTF_8 if recipe.is_replay else recipe.encoding
        self._shape = shape_of(recipe, self._codec)
        parsing, codec_before = recipe, self._codec
        if self._shape is not None:
            parsing, codec_before = self._shape.parsing, self._shape.before
        self._filters = filters_of(recipe, self._shape)
        self._added_fields = added_fields(parsing, codec_before)
        if recipe.is_replay:  # the parser adds these fields, because each line has its own path
            self._added_fields = AddedFields((), (), codec_before.arrow_schema)
        self._parser = build_parser(parsing, codec_before)
        _check_key(recipe, self._codec)

    def press(
        self,
        agent: int,
        readings: Sequence[Reading],
        sources: tuple[Source, Source],
        bucket_ms: int,
    ) -> Pressed:
        """Makes the batches and the counts of readings that share `read_ms` (the moment of
        reading). The reading of an over-long line or hole must be the only reading of its call.

        sources: the data topic and its rejected topic.
        """
        read_ms = readings[0].intent.read_ms
        if readings[0].is_overlong:
            parsed = _Parsed([overlong(readings[0], self._outer_encoding)])
        else:
            lines = FramedLines(readings, self.framer, self._outer_encoding)
            parsed = self._parse(agent, lines, read_ms)
        if self._shape is not None:
            parsed = replace(parsed, refused=self._shown(parsed.refused))
        records, streams = parsed.records, []
        if records is not None and len(records):
            data = self.recipe.data
            streams.append((sources[0], data, records, self._partitions(records)))
        set_apart = self._set_apart(agent, parsed.refused, read_ms)
        if set_apart is not None:
            topic = self.recipe.rejected
            streams.append((sources[1], topic, set_apart, _file_partitions(set_apart, topic)))
        batches = [
            batch
            for _, topic, rows, partitions in streams
            for batch in self._batches(agent, topic, rows, partitions)
        ]
        counted = [(source, rows) for source, _, rows, _ in streams]
        return Pressed(
            batches=batches,
            outcomes=outcomes(agent, readings, counted, sources, bucket_ms, parsed.filtered),
            records=0 if records is None else len(records),
            rejected=[line for _, line in parsed.refused],
            unbelieved_times=parsed.unbelieved,
            replaced=parsed.replaced,
            unread_times=parsed.unread_times,
            pieces=parsed.pieces,
            filtered=parsed.filtered,
            coloured=parsed.coloured,
            fieldless=parsed.fieldless,
        )

    def _parse(self, agent: int, lines: FramedLines, read_ms: int) -> _Parsed:
        holes, texts = lines.holes, lines.texts
        large = np.flatnonzero(line_columns.sizes(lines.values) > self.recipe.line_bytes)
        too_long = np.setdiff1d(large, holes)
        rejects = [Reject(int(row), TOO_LONG, "longer than max.line.bytes") for row in too_long]
        sizes = lines.frames.length[holes].tolist()
        rejects += [
            Reject(row, NUL_BYTES, hole_detail(size))
            for row, size in zip(holes.tolist(), sizes, strict=True)
        ]
        paths = [reading.path for reading in lines.readings]
        labels = [reading.labels for reading in lines.readings]
        excess = np.isin(lines.owner, self._added_fields.excess(paths, labels))
        for row in np.setdiff1d(np.flatnonzero(excess), [each.row for each in rejects]):
            detail = "path.pattern and labels add too much to it"
            rejects.append(Reject(int(row), TOO_LONG, detail))
        if rejects:
            fitting = np.delete(np.arange(len(texts)), [each.row for each in rejects])
            taken = self._parser.parse(texts.take(pa.array(fitting)), read_ms)
            parsed = in_places(taken, fitting)
        else:
            parsed = self._parser.parse(texts, read_ms)
        batch = self._added_fields.add(parsed.batch, paths, lines.owner[parsed.rows], labels)
        parsed = replace(parsed, batch=batch)
        filtered = None
        if self._filters or self._shape is not None:
            parsed, left_out = without_left_out(parsed, self._filters)
            if self._shape is not None:
                origins = lines.origins(agent, parsed.rows)
                parsed, by_rules, more = self._shape.apply(parsed, origins)
                rejects += more
                left_out = left_out.joined(by_rules)
            moments, _ = _times(left_out.event_ms, read_ms)
            filtered = lines.filtered(left_out, moments, self._filters)
        values, keys, kept = self._encode(parsed, rejects)
        times, unbelieved = _times(parsed.event_ms[kept], read_ms)
        records = lines.records(parsed.rows[kept], times, values, keys)
        rejects = sorted(rejects + parsed.rejects, key=lambda reject: reject.row)
        refused = [self._refused(*lines.rejected(reject)) for reject in rejects]
        return _Parsed(
            refused,
            records,
            unbelieved,
            self._replaced(parsed, kept),
            self._unread_times(parsed, kept),
            lines.frames.pieces,
            filtered,
            coloured=parsed.coloured,
            fieldless=parsed.fieldless,
        )

    def _refused(self, owner: int, line: RejectedLine) -> tuple[int, RejectedLine]:
        """Changes a repaired line that is rejected again: takes it out of its envelope (the JSON
        object in the replay's file), and gives it the host and path of the line that was rejected
        first. So people can find that line. Returns any other line unchanged.
        """
        envelope = replayed.read(line.line) if self.recipe.is_replay else None
        raw = None if envelope is None else envelope.line_in(self.recipe.encoding)
        if envelope is None or raw is None:
            return owner, line
        return owner, replace(
            line,
            line=marked(raw, self.recipe.encoding),
            host=envelope.host,
            path=envelope.path,
            original=envelope.original,
        )

    def _shown(self, refused: list[tuple[int, RejectedLine]]) -> list[tuple[int, RejectedLine]]:
        """Takes out of the rejected lines the values that the rules mask, hash or remove (see
        `RejectedText`).
        """
        assert self._shape is not None
        text = self._shape.rejected
        if text.is_whole:
            return refused
        return [
            (owner, replace(
                x,
                line=text.unreadable(x.line) if x.reason == ENCODING
                else self._shape.shown(x.line, is_head=x.is_head),
                detail=x.detail if x.reason in _PLAIN else text.detail(x.detail),
            ))
            for owner, x in refused
        ]  # fmt: skip

    def _replaced(self, parsed: Parsed, kept: Int64s) -> int:
        if self.recipe.on_error != "replace" or MARK not in parsed.batch.schema.names:
            return 0
        marks = np.asarray(parsed.batch.column(MARK))
        return int(np.count_nonzero(marks[kept]))

    def _unread_times(self, parsed: Parsed, kept: Int64s) -> int:
        if self.recipe.time_format is None:
            return 0
        return int(np.count_nonzero(parsed.event_ms[kept] == NO_TIME))

    def _encode(
        self, parsed: Parsed, rejects: list[Reject]
    ) -> tuple[Pieces, pa.BinaryArray | None, Int64s]:
        """Encodes parsed records. Returns the values, the keys, and the rows of `parsed` from which
        they come. For each row that does not fit the schema or a batch, adds a reject to `rejects`.
        """
        datums, refused = self._codec.encode_pieces_checked(parsed.batch)
        values = Pieces(prefix(self.recipe.schema.id), tuple(datums))
        for index, why in refused:
            reason = ENCODING if isinstance(why, NotUtf8) else SCHEMA
            rejects.append(Reject(int(parsed.rows[index]), reason, why))
        kept = np.delete(np.arange(len(parsed.rows)), [index for index, _ in refused])
        keys = None
        if self.recipe.key is not None:
            keys = _bytes(parsed.batch.column(self.recipe.key))
            keys = keys if not refused else keys.take(pa.array(kept))
        fits = self._fits_a_batch(values, keys)
        if fits.all():
            return values, keys, kept
        for index in kept[~fits].tolist():
            detail = "the record is larger than a batch may be"
            rejects.append(Reject(int(parsed.rows[index]), TOO_LONG, detail))
        rows = np.flatnonzero(fits)
        return values.take(rows), None if keys is None else keys.take(pa.array(rows)), kept[rows]

    def _fits_a_batch(self, values: Pieces, keys: pa.BinaryArray | None) -> npt.NDArray[np.bool_]:
        size = sizes_of(values, keys) + HEADER_BYTES + RECORD_OVERHEAD_MAX
        fits: npt.NDArray[np.bool_] = size <= self._limit(self.recipe.data)
        return fits

    def _set_apart(
        self, agent: int, refused: list[tuple[int, RejectedLine]], read_ms: int
    ) -> Records | None:
        if not refused:
            return None
        lines = [line for _, line in refused]
        datums = self._rejected_codec.encode(rejected.columns(self.recipe, agent, lines))
        return Records(
            owner=np.array([owner for owner, _ in refused], np.int64),
            file=np.array([line.file for line in lines], np.int64),
            first=np.array([line.first for line in lines], np.int64),
            length=np.array([line.length for line in lines], np.int64),
            times=np.full(len(lines), read_ms, np.int64),
            values=Pieces(prefix(self.recipe.rejected_schema.id), (datums,)),
        )

    def _partitions(self, records: Records) -> Partitions:
        """Returns the partition of all records of the data topic, if they share one; otherwise the
        partition of each record."""
        count = self.recipe.data.partitions
        if self.recipe.partitioning == "file" or count == 1:
            return _file_partitions(records, self.recipe.data)
        if self.recipe.partitioning == "key" and records.keys is not None:
            by_key = partitioning.of_keys(records.keys.fill_null(b""), count)
            if not records.keys.null_count:
                return by_key
            missing = np.asarray(records.keys.is_null())
            return np.where(missing, _file_partitions(records, self.recipe.data), by_key)
        spread = np.empty(len(records), np.int64)
        for file, rows in records.files():
            spread[rows] = routing.of_position(file, records.first[rows], count)
        return spread

    def _limit(self, topic: TopicSnapshot) -> int:
        return min(self.recipe.batch_bytes, topic.limit_bytes)

    def _batches(
        self, agent: int, topic: TopicSnapshot, records: Records, partitions: Partitions
    ) -> Iterator[PressedBatch]:
        """Yields batches partition by partition. No batch is larger than the agent's `batch.size`
        or the topic's max.message.bytes."""
        sizes = records.sizes
        for partition, rows in _by_partition(len(records), partitions):
            begin = 0
            for end in cuts(sizes if rows is None else sizes[rows], self._limit(topic)):
                part = slice(begin, end) if rows is None else rows[begin:end]
                begin = end
                yield PressedBatch(
                    TopicPartition(topic.name, partition),
                    self._batch(agent, records, part),
                    distinct(records.owner[part]),
                    topic is self.recipe.rejected,
                )

    def _batch(self, agent: int, records: Records, rows: slice | Int64s) -> EncodedBatch:
        return encode(
            records.values.take(rows),
            records.times[rows],
            origins=records.origins(agent, rows),
            keys=None if records.keys is None else _rows_of(records.keys, rows),
            codec=self._compression,
        )


def _check_key(recipe: Recipe, codec: Codec) -> None:
    if recipe.key is None:
        return
    at = codec.arrow_schema.get_field_index(recipe.key)
    kind = codec.arrow_schema.field(at).type if at >= 0 else None
    if kind is None or not (types.is_string(kind) or types.is_integer(kind)):
        raise ConfigurationRefused(
            f"source of topic {recipe.data.name}: key {recipe.key!r} must be a field of the "
            "schema, a string or an integer"
        )


def _times(event_ms: Int64s, read_ms: int) -> tuple[Int64s, int]:
    stated = event_ms != NO_TIME
    believed = stated & (event_ms >= 0) & (event_ms <= read_ms + AHEAD_MS_MAX)
    times = np.where(believed, event_ms, np.int64(read_ms))
    return times, int(np.count_nonzero(stated & ~believed))


def _bytes(column: pa.Array) -> pa.BinaryArray:
    text = column if types.is_string(column.type) else column.cast(pa.string())
    return text.cast(pa.binary())


def _rows_of(column: pa.BinaryArray, rows: slice | Int64s) -> pa.BinaryArray:
    return column[rows] if isinstance(rows, slice) else column.take(pa.array(rows))


def _by_partition(count: int, partitions: Partitions) -> Iterator[tuple[int, Int64s | None]]:
    """Yields each partition with the indexes of its rows; None in place of indexes means all
    `count` rows."""
    if isinstance(partitions, int):
        yield partitions, None
        return
    for partition in distinct(partitions):
        rows = np.flatnonzero(partitions == partition)
        yield partition, None if len(rows) == count else rows


def _file_partitions(records: Records, topic: TopicSnapshot) -> Partitions:
    files = distinct(records.file)
    if len(files) == 1 or topic.partitions == 1:
        return routing.of_file(files[0], topic.partitions)
    partitions = np.empty(len(records), np.int64)
    for file, rows in records.files():
        partitions[rows] = routing.of_file(file, topic.partitions)
    return partitions
