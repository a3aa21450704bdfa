"""The counter decodes several consecutive batches (a run) together. The tests check that the
counter finds the same as a simple reader that decodes one batch after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import cramjam
import google_crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.audit.counter import batch_runs
from skidway.audit.counter.batch_runs import Runs
from skidway.audit.counter.continuity import Following, Step, at_batch, at_compacted, resumed
from skidway.audit.counter.state import BatchId, Position
from skidway.kafka.batch import (
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    CorruptBatch,
    read_header,
    seal,
    stamp,
)
from skidway.kafka.codecs import BY_NUMBER, NONE, ZSTD, Codec
from skidway.kafka.columns import HeaderColumns, Origins, decode, encode
from support.promises import promise
from support.randomness import share_of

_ATTRIBUTES_END = 23


def _agents(codec: Codec, count: int) -> bytearray:
    """Returns a batch with `count` records of an agent."""
    first = np.arange(count, dtype=np.int64) * 10
    origins = Origins(np.full(count, 77), np.full(count, 3), first, np.full(count, 10))
    values = pa.array([b"same" * 9 * count] * count, pa.binary())
    return bytearray(seal(encode(values, 1_000_000 + first, origins=origins, codec=codec)))


def _others(codec: Codec, count: int) -> bytearray:
    """Returns a batch of a producer that is not an agent. Its records have no origins."""
    times = np.full(count, 70_000, np.int64)
    values = pa.array([b"other" * 20] * count, pa.binary())
    return bytearray(seal(encode(values, times, codec=codec)))


def _set_attribute(attribute: int) -> Callable[[bytearray], None]:
    def change(raw: bytearray) -> None:
        raw[_ATTRIBUTES_END - 1] |= attribute

    return change


def _empty(raw: bytearray) -> None:
    """Removes all records from a batch. The log compaction of Apache Kafka leaves an empty batch if
    all of the batch's records were replaced by newer ones."""
    del raw[HEADER_BYTES:]
    raw[57:61] = bytes(4)
    raw[8:12] = (HEADER_BYTES - 12).to_bytes(4, "big")


def _too_many(raw: bytearray) -> None:
    """Makes the record count in the batch's header larger than the number of records in the
    batch."""
    raw[57:61] = (9).to_bytes(4, "big")


def _repack(frames: Callable[[bytes], bytes]) -> Callable[[bytearray], None]:
    """Returns a function that compresses the records of an uncompressed batch. frames: compresses
    bytes to Zstandard frames, which may have a form that only other producers use, or may be cut
    off."""

    def change(raw: bytearray) -> None:
        if raw[_ATTRIBUTES_END - 1] & 7 == NONE:
            raw[HEADER_BYTES:] = frames(bytes(raw[HEADER_BYTES:]))
            raw[_ATTRIBUTES_END - 1] |= ZSTD
            raw[8:12] = (len(raw) - 12).to_bytes(4, "big")

    return change


def _stream(data: bytes) -> bytes:
    """Returns a Zstandard frame that does not state the size of its content. Java clients write
    such frames."""
    stream = cramjam.zstd.Compressor(1)
    stream.compress(data)
    return bytes(stream.finish())


def _two_frames(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data[:7], 1)) + bytes(cramjam.zstd.compress(data[7:], 1))


def _cut(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data, 1))[:-1]


_CHANGES: tuple[Callable[[bytearray], None], ...] = (
    _set_attribute(TRANSACTIONAL),
    _set_attribute(LOG_APPEND_TIME),
    _set_attribute(TRANSACTIONAL | CONTROL),
    _set_attribute(7),
    _empty,
    _too_many,
    _repack(_stream),
    _repack(_two_frames),
    _repack(_cut),
)


@st.composite
def _logs(draw: st.DrawFn) -> list[memoryview]:
    """Generates the batches of a partition. Most of them are valid."""
    found, base = [], 5
    for _ in range(draw(st.integers(0, 9))):
        make = draw(st.sampled_from([_agents, _agents, _others]))
        raw = make(draw(st.sampled_from(list(BY_NUMBER.values()))), draw(st.integers(1, 4)))
        if draw(st.integers(0, 3)) == 0:
            draw(st.sampled_from(_CHANGES))(raw)
        if draw(st.integers(0, 15)) == 0:
            raw[draw(st.integers(0, len(raw) - 1))] ^= draw(st.integers(1, 255))
        if draw(st.integers(0, 15)) != 0:
            raw[17:21] = google_crc32c.value(bytes(raw[21:])).to_bytes(4, "big")
        base += draw(st.sampled_from([0] * 15 + [3, -1]))
        if len(raw) >= HEADER_BYTES:
            stamp(raw, 0, base, 1)
        base += max(int.from_bytes(raw[23:27], "big", signed=True), 0) + 1
        found.append(memoryview(bytes(raw)))
    return found


@dataclass
class Read:
    """What a reader found in a log. The tests compare two readers: one decodes several batches
    together (a run), and the other decodes single batches."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    gaps: list[tuple[tuple[int, int], str]] = field(default_factory=list)
    end: Following | None = None
    stop: str = ""
    damage: str = ""

    def take(self, step: Step, records: HeaderColumns | None) -> None:
        self.end, self.stop = step.following, step.stop
        if step.gap is not None:
            self.gaps.append((step.gap, step.reason))
        if records is None or not len(records.offsets):
            return
        own = records.origins
        none = [[0] * len(records.offsets)] * 4
        columns = none if own is None else [own.agent, own.file, own.first, own.length]
        four = [np.asarray(column).tolist() for column in columns]
        times, known = records.timestamps.tolist(), records.has_origin.tolist()
        self.rows += zip(records.offsets.tolist(), times, known, *four, strict=True)


def _one_by_one(following: Following, batches: Sequence[memoryview]) -> Read:
    """Reads the log one batch after the other. The tests compare this simple reader with the
    counter's reader, which decodes several batches together."""
    found = Read()
    try:
        for raw in batches:
            header = read_header(raw)
            step = at_batch(following, header)
            if step.counts and not header.is_whole:
                decode(raw)
                step = at_compacted(following, header)
            records = None
            if step.counts:
                batch = decode(raw)
                records = HeaderColumns(
                    batch.offsets, batch.timestamps, batch.origins, batch.has_origin
                )
            found.take(step, records)
            if step.stop:
                break
            following = step.following
    except CorruptBatch as error:
        found.damage = str(error)
    return found


def _in_runs(following: Following, batches: Sequence[memoryview]) -> Read:
    found = Read()
    try:
        for run in Runs().of(following, batches):
            found.take(run.first, run.records)
            if run.last is not run.first:
                found.take(run.last, None)
    except CorruptBatch as error:
        found.damage = str(error)
    return found


@promise("6 numbers")
@pytest.mark.parametrize("together", [1, 300, 1 << 20])
@settings(max_examples=share_of(150), deadline=None)
@given(batches=_logs(), comparing=st.booleans())
def test_runs_are_what_one_batch_after_the_other_gives(
    together: int, batches: list[memoryview], comparing: bool
) -> None:
    """Whatever producers, codecs and damage a log has, the counter finds the same records and gaps
    as a reader of single batches, and it stops at the same position for the same reason."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_runs, "TOGETHER_BYTES", together)
        following = Following(Position(5))
        if comparing and batches:
            first = batches[0]
            below = BatchId(5, int.from_bytes(first[17:21], "big"), 1)
            end = 6 + max(int.from_bytes(first[23:27], "big", signed=True), 0)
            following = resumed(Position(end, below))
        assert _in_runs(following, batches) == _one_by_one(following, batches)


def test_many_small_batches_are_one_run() -> None:
    """The counter decodes consecutive batches together, even if there are transaction markers
    between them."""
    batches = []
    for base in range(50):
        raw = _agents(ZSTD, 1)
        if base % 10 == 3:
            _set_attribute(TRANSACTIONAL | CONTROL)(raw)
            raw[17:21] = google_crc32c.value(bytes(raw[21:])).to_bytes(4, "big")
        stamp(raw, 0, base, 0)
        batches.append(memoryview(bytes(raw)))
    [run] = Runs().of(Following(Position(0)), batches)
    assert run.records is not None
    assert run.records.offsets.tolist() == [base for base in range(50) if base % 10 != 3]
    assert run.last.following.position.next_offset == 50
