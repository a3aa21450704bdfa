"""Columns are encoded to record batches and decoded again. The tests compare the results with those
of kafka-python's parser and builder."""

from __future__ import annotations

import struct
import tracemalloc
import warnings
from dataclasses import dataclass

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.kafka import columns, origin
from skidway.kafka.batch import (
    HEADER_BYTES,
    OFFSET_MAX,
    CorruptBatch,
    EncodedBatch,
    read_header,
    seal,
    stamp,
)
from skidway.kafka.codecs import BY_NUMBER, NONE, Codec
from skidway.kafka.columns import (
    DecodedRecords,
    Origins,
    cuts,
    decode,
    decode_batches,
    decode_headers,
    encode,
    sound_batches,
    unpack,
)
from skidway.kafka.run_unpacking import Workspace, unpack_run
from support.randomness import share_of

with warnings.catch_warnings():  # kafka-python calls a deprecated function
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.one_of(st.integers(0, 2**41), st.integers(1_700_000_000_000, 1_700_000_100_000))
BYTES = st.one_of(
    st.binary(max_size=20), st.binary(min_size=60, max_size=140), st.just(b"x" * 9000)
)
NULLABLE = st.one_of(st.none(), BYTES)
IDS = st.integers(0, 2**63 - 1)
ORIGIN = st.tuples(IDS, IDS, IDS, st.integers(0, 2**32 - 1))
HEADER_KEYS = st.one_of(st.sampled_from(["origin", "", "trace", "Origin"]), st.text(max_size=5))
HEADERS = st.lists(st.tuples(HEADER_KEYS, st.one_of(st.none(), st.binary(max_size=40))), max_size=3)


@dataclass(frozen=True)
class Row:
    """The values of one record."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @property
    def origin(self) -> origin.Origin | None:
        """The origin of the record, or None if the record has no valid origin header. If several
        headers are valid origins, the last of these headers counts."""
        found = None
        for key, value in self.headers:
            if key == "origin" and value is not None:
                found = origin.unpack(value) or found
        return found


def origins_of(rows: list[tuple[int, int, int, int]]) -> Origins:
    return Origins(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


def batch_of(rows: list[Row], base_offset: int = 0, codec: Codec = NONE) -> bytes:
    """Returns a batch that kafka-python builds. If `codec` compresses, the batch is compressed with
    Skidway's own codecs, because kafka-python's codecs are optional packages."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for row in rows:
        assert builder.append(
            row.offset - base_offset, row.timestamp, row.key, row.value, row.headers
        )
    built = bytes(builder.build())
    header = read_header(built)
    body = codec.compress(built[HEADER_BYTES:])
    buffer = bytearray(built[:HEADER_BYTES] + body)
    buffer[8:12] = (len(body) + 49).to_bytes(4, "big")
    buffer[21:23] = codec.number.to_bytes(2, "big")
    stamp(buffer, 0, base_offset, 5)
    assert header.count == len(rows)
    return with_crc(buffer)


def with_crc(buffer: bytes | bytearray) -> bytes:
    """Returns a batch, whose bytes a test has changed, after its CRC was computed again from the
    changed bytes."""
    changed = bytearray(buffer)
    changed[17:21] = google_crc32c.value(bytes(changed[21:])).to_bytes(4, "big")
    return bytes(changed)


def rows_of(raw: bytes) -> list[Row]:
    """Returns the records that kafka-python reads from an uncompressed batch."""
    batch = DefaultRecordBatch(raw)
    assert batch.validate_crc()
    return [Row(r.offset, r.timestamp, r.key, r.value, r.headers) for r in batch]


def columns_of(origins: Origins) -> list[columns.Int64s]:
    return [origins.agent, origins.file, origins.first, origins.length]


def decoded_rows(
    raw: bytes,
) -> list[tuple[int, int, bytes | None, bytes | None, origin.Origin | None]]:
    """Returns the rows that `decode` reads. Asserts that `decode_headers`, which reads no keys and
    values, finds the same offsets, timestamps and origins."""
    found = decode(memoryview(raw))
    offsets, timestamps, origins, has_origin = decode_headers([unpack(raw)])
    assert offsets.tolist() == found.offsets.tolist()
    assert timestamps.tolist() == found.timestamps.tolist()
    assert has_origin.tolist() == found.has_origin.tolist()
    assert (origins is None) == (found.origins is None) == (not has_origin.any())
    numbers = [[0] * 4] * len(offsets)
    if found.origins is not None and origins is not None:
        numbers = [
            list(row) for row in zip(*(c.tolist() for c in columns_of(found.origins)), strict=True)
        ]
        assert all(
            (a == b).all()
            for a, b in zip(columns_of(found.origins), columns_of(origins), strict=True)
        )
    has = found.has_origin.tolist()
    assert all(row == [0] * 4 for row, there in zip(numbers, has, strict=True) if not there)
    return [
        (offset, timestamp, key, value, origin.Origin(*row) if there else None)
        for offset, timestamp, key, value, row, there in zip(
            found.offsets.tolist(),
            found.timestamps.tolist(),
            found.keys.to_pylist(),
            found.values.to_pylist(),
            numbers,
            has,
            strict=True,
        )
    ]


@given(data=st.data(), codec=st.sampled_from(list(BY_NUMBER.values())), count=st.integers(1, 40))
@settings(max_examples=share_of(150))
def test_encoded_is_decoded(data: st.DataObject, codec: Codec, count: int) -> None:
    """Rows that are encoded and decoded again stay the same, with any keys, values (also null),
    timestamps and origins, and with each codec."""
    values = data.draw(st.lists(NULLABLE, min_size=count, max_size=count))
    times = data.draw(
        st.lists(data.draw(st.sampled_from([TIMES, INT64])), min_size=count, max_size=count)
    )
    keys = data.draw(st.one_of(st.none(), st.lists(NULLABLE, min_size=count, max_size=count)))
    rows = data.draw(st.one_of(st.none(), st.lists(ORIGIN, min_size=count, max_size=count)))
    encoded = encode(
        pa.array(values, pa.binary()),
        np.array(times, np.int64),
        origins=None if rows is None else origins_of(rows),
        keys=None if keys is None else pa.array(keys, pa.binary()),
        codec=codec,
    )
    raw = bytearray(seal(encoded, 7, 1, 100))
    stamp(raw, 0, 5_000, 3)
    found = decoded_rows(bytes(raw))
    assert [row[0] for row in found] == list(range(5_000, 5_000 + count))
    assert [row[1] for row in found] == times
    assert [row[2] for row in found] == (keys or [None] * count)
    assert [row[3] for row in found] == values
    assert [row[4] for row in found] == (rows or [None] * count)
    assert encoded.count == count
    assert encoded.max_timestamp == max(times)


@given(data=st.data(), count=st.integers(1, 30))
@settings(max_examples=share_of(100))
def test_kafka_python_reads_what_we_write(data: st.DataObject, count: int) -> None:
    """kafka-python reads the same records from batches that Skidway encodes."""
    values = data.draw(st.lists(NULLABLE, min_size=count, max_size=count))
    times = data.draw(st.lists(TIMES, min_size=count, max_size=count))
    keys = data.draw(st.one_of(st.none(), st.lists(NULLABLE, min_size=count, max_size=count)))
    rows = data.draw(st.one_of(st.none(), st.lists(ORIGIN, min_size=count, max_size=count)))
    encoded = encode(
        pa.array(values, pa.binary()),
        np.array(times, np.int64),
        origins=None if rows is None else origins_of(rows),
        keys=None if keys is None else pa.array(keys, pa.binary()),
        codec=NONE,
    )
    found = rows_of(seal(encoded))
    assert [row.value for row in found] == values
    assert [row.timestamp for row in found] == times
    assert [row.key for row in found] == (keys or [None] * count)
    assert [row.origin for row in found] == (rows or [None] * count)
    assert all(len(row.headers) == (rows is not None) for row in found)


@st.composite
def foreign_rows(draw: st.DrawFn) -> list[Row]:
    """Draws rows as other producers may write them, with few or many headers, and with missing
    offsets, as compaction leaves them."""
    offset, rows = draw(st.integers(0, 10**6)), []
    for _ in range(draw(st.integers(1, 25))):
        headers = draw(HEADERS)
        if draw(st.booleans()):
            headers = [("origin", origin.pack(*draw(ORIGIN))), *headers][: draw(st.integers(1, 3))]
        rows.append(Row(offset, draw(TIMES), draw(NULLABLE), draw(NULLABLE), headers))
        offset += draw(st.sampled_from([1, 1, 1, 2, 100]))
    return rows


@given(
    rows=foreign_rows(), codec=st.sampled_from(list(BY_NUMBER.values())), before=st.integers(0, 3)
)
@settings(max_examples=share_of(150))
def test_we_read_what_kafka_python_writes(rows: list[Row], codec: Codec, before: int) -> None:
    """Skidway can read any batch that kafka-python builds, with keys, nulls, any headers and offset
    gaps."""
    raw = batch_of(rows, max(rows[0].offset - before, 0), codec)
    found = decoded_rows(raw)
    assert found == [(row.offset, row.timestamp, row.key, row.value, row.origin) for row in rows]
    column = decode(memoryview(raw), with_headers=True).headers
    assert column is not None
    assert [
        [(header["key"], header["value"]) for header in headers or []]
        for headers in column.to_pylist()
    ] == [row.headers for row in rows]
    assert column.null_count == sum(not row.headers for row in rows)


@pytest.mark.parametrize(
    "size", [0, 1, 63, 64, 8_100, 8_191, 8_192, 1_048_576, 1_048_600, 3_000_000]
)
def test_any_width_of_lengths(size: int) -> None:
    """Values are written and read correctly whatever width the varint of their length has, from one
    byte to four bytes."""
    values = pa.array([b"a", b"b" * size, b"c", b"d" * size], pa.binary())
    raw = seal(encode(values, np.zeros(4, np.int64), codec=NONE))
    assert decode(memoryview(raw)).values.equals(values)
    assert [row.value for row in rows_of(raw)] == values.to_pylist()


def test_many_records() -> None:
    """20,000 records are read back as they were written, with offset deltas of three bytes, and
    times that rise and fall."""
    count = 20_000
    times = 1_700_000_000_000 + (np.arange(count, dtype=np.int64) * 7919) % 100_003 - 50_000
    values = pa.array([str(i).encode() for i in range(count)], pa.binary())
    found = decode(memoryview(seal(encode(values, times))))
    assert found.values.equals(values)
    assert (found.timestamps == times).all()
    assert (found.offsets == np.arange(count)).all()


def test_sliced_arrays_are_encoded() -> None:
    """If a column is a slice of a longer column, only the slice's rows are encoded."""
    values = pa.array([b"no", b"one", None, b"three", b"no"], pa.binary()).slice(1, 3)
    keys = pa.array([b"x", None, b"k", b"l", b"x"], pa.binary()).slice(1, 3)
    raw = seal(encode(values, np.arange(3, dtype=np.int64), keys=keys, codec=NONE))
    assert [(row.key, row.value) for row in rows_of(raw)] == [
        (None, b"one"),
        (b"k", None),
        (b"l", b"three"),
    ]


def test_encoding_is_a_pure_function() -> None:
    """The same rows always give the same bytes. So an agent that encodes rows again after a crash
    sends the same batch."""
    values = pa.array([b"line %d" % i for i in range(500)], pa.binary())
    times = np.arange(500, dtype=np.int64)
    assert encode(values, times) == encode(pa.array(values.to_pylist(), pa.binary()), times.copy())


def test_incompressible_records_stay_as_they_are() -> None:
    """If compression would make the records larger, the batch contains them uncompressed."""
    values = pa.array([np.random.default_rng(1).bytes(5_000)], pa.binary())
    for codec in BY_NUMBER.values():
        encoded = encode(values, np.zeros(1, np.int64), codec=codec)
        assert encoded.codec == NONE.number
        assert len(encoded.body) == encoded.uncompressed_bytes
        assert decode(memoryview(seal(encoded))).values.equals(values)


def test_log_append_time_stands_for_all() -> None:
    """In a batch with LogAppendTime every record has the batch's max timestamp."""
    raw = bytearray(seal(encode(pa.array([b"a", b"b"], pa.binary()), np.array([5, 9]), codec=NONE)))
    raw[22] |= 8
    raw[35:43] = (777).to_bytes(8, "big")
    assert decode(memoryview(with_crc(raw))).timestamps.tolist() == [777, 777]


def test_control_batches_have_no_rows() -> None:
    """A batch of transaction markers has no rows."""
    raw = bytearray(seal(encode(pa.array([b"\0\0\0\0\0\1"], pa.binary()), np.zeros(1, np.int64))))
    raw[22] |= 0x30
    found = decode(memoryview(with_crc(raw)))
    assert (len(found.offsets), len(found.values), len(found.keys), len(found.has_origin)) == (
        0,
        0,
        0,
        0,
    )
    assert found.origins is None


def test_compacted_to_nothing() -> None:
    """A batch without records, which compaction may leave, is legal. It has offsets but gives no
    rows."""
    raw = bytearray(seal(EncodedBatch(b"", NONE.number, 5, 0, 0, 0)))
    raw[57:61] = bytes(4)
    found = decode(memoryview(with_crc(raw)))
    assert len(found.offsets) == len(found.values) == 0
    assert read_header(raw).last_offset == 4
    raw[21:23] = b"\x00\x04"
    assert len(decode(memoryview(with_crc(raw))).offsets) == 0


def test_bad_columns_are_refused() -> None:
    """Columns from which no batch can be made raise ValueError."""
    one = pa.array([b"a"], pa.binary())
    time = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="at least one"):
        encode(one.slice(0, 0), time[:0])
    with pytest.raises(ValueError, match="different lengths"):
        encode(one, np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="different lengths"):
        encode(one, time, keys=pa.array([], pa.binary()))
    for bad in ((-1, 0, 0, 0), (0, -1, 0, 0), (0, 0, -1, 0), (0, 0, 0, 2**32)):
        with pytest.raises(ValueError, match="does not fit"):
            encode(one, time, origins=origins_of([bad]))


@given(
    sizes=st.lists(st.integers(-1, 3_000), min_size=0, max_size=200),
    limit=st.integers(1_000, 20_000),
    spread=st.sampled_from([0, 1, 2**62]),
)
def test_cuts_keep_below_the_limit(sizes: list[int], limit: int, spread: int) -> None:
    """`cuts` divides rows into batches that are not larger than the limit. A batch may be larger
    than the limit only if it has a single row that is itself too large."""
    ends = cuts(np.array(sizes, np.int64), limit)
    assert ends == sorted(set(ends))
    assert (ends[-1] if ends else 0) == len(sizes)
    start = 0
    for end in ends:
        part = sizes[start:end]
        values = pa.array([None if size < 0 else b"x" * size for size in part], pa.binary())
        times = np.arange(len(part), dtype=np.int64) * spread
        encoded = encode(values, times, origins=origins_of([(1, 2, 3, 4)] * len(part)), codec=NONE)
        assert encoded.size_bytes <= limit or len(part) == 1
        if end < len(sizes):
            assert (
                sum(part) + sizes[end] + (len(part) + 1) * columns.RECORD_OVERHEAD_MAX + 61 > limit
            )
        start = end


# --- several batches at once ------------------------------------------------------------------


@st.composite
def any_batch(draw: st.DrawFn) -> bytes:
    """Draws a batch of any codec. Some drawn batches have LogAppendTime, some are transaction
    markers, and some have no records."""
    rows = draw(foreign_rows())
    raw = bytearray(batch_of(rows, rows[0].offset, draw(st.sampled_from(list(BY_NUMBER.values())))))
    kind = draw(st.sampled_from(["as it is", "as it is", "append time", "control", "empty"]))
    if kind == "append time":
        raw[22] |= 8
        raw[35:43] = draw(st.integers(0, 1 << 50)).to_bytes(8, "big")
    if kind == "control":
        raw[22] |= 0x30
    if kind == "empty":
        raw[57:61] = bytes(4)
        del raw[HEADER_BYTES:]
        raw[8:12] = (HEADER_BYTES - 12).to_bytes(4, "big")
    return with_crc(raw)


def listed(records: DecodedRecords) -> list[tuple[object, ...]]:
    """Returns the records as tuples. A record without an origin has zeros for the origin's
    fields."""
    none = np.zeros(len(records.offsets), np.int64)
    origins = records.origins or Origins(none, none, none, none)
    return list(
        zip(
            records.offsets.tolist(),
            records.timestamps.tolist(),
            records.keys.to_pylist(),
            records.values.to_pylist(),
            *(column.tolist() for column in columns_of(origins)),
            records.has_origin.tolist(),
            strict=True,
        )
    )


@given(st.lists(any_batch(), max_size=6))
@settings(max_examples=share_of(60))
def test_batches_decoded_together_give_the_rows_of_each(raws: list[bytes]) -> None:
    """Batches that are decoded together give the same rows, in the same order, as batches that are
    decoded one by one."""
    together = decode_batches([unpack(raw) for raw in raws])
    assert listed(together) == [row for raw in raws for row in listed(decode(raw))]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=5), st.data())
@settings(max_examples=share_of(150))
def test_no_batch_reaches_into_the_next_one(kinds: list[int], data: st.DataObject) -> None:
    """If batches are decoded together and some are damaged, CorruptBatch is raised. `sound_batches`
    returns the number of batches before the first damaged one, whatever the damage is."""
    raws = [bytearray(sample()) for _ in kinds]
    for kind, raw in zip(kinds, raws, strict=True):
        if kind == 0:
            raw[data.draw(st.integers(HEADER_BYTES, len(raw) - 1))] = data.draw(st.integers(0, 255))
    unpacked = [unpack(with_crc(raw)) for raw in raws]
    alone = [is_sound(with_crc(raw)) for raw in raws]
    try:
        found = decode_batches(unpacked)
    except CorruptBatch:
        assert not all(alone)
    else:
        assert all(alone)
        assert len(found.offsets) == 3 * len(raws)
    count, error = sound_batches(unpacked)
    assert [*alone, False].index(False) == count
    assert (error is None) == all(alone)


@pytest.mark.parametrize("headers", [[], [("origin", origin.pack(1, 2, 3, 4))]])
def test_a_batch_has_the_records_of_its_own_bytes(headers: list[tuple[str, bytes]]) -> None:
    """If a batch has one record more than its header says, and the next batch has one record less,
    the first batch counts as damaged. Its surplus record does not become a record of the next
    batch."""
    first = batch_of([Row(offset, 0, None, b"x" * 9, headers) for offset in (0, 1)])
    more = batch_of([Row(0, 0, None, b"y" * 9, headers)])[HEADER_BYTES:]
    second = batch_of([Row(offset, 0, None, b"z" * 9, headers) for offset in (1, 2)])
    longer, claiming = bytearray(first + more), bytearray(second)
    longer[8:12] = (len(longer) - 12).to_bytes(4, "big")
    claiming[23:27], claiming[57:61] = (2).to_bytes(4, "big"), (3).to_bytes(4, "big")
    unpacked = [unpack(with_crc(longer)), unpack(with_crc(claiming))]
    with pytest.raises(CorruptBatch, match="do not fill"):
        decode_batches(unpacked)
    assert sound_batches(unpacked)[0] == 0


@pytest.mark.parametrize("looks", ["head", "whole", "two"])
def test_values_may_look_like_origins(looks: str) -> None:
    """Values that contain the bytes of an origin header are read as values."""
    header = b"\x02\x0corigin\x38"
    value = {"head": header, "whole": header + bytes(28), "two": 2 * (header + bytes(28))}[looks]
    headers = [("origin", origin.pack(1, 2, 3, 4))]
    for values in ([value, b"x"], [b"x", value], [value, None, value]):
        for some in (headers, []):
            rows = [Row(i, 0, None, each, some) for i, each in enumerate(values)]
            rows.append(Row(len(values), 0, None, b"last", headers))
            found = decode(batch_of(rows))
            assert found.values.to_pylist() == [*values, b"last"]
            assert found.has_origin.tolist() == [*(bool(some) for _ in values), True]


def is_sound(raw: bytes) -> bool:
    try:
        decode(raw)
    except CorruptBatch:
        return False
    return True


# --- damage -----------------------------------------------------------------------------------


def sample() -> bytes:
    rows = [
        Row(0, 1_000, None, b"plain", [("origin", origin.pack(1, 2, 3, 4))]),
        Row(1, 900, b"key", None, []),
        Row(
            2,
            2_000,
            None,
            b"v" * 100,
            [("a", b"b"), ("origin", origin.pack(1, 2, 3, 4)), ("n", None)],
        ),
    ]
    return batch_of(rows)


@given(st.integers(HEADER_BYTES, len(sample()) - 1), st.integers(0, 255))
@settings(max_examples=share_of(500))
def test_lying_fields_give_corrupt_or_rows(position: int, byte: int) -> None:
    """If a byte of the records is changed, and the CRC fits the changed bytes, decoding either
    returns rows or raises CorruptBatch, and no other error."""
    raw = bytearray(sample())
    raw[position] = byte
    try:
        assert len(decode(memoryview(with_crc(raw))).offsets) == 3
    except CorruptBatch:
        pass


@given(st.binary(max_size=200), st.integers(0, 2**31 - 1), st.sampled_from([0, 1, 2, 3, 4, 7]))
@settings(max_examples=share_of(150))
def test_any_records_section_is_rows_or_corrupt(section: bytes, count: int, codec: int) -> None:
    """If a batch has arbitrary bytes in place of its records, with any count and codec, decoding it
    either returns rows or raises CorruptBatch."""
    header = struct.pack(">hiqqqhii", codec, max(count - 1, 0), 0, 0, -1, -1, -1, count) + section
    raw = struct.pack(">qiibI", 0, 0, 0, 2, 0) + header
    raw = raw[:8] + struct.pack(">i", len(raw) - 12) + raw[12:]
    try:
        decode(memoryview(with_crc(raw)), limit_bytes=10_000)
    except CorruptBatch:
        pass


def test_no_reader_takes_an_offset_that_no_log_reaches() -> None:
    """Whether batches are decoded one by one or many at once, a batch with an offset from
    OFFSET_MAX on is refused."""
    for base, is_good in ((OFFSET_MAX - 100, True), (OFFSET_MAX, False)):
        raw = bytearray(sample())
        raw[:8] = base.to_bytes(8, "big")
        assert len(unpack_run([memoryview(raw)], 10_000, Workspace(10_000)).headers) == is_good
        if not is_good:
            with pytest.raises(CorruptBatch):
                decode(memoryview(raw))


def test_huge_counts_allocate_nothing() -> None:
    """A small batch that claims 2^31 - 1 records is refused, and no memory is allocated for these
    records."""
    raw = bytearray(sample())
    raw[23:27] = (2**31 - 2).to_bytes(4, "big")
    raw[57:61] = (2**31 - 1).to_bytes(4, "big")
    claiming = with_crc(raw)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptBatch, match="2147483647 records"):
            decode(memoryview(claiming))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cut", [1, 5, 36, 100])
def test_records_must_fill_the_batch(cut: int) -> None:
    """A batch is corrupt if its records are truncated or followed by other bytes, even if its
    length and CRC are right."""
    for body in (sample()[HEADER_BYTES:-cut], sample()[HEADER_BYTES:] + bytes(cut)):
        raw = bytearray(sample()[:HEADER_BYTES] + body)
        raw[8:12] = (len(raw) - 12).to_bytes(4, "big")
        with pytest.raises(CorruptBatch):
            decode(memoryview(with_crc(raw)))


def test_a_count_too_small_is_corrupt() -> None:
    """A batch is corrupt if it has more records than the count in its header."""
    raw = bytearray(sample())
    raw[57:61] = (2).to_bytes(4, "big")
    with pytest.raises(CorruptBatch):
        decode(memoryview(with_crc(raw)))


def test_offsets_must_rise() -> None:
    """A batch is corrupt if the offsets of its records do not increase, or if one of these offsets
    is higher than the batch's last offset."""
    for offsets in ([0, 1, 1], [0, 2, 1]):
        rows = [Row(offset, 0, None, b"x", []) for offset in offsets]
        raw = bytearray(batch_of(rows))
        raw[23:27] = (2).to_bytes(4, "big")
        with pytest.raises(CorruptBatch, match="rise"):
            decode(memoryview(with_crc(raw)))
    raw = bytearray(batch_of([Row(offset, 0, None, b"x", []) for offset in (0, 1, 9)]))
    raw[23:27] = (8).to_bytes(4, "big")
    with pytest.raises(CorruptBatch, match="rise"):
        decode(memoryview(with_crc(raw)))


def test_a_wrong_crc_is_corrupt() -> None:
    """A batch with a wrong CRC is corrupt."""
    raw = bytearray(sample())
    raw[-1] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        decode(memoryview(bytes(raw)))


def test_bytes_behind_the_batch_are_corrupt() -> None:
    """`unpack` takes one batch. If other bytes follow the batch, `unpack` raises CorruptBatch, so
    that no second batch is dropped silently."""
    with pytest.raises(CorruptBatch, match="behind"):
        decode(memoryview(sample() + sample()))


def test_unpacking_is_limited() -> None:
    """A small batch is corrupt if its uncompressed size is larger than the limit."""
    raw = seal(encode(pa.array([bytes(1 << 20)], pa.binary()), np.zeros(1, np.int64)))
    assert len(decode(memoryview(raw)).values[0].as_py()) == 1 << 20
    with pytest.raises(CorruptBatch):
        decode(memoryview(raw), limit_bytes=1 << 20)


def test_origins_past_int64_are_none() -> None:
    """A header with ids of 2^63 or more does not count as an origin, because agents use only lower
    ids."""
    value = b"\xff" * 28
    found = decoded_rows(
        batch_of(
            [
                Row(0, 0, None, b"", [("origin", value)]),
                Row(1, 0, None, b"", [("origin", bytes(28))]),
            ]
        )
    )
    assert [row[4] for row in found] == [None, (0, 0, 0, 0)]


def test_the_last_origin_needs_no_decoding() -> None:
    """`last_origin` reads the origin of a batch's last record from the last bytes of the batch,
    without decoding the records. It returns None if these bytes are no origin header."""
    times = np.array([1, 2], np.int64)
    values = pa.array([b"a", b"b"], pa.binary())
    rows = [(7, 3, 0, 2), (7, 3, 2, 5)]
    for origins, expected in ((origins_of(rows), origin.Origin(*rows[1])), (None, None)):
        raw = seal(encode(values, times, origins=origins))
        assert columns.last_origin(unpack(raw)) == expected
