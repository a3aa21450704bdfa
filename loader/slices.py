"""The work of one task: batches of one offset range in, files and what is in them out.

For each chunk of records, in offset order: identify by origin, apply the marks rule (audit/marks),
look up host and path, decode values, write rows, write rejects, count. What a task decides depends
on nothing but the range, the marks and the names it is given, so a second attempt gives the same.

A range ends early, with a sentence (`Stop`), before a record whose file was not announced yet,
before a hole that nobody named, and before a batch that is damaged, gone or whose leader does not
answer any more: what comes before is loaded, what comes after waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skidway.audit.counts.counts import BucketKey, Counts, Sums, identify
from skidway.audit.counts.marks import FileKey, Walked, advance, walk
from skidway.errors import Unreachable
from skidway.kafka import columns
from skidway.kafka.batch import BatchHeader, CorruptBatch, read_header
from skidway.kafka.columns import DecodedBatch, Origins
from skidway.kafka.errors import KafkaError
from skidway.kafka.source import Source
from skidway.loader import plan
from skidway.loader.columns import OWN, REJECTED, Records, file_schema, own_columns
from skidway.loader.decode import Decoder
from skidway.loader.manifest import REJECTS, ROWS, BatchMark, DataFile, Gap
from skidway.loader.names import Placed, place
from skidway.loader.plan import Slice
from skidway.loader.side import Place
from skidway.loader.store import Store
from skidway.loader.write import HourWriter, Target, has_hour
from skidway.schemas.client import Security

Bools = npt.NDArray[np.bool_]

CHUNK_ROWS: Final = 65_536
CHUNK_BYTES: Final = 32 << 20
CHUNK_BATCHES: Final = 4_096
"""A batch of two records takes kilobytes as columns, whatever its bytes are."""

STRADDLE: Final = "straddle"
NOT_ANNOUNCED: Final = "not-announced"
NO_HOUR: Final = "timestamp"


@dataclass(frozen=True, slots=True)
class Job:
    """What all slices of one load of one topic have in common.

    reader: the subject's schema. names: announced files. unannounced: files whose announcement was
    waited for long enough; not patient: none is waited for. gaps: named gaps by partition.
    """

    topic: str
    source: Source
    load: int
    uuid: str
    output: str
    bootstrap_servers: str
    registry_url: str
    registry_security: Security
    reader: str
    bucket_ms: int
    compression: str
    names: Mapping[FileKey, Place]
    unannounced: frozenset[FileKey]
    patient: bool
    gaps: Mapping[int, tuple[Gap, ...]]


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a range ended before its end. waiting_for: the file whose announcement is missed.

    awaited: that one, and those of the records behind it that have been seen.
    """

    offset: int
    sentence: str
    waiting_for: FileKey | None = None
    awaited: frozenset[FileKey] = frozenset()


@dataclass(slots=True)
class SliceResult:
    """What a task did. end: offsets below it are covered. below: the last batch before `end`."""

    piece: Slice
    end: int
    files: tuple[DataFile, ...] = ()
    lowest: dict[FileKey, int] = field(default_factory=dict)
    highest: dict[FileKey, int] = field(default_factory=dict)
    sums: dict[BucketKey, Sums] = field(default_factory=dict)
    schema_ids: Counter[int] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    gaps: tuple[Gap, ...] = ()
    below: BatchMark | None = None
    stop: Stop | None = None
    repeats: int = 0


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Records of several batches, those of the slice only, before any decision."""

    records: Records
    keys: pa.BinaryArray
    values: pa.BinaryArray


class SliceLoad:
    """One attempt at one slice. Used once."""

    def __init__(
        self, job: Job, piece: Slice, marks: Mapping[FileKey, int], *,
        store: Store, decoder: Decoder, attempt: int,
    ) -> None:  # fmt: skip
        target = Target(job.topic, job.load, job.uuid, piece.partition, attempt, job.compression)
        self._job, self._piece, self._decoder = job, piece, decoder
        self._where = f"{job.topic} partition {piece.partition}"
        self._marks = dict(marks)
        self._rows = HourWriter(store, target, ROWS, file_schema(decoder.schema))
        self._rejects = HourWriter(store, target, REJECTS, REJECTED)
        self._counts = Counts(job.bucket_ms)
        self._headers: list[BatchHeader] = []
        self._gaps: list[Gap] = []
        self._position = piece.first  # behind the last whole batch that was read
        self._result = SliceResult(piece, piece.end)

    def run(self, batches: Iterable[memoryview]) -> SliceResult:
        """Consumes whole batches in offset order, the first one holding or following the first
        offset, until the range is covered or has to end."""
        pending: list[DecodedBatch] = []
        rows = size = 0
        for raw, header in self._read(batches):
            stop = self._hole(self._position, header.base_offset)
            if stop is None and header.base_offset >= self._piece.end:
                self._position = self._piece.end  # the rest of the range is a named gap
                break
            stop = stop or self._take(raw, header, pending)
            if stop is not None:
                self._end(stop)
                break
            self._position = header.last_offset + 1
            rows += len(pending[-1].offsets)
            size += _bytes(pending[-1])
            if rows >= CHUNK_ROWS or size >= CHUNK_BYTES or len(pending) >= CHUNK_BATCHES:
                self._process(pending)
                pending, rows, size = [], 0, 0
                if self._result.stop is None:
                    del self._headers[:-1]  # the range will not end before these any more
            if self._position >= self._piece.end or self._result.stop:
                break
        if self._position < self._piece.end and self._result.stop is None:
            at = self._position
            self._end(Stop(at, f"{self._where}: the log ended before offset {at}"))
        if pending:
            self._process(pending)  # may end the range even earlier
        return self._finish()

    def _read(self, batches: Iterable[memoryview]) -> Iterator[tuple[memoryview, BatchHeader]]:
        """Batches with their headers; what cannot be read ends the range and not the load."""
        try:
            for raw in batches:
                yield raw, read_header(raw)
        except (CorruptBatch, KafkaError, Unreachable) as error:
            at = self._position
            self._end(Stop(at, f"{self._where}: offset {at} cannot be read: {error}"))

    def _take(
        self, raw: memoryview, header: BatchHeader, pending: list[DecodedBatch]
    ) -> Stop | None:
        """Decodes a batch; says why it cannot be taken, if so."""
        at = max(header.base_offset, self._piece.first)
        if not header.is_control and header.count != header.last_offset_delta + 1:
            return Stop(
                at,
                f"{self._where}: the batch at offset {header.base_offset} has {header.count} of "
                f"its {header.last_offset_delta + 1} records; data topics must not be compacted",
            )
        try:
            pending.append(columns.decode(raw))
        except CorruptBatch as error:
            return Stop(
                at, f"{self._where}: the batch at offset {header.base_offset} is damaged: {error}"
            )
        self._headers.append(header)
        return None

    def _hole(self, position: int, base: int) -> Stop | None:
        """A hole in front of a batch: noted when it is named, the end of the range when not."""
        end = min(base, self._piece.end)
        if end <= position:
            return None
        gap = plan.cover(position, end, self._job.gaps.get(self._piece.partition, ()))
        if gap is not None:
            self._gaps.append(gap)
            return None
        return Stop(
            position,
            f"{self._where}: offsets {position} to {end - 1} are missing in the log and nobody "
            "named them as a gap",
        )

    def _end(self, stop: Stop) -> None:
        self._result.stop = stop
        self._result.end = stop.offset

    def _process(self, batches: list[DecodedBatch]) -> None:
        chunk = _gather(batches, self._piece)
        walked = self._walk(chunk.records)
        placed = self._place(chunk.records)
        wanted = placed.missing & ~walked.repeat
        if wanted.any():
            end = int(np.argmax(wanted))
            self._await(chunk.records, end, wanted)
            chunk = _Chunk(chunk.records.slice(end), chunk.keys[:end], chunk.values[:end])
            walked = self._walk(chunk.records)
            placed = placed.slice(end)
        self._note_marks(walked)
        rejected = self._write(chunk, walked, placed)
        self._result.repeats += int(walked.repeat.sum())
        self._counts.add(
            self._job.source, chunk.records.timestamps, chunk.records.origins,
            keep=walked.keep, straddle=walked.straddle, repeat=walked.repeat, rejected=rejected,
        )  # fmt: skip

    def _walk(self, records: Records) -> Walked:
        origins = records.origins
        return walk(origins.agent, origins.file, origins.first, origins.length, self._marks)

    def _place(self, records: Records) -> Placed:
        job = self._job
        return place(records.origins, job.names, job.unannounced, patient=job.patient)

    def _await(self, records: Records, at: int, wanted: Bools) -> None:
        origins = records.origins
        key = int(origins.agent[at]), int(origins.file[at])
        offset, first = int(records.offsets[at]), int(origins.first[at])
        awaited = zip(origins.agent[wanted].tolist(), origins.file[wanted].tolist(), strict=True)
        # the joiner has to know of it: with the marks of slices before it may be a repeat
        self._result.lowest[key] = min(first, self._result.lowest.get(key, first))
        self._end(
            Stop(
                offset,
                f"{self._where}: the record at offset {offset} is of file {key[1]} of agent "
                f"{key[0]}, which is not announced yet",
                key,
                frozenset(awaited),
            )
        )

    def _note_marks(self, walked: Walked) -> None:
        result = self._result
        advance(self._marks, walked.highest)
        advance(result.highest, walked.highest)
        for key, first in walked.lowest.items():
            result.lowest[key] = min(first, result.lowest.get(key, first))

    def _write(self, chunk: _Chunk, walked: Walked, placed: Placed) -> Bools:
        """Rows and rejects of a chunk; returns which records were rejected."""
        faults: dict[int, tuple[str, str]] = {}
        _note(faults, walked.straddle, STRADDLE)
        _note(faults, walked.keep & placed.given_up, NOT_ANNOUNCED)
        timed = has_hour(chunk.records.timestamps)
        _note(faults, walked.keep & ~timed, NO_HOUR)
        candidates = walked.keep & ~placed.given_up & timed
        rows = np.flatnonzero(candidates)
        everything = len(rows) == len(candidates)
        decoded = self._decoder.decode(
            chunk.values if everything else chunk.values.take(pa.array(rows))
        )
        good = rows if decoded.good.all() else rows[decoded.good]
        records = chunk.records if len(good) == len(candidates) else chunk.records.take(good)
        self._rows.add([*decoded.columns, *own_columns(records, *placed.columns(good))], records)
        faults |= {int(rows[index]): fault for index, fault in decoded.refused.items()}
        self._result.schema_ids += decoded.schema_ids
        return self._reject(chunk, placed, faults)

    def _reject(self, chunk: _Chunk, placed: Placed, faults: dict[int, tuple[str, str]]) -> Bools:
        rejected = np.zeros(len(chunk.records), np.bool_)
        if not faults:
            return rejected
        rows = np.array(sorted(faults), np.intp)
        rejected[rows] = True
        reasons = [faults[int(row)] for row in rows]
        taken = pa.array(rows)
        records = chunk.records.take(rows)
        own = own_columns(records, *placed.columns(rows))
        at = OWN.names.index("_timestamp")
        own[at] = pc.if_else(pa.array(has_hour(records.timestamps)), own[at], None)
        self._rejects.add(
            [
                pa.array([reason for reason, _ in reasons], pa.string()),
                pa.array([detail for _, detail in reasons], pa.string()),
                chunk.values.take(taken),
                chunk.keys.take(taken),
                pa.array(records.timestamps),
                *own,
            ],
            records,
        )
        self._result.reasons.update(reason for reason, _ in reasons)
        return rejected

    def _finish(self) -> SliceResult:
        result = self._result
        result.files = self._rows.close() + self._rejects.close()
        result.sums = dict(self._counts.items())
        result.gaps = tuple(gap for gap in self._gaps if gap.first < result.end)
        last = [each for each in self._headers if each.base_offset < result.end]
        if last:
            header = last[-1]
            result.below = BatchMark(
                header.base_offset, header.last_offset, header.crc, header.leader_epoch
            )
        return result


def _bytes(batch: DecodedBatch) -> int:
    """Unpacked: what a batch has on the wire may be a hundredth of it."""
    return int(batch.keys.nbytes + batch.values.nbytes)


def _note(faults: dict[int, tuple[str, str]], mask: Bools, reason: str) -> None:
    if mask.any():
        faults |= dict.fromkeys(np.flatnonzero(mask).tolist(), (reason, ""))


def _gather(batches: list[DecodedBatch], piece: Slice) -> _Chunk:
    """All records of the batches that lie in the slice, as one run."""
    offsets = np.concatenate([each.offsets for each in batches])
    timestamps = np.concatenate([each.timestamps for each in batches])
    has_origin = np.concatenate([each.has_origin for each in batches])
    origins = _join_origins(batches)
    keys = pa.concat_arrays([each.keys for each in batches])
    values = pa.concat_arrays([each.values for each in batches])
    begin = int(np.searchsorted(offsets, piece.first))
    end = int(np.searchsorted(offsets, piece.end))
    cut = slice(begin, end)
    offsets, timestamps, has_origin = offsets[cut], timestamps[cut], has_origin[cut]
    origins = Origins(
        origins.agent[cut], origins.file[cut], origins.first[cut], origins.length[cut]
    )
    identified = identify(origins, has_origin, piece.partition, offsets)
    records = Records(piece.partition, offsets, timestamps, identified)
    return _Chunk(records, keys[cut], values[cut])


def _join_origins(batches: list[DecodedBatch]) -> Origins:
    parts = [each.origins or _no_origins(len(each.offsets)) for each in batches]
    return Origins(
        np.concatenate([each.agent for each in parts]),
        np.concatenate([each.file for each in parts]),
        np.concatenate([each.first for each in parts]),
        np.concatenate([each.length for each in parts]),
    )


def _no_origins(count: int) -> Origins:
    zeros = np.zeros(count, np.int64)
    return Origins(zeros, zeros, zeros, zeros)
