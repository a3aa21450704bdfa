"""Tests how a task loads one slice (offset range) of a partition: which records the task keeps,
drops, rejects and counts, and where it stops."""

from __future__ import annotations

from collections.abc import Iterator

import google_crc32c
import pyarrow as pa
import pytest

from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.errors import OffsetOutOfRange
from skidway.kafka.types import TopicPartition
from skidway.loader.planning.plan import Slice
from skidway.loader.reading.decoder import Decoded, Decoder
from skidway.loader.slices.job import SliceResult
from skidway.loader.slices.slice_load import SliceLoad
from support.loading import (
    HOUR_MS,
    SCHEMA,
    SOURCE,
    START_MS,
    TOPIC,
    Record,
    Registry,
    Runner,
    datum,
    fetched,
    gap,
    job,
    log,
    one_batch,
    rows_of,
)
from support.memory_store import MemoryStore
from support.promises import promise


def run(
    records: list[Record], first: int = 0, end: int | None = None, marks=None, **changes
) -> tuple[MemoryStore, SliceResult]:
    store = MemoryStore()
    runner = Runner(store, {0: log(records)}, job(**changes))
    end = len(records) if end is None else end
    return store, runner.one(Slice(0, first, end), marks)


def lines(count: int, **changes) -> list[Record]:
    return [Record(first=10 * index, **changes) for index in range(count)]


def test_every_record_becomes_a_row_with_its_columns() -> None:
    """Each record becomes a row. The row has the columns of the schema, and columns for the
    record's origin, host, path, time, partition and offset."""
    store, result = run([Record(first=30, length=12, time_ms=START_MS + 5)])
    (row,) = rows_of(store, result)
    assert row["line"] == "7/1/30+12"
    assert (row["_agent"], row["_file_id"], row["_offset"], row["_length"]) == (7, 1, 30, 12)
    assert (row["_host"], row["_file"]) == ("host", "/log/1")
    assert (row["_partition"], row["_kafka_offset"]) == (0, 0)
    assert row["_timestamp"].timestamp() * 1000 == START_MS + 5
    assert result.end == 1
    assert result.stop is None


def test_only_offsets_of_the_slice_are_taken() -> None:
    """A slice may begin and end inside batches. The slice's task loads exactly the records at the
    slice's own offsets."""
    store, result = run(lines(10), first=2, end=7)
    assert [row["_kafka_offset"] for row in rows_of(store, result)] == [2, 3, 4, 5, 6]
    assert result.below is not None
    assert (result.below.base_offset, result.below.last_offset) == (6, 8)


def test_a_repeat_is_dropped_and_counted_apart() -> None:
    """A record that was sent twice becomes one row. The second copy is counted only as a repeat."""
    again = [*lines(3), *lines(3)]
    store, result = run(again)
    assert len(rows_of(store, result)) == 3
    assert result.repeats == 3
    (sums,) = result.sums.values()
    assert (sums.count, sums.repeats, sums.bytes) == (3, 3, 30)


def test_marks_that_are_given_make_repeats() -> None:
    """A mark is the position up to which the lines of a log file have been loaded. A slice gets the
    marks that earlier slices have reached. Records below these marks are repeats."""
    store, result = run(lines(4), marks={(7, 1): 20})
    assert [row["_offset"] for row in rows_of(store, result)] == [20, 30]
    assert result.lowest == {(7, 1): 0}
    assert result.highest == {(7, 1): 40}


def test_a_straddle_is_rejected_and_counts_once() -> None:
    """A mark is the position up to which the lines of a log file have been loaded. A record that
    begins below its file's mark and ends above it is rejected, and counted as one record."""
    store, result = run([Record(first=0), Record(first=5, length=10), Record(first=15)])
    assert [row["_offset"] for row in rows_of(store, result)] == [0, 15]
    (reject,) = rows_of(store, result, "rejects")
    assert (reject["reason"], reject["_offset"]) == ("straddle", 5)
    (sums,) = result.sums.values()
    assert (sums.count, sums.rejects) == (3, 1)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "no-schema-id"),
        (b"\1\0\0\0\1x", "no-schema-id"),
        (b"\0\0\0\0\x09x", "unknown-schema"),
        (datum("good")[:-1], "undecodable"),
        (datum("good") + b"\0", "undecodable"),
    ],
)
def test_what_cannot_be_decoded_is_rejected_whole(value: bytes, reason: str) -> None:
    """A record whose value cannot be decoded is rejected. The reject has the record's whole value
    and its origin. The other records become rows."""
    store, result = run([Record(), Record(first=10, value=value), Record(first=20)])
    assert [row["_offset"] for row in rows_of(store, result)] == [0, 20]
    (reject,) = rows_of(store, result, "rejects")
    assert (reject["reason"], reject["value"], reject["_offset"]) == (reason, value, 10)
    assert reject["_host"] == "host"
    assert result.reasons == {reason: 1}
    (sums,) = result.sums.values()
    assert (sums.count, sums.rejects) == (3, 1)


def test_a_time_without_a_directory_is_rejected() -> None:
    """A record from the year 300,000 is rejected, because no directory can be named after its
    day. Its reject lies in the hour of the bucket in which it is counted, the first of 1970."""
    store, result = run([Record(), Record(first=10, time_ms=9_404_646_000_000_000)])
    assert len(rows_of(store, result)) == 1
    assert {start: sums.rejects for (_, _, start), sums in result.sums.items()} == {
        START_MS - START_MS % 60_000: 0, 0: 1,
    }  # fmt: skip
    assert (
        [each.path for each in result.files][-1]
        .split("rejects/")[1]
        .startswith("dt=1970-01-01/hour=00/")
    )
    (reject,) = rows_of(store, result, "rejects")
    assert (reject["reason"], reject["_timestamp"]) == ("timestamp", None)
    assert reject["timestamp_ms"] == 9_404_646_000_000_000


def test_records_without_origin_are_identified_by_offset() -> None:
    """A record from a standard Kafka producer, without an agent's header, becomes a row of agent 0,
    and is identified by partition and offset."""
    records = [Record(has_origin=False, value=datum(str(index))) for index in range(3)]
    store, result = run(records)
    rows = rows_of(store, result)
    assert [(row["_agent"], row["_file_id"], row["_offset"]) for row in rows] == [
        (0, 0, 0), (0, 0, 1), (0, 0, 2),
    ]  # fmt: skip
    assert rows[0]["_host"] is None


def test_rows_go_to_the_hour_of_their_event_time() -> None:
    """The rows of each hour of event time go to a file of their own, in whatever order the records
    come."""
    times = [START_MS + hour * HOUR_MS for hour in (2, 0, 2, 1)]
    records = [Record(first=10 * index, time_ms=time) for index, time in enumerate(times)]
    store, result = run(records)
    assert [file.path for file in result.files] == [
        f"{TOPIC}/dt=2023-11-14/hour=22/part-1-0-1.parquet",
        f"{TOPIC}/dt=2023-11-14/hour=23/part-1-0-3.parquet",
        f"{TOPIC}/dt=2023-11-15/hour=00/part-1-0-0.parquet",
    ]
    assert [file.rows for file in result.files] == [1, 1, 2]
    for file in result.files:
        assert store.length(file.staged) == file.length


def test_a_range_ends_before_a_file_that_is_not_announced() -> None:
    """A slice's range consists of the offsets that its task loads. The range ends before a record
    of a log file that no agent has announced (in a message with the file's host and path). Neither
    this record nor any later record is written."""
    records = [*lines(4), Record(agent=8, first=0), *lines(2, file=2)]
    store, result = run(records)
    assert result.end == 4
    assert result.stop is not None
    assert result.stop.waiting_for == (8, 1)
    assert len(rows_of(store, result)) == 4
    assert result.highest == {(7, 1): 40}
    assert result.below is not None
    assert result.below.base_offset == 3
    (sums,) = result.sums.values()
    assert sums.count == 4
    assert "file 1 of agent 8, which is not announced yet" in result.stop.sentence


def test_the_batch_in_which_nothing_was_taken_is_not_the_one_below() -> None:
    """If a slice's task stops before the first record of a batch, the task's result names the
    previous batch as the last loaded batch. The next load compares this batch with the log."""
    _, result = run([*lines(3), Record(agent=8)])
    assert result.end == 3
    assert result.below is not None
    assert (result.below.base_offset, result.below.last_offset) == (0, 2)


def test_every_unknown_file_behind_the_end_is_waited_for_at_once() -> None:
    """A slice's task stops before a record of a log file that no agent has announced. The records
    after it may come from further such files. The load waits for the announcements of all these
    files at the same time. Otherwise each lost announcement would cost the whole waiting time."""
    records = [Record(), *(Record(agent=8, file=file) for file in (1, 2, 1, 3))]
    _, result = run(records, marks={(8, 3): 100})
    assert result.end == 1
    assert result.stop is not None
    assert result.stop.waiting_for == (8, 1)
    assert result.stop.awaited == {(8, 1), (8, 2)}


def test_a_file_that_was_waited_for_is_rejected() -> None:
    """If the announcement of a log file does not come within the waiting time, the file's records
    are rejected, and the records after them are loaded."""
    records = [Record(), Record(agent=8), Record(first=10)]
    store, result = run(records, unannounced=frozenset({(8, 1)}))
    assert [row["_agent"] for row in rows_of(store, result)] == [7, 7]
    assert rows_of(store, result, "rejects")[0]["reason"] == "not-announced"
    assert result.end == 3


def test_what_is_rejected_for_good_is_rejected_once() -> None:
    """A repeat of a rejected record is dropped, so that the record never counts twice."""
    far = 9_404_646_000_000_000
    records = [Record(agent=8), Record(agent=8), Record(time_ms=far), Record(time_ms=far)]
    store, result = run(records, unannounced=frozenset({(8, 1)}))
    found = sorted(row["reason"] for row in rows_of(store, result, "rejects"))
    assert (found, result.repeats) == (["not-announced", "timestamp"], 2)
    assert sum(each.rejects for each in result.sums.values()) == 2


def test_a_repeat_needs_no_announcement() -> None:
    """A repeated record is dropped whether its log file is announced or not. The slice's task does
    not stop before it."""
    records = [Record(), Record(agent=8, first=0), Record(first=10)]
    store, result = run(records, marks={(8, 1): 50})
    assert len(rows_of(store, result)) == 2
    assert result.stop is None


def test_a_hole_that_nobody_named_ends_the_range() -> None:
    """A gap is a range of missing offsets that a mirror or an operator has listed. A slice's task
    stops before missing offsets that are not in a gap. The task's result says why the task stops,
    and names these offsets."""
    store = MemoryStore()
    batches = [*log(lines(3)), *log([Record(first=30)], base=7)]
    result = Runner(store, {0: batches}).one(Slice(0, 0, 8))
    assert result.end == 3
    assert result.stop is not None
    assert "offsets 3 to 6" in result.stop.sentence
    assert len(rows_of(store, result)) == 3


@promise("5 gaps")
def test_a_hole_over_the_end_of_a_slice_ends_its_range() -> None:
    """Missing offsets may begin in a slice and continue after its end. If a mirror or an operator
    has not listed all of them as a gap, the slice's task stops before them. So no offset is skipped
    between two slices."""
    store = MemoryStore()
    batches = [*log(lines(3)), *log([Record(first=30)], base=7)]
    result = Runner(store, {0: batches}).one(Slice(0, 0, 5))
    assert result.end == 3
    assert result.stop is not None
    assert "offsets 3 to 4" in result.stop.sentence


def test_a_named_gap_is_passed_and_noted() -> None:
    """Missing offsets that a mirror has listed as a gap are skipped. The result of the slice's task
    notes as a gap only the offsets that are really missing, even if the mirror's gap has more
    offsets."""
    store = MemoryStore()
    batches = [*log(lines(3)), *log([Record(first=30)], base=7)]
    runner = Runner(store, {0: batches}, job(gaps={0: (gap(2, 5), gap(5, 9))}))
    result = runner.one(Slice(0, 0, 8))
    assert result.stop is None
    assert result.end == 8
    assert [(each.first, each.end) for each in result.gaps] == [(3, 7)]
    assert len(rows_of(store, result)) == 4


def test_a_slice_inside_of_a_gap_is_covered() -> None:
    """If a mirror has listed all offsets of a slice as missing (as a gap), the slice counts as
    completely read, although it has no batches."""
    batches = [*log(lines(3)), *log([Record(first=30)], base=20)]
    runner = Runner(MemoryStore(), {0: batches}, job(gaps={0: (gap(3, 20),)}))
    result = runner.one(Slice(0, 5, 10))
    assert (result.end, result.stop, result.files, result.below) == (10, None, (), None)
    assert [(each.first, each.end) for each in result.gaps] == [(5, 10)]


def test_a_damaged_batch_ends_the_range_by_name() -> None:
    """A slice's task stops before a batch that does not match its CRC, and an error message says
    so. The records before the batch are loaded."""
    batches = log(lines(6))
    broken = bytearray(batches[1])
    broken[-1] ^= 1
    store = MemoryStore()
    result = Runner(store, {0: [batches[0], memoryview(broken)]}).one(Slice(0, 0, 6))
    assert result.end == 3
    assert result.stop is not None
    assert "damaged" in result.stop.sentence
    assert len(rows_of(store, result)) == 3


def _damaged(batch: memoryview) -> memoryview:
    broken = bytearray(batch)
    broken[-1] ^= 1
    return memoryview(bytes(broken))


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_records_that_contradict_themselves_end_the_range(damaged: int) -> None:
    """If the records of a batch are inconsistent although its CRC is right, the slice's task stops
    before this batch. Only the records before the batch are loaded."""
    batches = log(lines(9))
    broken = bytearray(batches[damaged])
    broken[57:61], broken[23:27] = (2).to_bytes(4, "big"), (1).to_bytes(4, "big")
    broken[17:21] = google_crc32c.value(bytes(broken[21:])).to_bytes(4, "big")
    batches[damaged] = memoryview(bytes(broken))
    store = MemoryStore()
    result = Runner(store, {0: batches}).one(Slice(0, 0, 9))
    assert (result.end, len(rows_of(store, result))) == (3 * damaged, 3 * damaged)
    assert result.stop is not None
    assert f"the batch at offset {3 * damaged} is damaged" in result.stop.sentence
    below = None if result.below is None else result.below.last_offset
    assert below == (3 * damaged - 1 if damaged else None)


def test_why_a_range_ended_is_what_was_met_first() -> None:
    """A slice's task stops before the first batch that does not match its CRC, and reads no later
    batch. The task's result has the reason, and only the records before the batch are loaded."""
    first, second, third = log(lines(9))
    batches, store = iter([first, _damaged(second), third]), MemoryStore()
    load = SliceLoad(
        job(), Slice(0, 0, 9), {}, store=store, decoder=Decoder(Registry(), SCHEMA), attempt=1
    )
    result = load.run(batches)
    assert (result.end, len(rows_of(store, result))) == (3, 3)
    assert result.stop is not None
    assert "the batch at offset 3 is damaged" in result.stop.sentence
    assert list(batches) == [third]


def test_what_is_behind_a_range_does_not_end_it() -> None:
    """If a batch after the end of a slice is damaged or cannot be fetched, the slice's task still
    loads all offsets of the slice."""
    behind = _damaged(log(lines(3), base=10)[0])
    runner = Runner(MemoryStore(), {0: [*log(lines(3)), behind]}, job(gaps={0: (gap(3, 10),)}))
    result = runner.one(Slice(0, 0, 10))
    assert (result.end, result.stop) == (10, None)
    assert result.below is not None
    assert result.below.last_offset == 2

    def fetch(*more: memoryview) -> Iterator[memoryview]:
        yield from [*log(lines(3)), *more]
        raise Unreachable("logs-0: no batch for 60 s")

    for end, more in ((3, []), (10, [behind])):
        load = SliceLoad(
            runner.job, Slice(0, 0, end), {}, store=MemoryStore(),
            decoder=Decoder(Registry(), SCHEMA), attempt=1,
        )  # fmt: skip
        assert load.run(fetch(*more)).stop is None


@promise("4 compacted batch")
def test_a_compacted_batch_ends_the_range_by_name() -> None:
    """A slice's task stops before a batch from which compaction has removed records, and an error
    message says that data topics must not be compacted. The records before the batch are loaded."""
    batches = log(lines(6))
    raw = bytearray(batches[1])
    raw[23:27] = (3).to_bytes(4, "big")  # the batch has three records, but its last offset is 6
    raw[17:21] = google_crc32c.value(bytes(raw[21:])).to_bytes(4, "big")
    store = MemoryStore()
    result = Runner(store, {0: [batches[0], memoryview(raw)]}).one(Slice(0, 0, 7))
    assert result.end == 3
    assert result.stop is not None
    assert "has 3 of its 4 records: the topic was compacted" in result.stop.sentence
    assert len(rows_of(store, result)) == 3
    inside = Runner(MemoryStore(), {0: [batches[0], memoryview(raw)]}).one(Slice(0, 5, 7))
    assert inside.end == 5  # the slice begins inside the batch
    assert inside.stop is not None
    assert inside.stop.offset == 5


@pytest.mark.parametrize(
    "error",
    [
        CorruptBatch("magic 7"),
        OffsetOutOfRange(TopicPartition(TOPIC, 0), 3, 5, 9),
        Unreachable("logs-0: no batch for 60 s"),
    ],
)
def test_a_fetch_that_cannot_go_on_ends_the_range(error: SkidwayError) -> None:
    """If the slice's task reaches a damaged batch header or an expired offset, or if the broker is
    silent, the task stops, and an error message says why. The records that the task has read before
    are loaded."""

    def fetch() -> Iterator[memoryview]:
        yield from log(lines(3))
        raise error

    store = MemoryStore()
    load = SliceLoad(
        job(), Slice(0, 0, 6), {}, store=store, decoder=Decoder(Registry(), SCHEMA), attempt=1
    )
    result = load.run(fetch())
    assert result.end == 3
    assert result.stop is not None
    assert str(error) in result.stop.sentence
    assert len(rows_of(store, result)) == 3


def test_a_gap_behind_the_end_of_a_range_is_not_noted() -> None:
    """If a slice's task stops before it reaches a gap (a listed range of missing offsets), the load
    does not write this gap to its manifest. The next load skips the gap and writes it to its own
    manifest."""
    batches = [*log([*lines(2), Record(agent=8)]), *log([Record(first=30)], base=7)]
    runner = Runner(MemoryStore(), {0: batches}, job(gaps={0: (gap(3, 7),)}))
    result = runner.one(Slice(0, 0, 8))
    assert (result.end, result.gaps) == (2, ())


def test_a_slice_of_control_batches_is_covered() -> None:
    """Control batches, which have offsets but no data records, are skipped."""
    raw = bytearray(one_batch([Record()], 0))
    raw[22] |= 0x20  # marks a control batch
    raw[17:21] = google_crc32c.value(bytes(raw[21:])).to_bytes(4, "big")
    result = Runner(MemoryStore(), {0: [memoryview(raw)]}).one(Slice(0, 0, 1))
    assert (result.end, result.stop, result.files) == (1, None, ())


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> list[pa.BinaryArray]:
    """Returns a list. Whenever the decoder decodes the values of a chunk (batches that are decoded
    together), these values are added to the list."""
    found: list[pa.BinaryArray] = []
    decode = Decoder.decode

    def noted(self: Decoder, values: pa.BinaryArray) -> Decoded:
        found.append(values)
        return decode(self, values)

    monkeypatch.setattr(Decoder, "decode", noted)
    return found


def test_chunks_are_bounded_by_what_batches_unpack_to(
    chunks: list[pa.BinaryArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uncompressed size of a chunk (batches that are decoded together) is limited. A limit to
    the compressed size would not bound the memory, because compression may make batches a hundred
    times smaller."""
    monkeypatch.setattr("skidway.loader.slices.chunk.CHUNK_BYTES", 100_000)
    run([Record(first=10 * index, value=datum("x" * 50_000)) for index in range(12)])
    assert len(chunks) >= 4
    assert max(values.nbytes for values in chunks) < 300_000


def test_chunks_are_bounded_by_their_batches(
    chunks: list[pa.BinaryArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of batches in a chunk (batches that are decoded together) is limited, because each
    batch costs memory even if it has only one or two records."""
    monkeypatch.setattr("skidway.loader.slices.chunk.CHUNK_BATCHES", 2)
    run(lines(15))
    assert [len(values) for values in chunks] == [6, 6, 3]


def test_a_chunk_that_ends_a_range_leaves_its_last_batch_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The result of a slice's task names the last batch that the task read, even if this batch was
    the last one of a chunk (batches that are decoded together). The next load compares this batch
    with the log."""
    monkeypatch.setattr("skidway.loader.slices.chunk.CHUNK_BATCHES", 2)
    for more in ([], [Record(agent=8)]):
        _, result = run([*lines(6), *more])
        assert result.end == 6
        assert result.below is not None
        assert (result.below.base_offset, result.below.last_offset) == (3, 5)


def test_a_log_that_ends_early_is_not_taken_for_covered() -> None:
    """If the last batch of the log ends before the slice ends, only the offsets up to the end of
    this batch count as loaded."""
    result = Runner(MemoryStore(), {0: log(lines(3))}).one(Slice(0, 0, 5))
    assert result.end == 3
    assert result.stop is not None


def test_rows_of_several_schemas_come_in_order() -> None:
    """If the batches that are decoded together have records of two schemas, each record is decoded
    with its own schema, and the rows keep the order of the records."""
    wider = (
        '{"type":"record","name":"Log","fields":[{"name":"line","type":"string"},'
        '{"name":"level","type":"string","default":"INFO"}]}'
    )
    other = SCHEMA.replace('"string"', '["null", "string"]')  # encodes the same text otherwise
    records = [
        Record(first=10 * index, value=datum(str(index), *((SCHEMA, 1), (other, 3))[index % 2]))
        for index in range(6)
    ]
    store = MemoryStore()
    registry = Registry({1: SCHEMA, 3: other})
    runner = Runner(store, {0: log(records, batch_records=6)}, job(reader=wider), registry)
    result = runner.one(Slice(0, 0, 6))
    rows = rows_of(store, result)
    assert [row["line"] for row in rows] == ["0", "1", "2", "3", "4", "5"]
    assert {row["level"] for row in rows} == {"INFO"}
    assert result.schema_ids == {1: 3, 3: 3}


def test_a_second_attempt_writes_other_files() -> None:
    """Two attempts at one slice write different files into the staging directory. The files have
    the same rows and the same final path."""
    runner = Runner(MemoryStore(), {0: log(lines(3))})
    first, second = runner.one(Slice(0, 0, 3)), runner.one(Slice(0, 0, 3))
    assert first.files[0].staged != second.files[0].staged
    assert first.files[0].path == second.files[0].path
    assert first.files[0].checksum == second.files[0].checksum


def test_chunks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of a slice's task is the same whether all batches are decoded together, or in many
    chunks (groups of batches)."""
    records = [*lines(20), *lines(25), Record(agent=8), *lines(30)]
    whole_store, whole = run(records)
    monkeypatch.setattr("skidway.loader.slices.chunk.CHUNK_ROWS", 4)
    store, parts = run(records)
    assert rows_of(store, parts) == rows_of(whole_store, whole)
    assert (parts.end, parts.lowest, parts.highest) == (whole.end, whole.lowest, whole.highest)
    assert (parts.sums, parts.below, parts.repeats) == (whole.sums, whole.below, whole.repeats)


def test_large_slices_are_flushed_into_several_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the rows of an hour reach the memory limit, they are written to a file, and later rows go
    to another file of the same hour."""
    monkeypatch.setattr("skidway.loader.slices.hour_writer.FLUSH_BYTES", 1)
    monkeypatch.setattr("skidway.loader.slices.chunk.CHUNK_ROWS", 3)
    store, result = run(lines(9))
    assert [file.path.rsplit("-", 1)[1] for file in result.files] == [
        "0.parquet", "3.parquet", "6.parquet",
    ]  # fmt: skip
    assert [row["_offset"] for row in rows_of(store, result)] == list(range(0, 90, 10))


def test_counts_are_per_agent_and_bucket() -> None:
    """Records are counted separately for each source topic, agent and bucket (span of event
    time)."""
    records = [Record(), Record(first=10, time_ms=START_MS + 60_000), Record(file=2)]
    _, result = run(records)
    start = START_MS - START_MS % 60_000
    assert {key: sums.count for key, sums in result.sums.items()} == {
        (SOURCE, 7, start): 2, (SOURCE, 7, start + 60_000): 1,
    }  # fmt: skip


def test_keys_are_kept_in_rejects() -> None:
    """A rejected record keeps its key as well as its value."""
    import numpy as np

    from skidway.kafka.batch import seal, stamp
    from skidway.kafka.columns import encode

    values, keys = pa.array([b"bad"], pa.binary()), pa.array([b"key"], pa.binary())
    raw = bytearray(seal(encode(values, np.array([START_MS]), keys=keys)))
    stamp(raw, 0, 0, 0)
    store = MemoryStore()
    load = SliceLoad(
        job(), Slice(0, 0, 1), {}, store=store, decoder=Decoder(Registry(), SCHEMA), attempt=1
    )
    result = load.run(fetched([memoryview(raw)], 0))
    (reject,) = rows_of(store, result, "rejects")
    assert (reject["key"], reject["value"]) == (b"key", b"bad")


@promise("5 reload")
def test_only_records_of_the_chosen_hours_are_written_and_counted() -> None:
    """A task of a reload writes and counts only records of the chosen hours. Records of other hours
    only advance the marks (for each log file, up to where it is loaded), so that repeats are
    recognized."""
    hour = START_MS // HOUR_MS
    records = [
        *lines(3, time_ms=START_MS + HOUR_MS),
        Record(first=0),  # a repeat of the first record
        Record(first=25, length=10),  # begins below its file's mark and ends above it
        Record(first=40),
        Record(first=50, value=b"no schema id"),
        Record(first=60, time_ms=-1),
        Record(first=60),  # a repeat of the previous record; it counts in the hour of its own time
    ]
    for chosen, rows, rejects in (
        ({hour}, [40], [25, 50]),
        ({hour + 1}, [0, 10, 20], []),
        ({0}, [], [60]),
        ({hour + 2}, [], []),
    ):
        store, result = run(records, hours=frozenset(chosen))
        assert [row["_offset"] for row in rows_of(store, result)] == rows
        assert [row["_offset"] for row in rows_of(store, result, "rejects")] == rejects
        assert sum(each.count for each in result.sums.values()) == len(rows) + len(rejects)
        assert sum(each.rejects for each in result.sums.values()) == len(rejects)
        assert result.repeats == (2 if hour in chosen else 0)
        assert (result.lowest, result.highest) == ({(7, 1): 0}, {(7, 1): 70})
