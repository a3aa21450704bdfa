"""Does the work of one task: reads the batches of one slice (an offset range of one partition),
writes files, and counts records.

A task processes one chunk of records after the other, in offset order. For each chunk, it compares
the origins of the records with the marks, to find the records that were loaded before
(audit/counts/marks). It looks up host and path, decodes values, writes rows and rejects (records
that cannot become rows), and counts them. The result depends only on what the task receives, on the
log, and on the schemas in the registry. So a second attempt gives the same result, unless a missing
schema was registered in the meantime.

In three cases, a task stops before the end of its slice. It stops before a record whose file is not
announced yet. It stops before missing offsets, unless the mirror or the operator has listed them as
a gap. And it stops before a batch that cannot be read, because the batch is damaged or gone,
because compaction has removed some of its records, or because the partition's leader does not
answer. `Stop` says at which offset the task stopped, and why. The load commits the records before
this offset; a later load reads the records from this offset on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skidway.audit.counts.bucket import has_date
from skidway.audit.counts.counts import Counts
from skidway.audit.counts.marks import FileKey, Walked, advance, walk
from skidway.errors import Unreachable
from skidway.kafka.batch import BatchHeader, CorruptBatch, read_header
from skidway.kafka.errors import KafkaError
from skidway.loader.planning import plan
from skidway.loader.planning.plan import Slice
from skidway.loader.reading.columns import OWN, REJECTED, Records, file_schema, own_columns
from skidway.loader.reading.decoder import Decoder
from skidway.loader.slices.chunk import Chunk, OpenChunk
from skidway.loader.slices.hour_writer import HourWriter, Target, hours_of
from skidway.loader.slices.job import Job, SliceResult, Stop
from skidway.loader.slices.locations import Located, locate
from skidway.loader.state.manifest import REJECTS, ROWS, BatchMark, Gap
from skidway.loader.store import Store
from skidway.row_columns import TIMESTAMP

Bools = npt.NDArray[np.bool_]

STRADDLE: Final = "straddle"
NOT_ANNOUNCED: Final = "not-announced"
NO_HOUR: Final = "timestamp"


class SliceLoad:
    """One attempt at one slice (the offset range of a task). Each object is used once."""

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
        self._position = piece.first  # the next offset after the last whole batch that was read
        self._result = SliceResult(piece, piece.end)

    def run(self, batches: Iterable[memoryview]) -> SliceResult:
        """Consumes whole batches in offset order, until it has processed the whole slice or must
        stop earlier. The first batch must contain the slice's first offset. If no batch in the log
        contains this offset, the first batch must be the next batch after it."""
        chunk = OpenChunk()
        for raw, header in self._read(batches):
            stop = self._hole(self._position, header.base_offset)
            if stop is None and header.base_offset >= self._piece.end:
                self._position = self._piece.end  # the range ends with a listed gap
                break
            stop = stop or self._take(raw, header, chunk)
            if stop is not None:
                self._end(stop)
                break
            self._position = header.last_offset + 1
            if chunk.is_full:
                self._process(chunk)
                chunk = OpenChunk()
                if self._result.stop is None:
                    del self._headers[:-1]  # `below` needs only the last processed batch
            if self._position >= self._piece.end or self._result.stop:
                break
        if self._position < self._piece.end and self._result.stop is None:
            at = self._position
            self._end(Stop(at, f"{self._where}: the log ended before offset {at}"))
        if not chunk.is_empty:
            self._process(chunk)  # may stop before a record of an unannounced file
        return self._finish()

    def _read(self, batches: Iterable[memoryview]) -> Iterator[tuple[memoryview, BatchHeader]]:
        """Yields batches with their headers. If reading fails, raises no error: the task stops
        before the end of its slice, and the load can still commit what was read before.
        """
        try:
            for raw in batches:
                yield raw, read_header(raw)
        except (CorruptBatch, KafkaError, Unreachable) as error:
            at = self._position
            self._end(Stop(at, f"{self._where}: offset {at} cannot be read: {error}"))

    def _take(self, raw: memoryview, header: BatchHeader, chunk: OpenChunk) -> Stop | None:
        """Adds a batch to the chunk, and returns None. If the task must stop before this batch,
        returns the reason.
        """
        if not header.is_whole:
            return self._refusal(
                header,
                f"has {header.count} of its {header.last_offset_delta + 1} records: the topic was "
                "compacted (cleanup.policy), and data topics must not be",
            )
        try:
            chunk.add(raw)
        except CorruptBatch as error:
            return self._refusal(header, f"is damaged: {error}")
        return None

    def _refusal(self, header: BatchHeader, why: str) -> Stop:
        at = max(header.base_offset, self._piece.first)
        return Stop(at, f"{self._where}: the batch at offset {header.base_offset} {why}")

    def _hole(self, position: int, base: int) -> Stop | None:
        """Checks whether offsets are missing before a batch that begins at `base`. If the job lists
        the missing offsets as a gap, adds the gap to this task's result; if the job does not list
        them, returns a `Stop`. In all other cases, returns None. position: the next offset that the
        task needs."""
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

    def _process(self, opened: OpenChunk) -> None:
        chunk = opened.close(self._piece)
        self._headers += opened.headers
        if opened.damage is not None:
            header, error = opened.damage
            self._end(self._refusal(header, f"is damaged: {error}"))
        walked = self._walk(chunk.records)
        located = self._locate(chunk.records)
        wanted = located.missing & ~walked.repeat
        if wanted.any():
            end = int(np.argmax(wanted))
            self._await(chunk.records, end, wanted)
            chunk = chunk.first(end)
            walked = self._walk(chunk.records)
            located = located.slice(end)
        self._note_marks(walked)
        walked = self._chosen(chunk.records, walked)
        rejected = self._write(chunk, walked, located)
        self._result.repeats += int(walked.repeat.sum())
        self._counts.add(
            self._job.source, chunk.records.timestamps, chunk.records.origins,
            keep=walked.keep, straddle=walked.straddle, repeat=walked.repeat, rejected=rejected,
        )  # fmt: skip

    def _walk(self, records: Records) -> Walked:
        origins = records.origins
        return walk(origins.agent, origins.file, origins.first, origins.length, self._marks)

    def _chosen(self, records: Records, walked: Walked) -> Walked:
        """Returns `walked` (the result of the check for repeats) without the records of hours that
        are not in `job.hours`. The records that are left out have already advanced the marks.
        """
        if self._job.hours is None:
            return walked
        chosen = np.isin(hours_of(records.timestamps), list(self._job.hours))
        return replace(
            walked,
            keep=walked.keep & chosen,
            repeat=walked.repeat & chosen,
            straddle=walked.straddle & chosen,
        )

    def _locate(self, records: Records) -> Located:
        job = self._job
        return locate(records.origins, job.locations, job.unannounced, patient=job.patient)

    def _await(self, records: Records, at: int, wanted: Bools) -> None:
        origins = records.origins
        key = int(origins.agent[at]), int(origins.file[at])
        offset, first = int(records.offsets[at]), int(origins.first[at])
        awaited = zip(origins.agent[wanted].tolist(), origins.file[wanted].tolist(), strict=True)
        # Lets the join check this record again, because with the marks of earlier slices it may be
        # a repeat.
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

    def _write(self, chunk: Chunk, walked: Walked, located: Located) -> Bools:
        """Writes rows and rejects of a chunk. Returns for each record whether it was rejected."""
        faults: dict[int, tuple[str, str]] = {}
        _note(faults, walked.straddle, STRADDLE)
        _note(faults, walked.keep & located.given_up, NOT_ANNOUNCED)
        timed = has_date(chunk.records.timestamps)
        _note(faults, walked.keep & ~timed, NO_HOUR)
        candidates = walked.keep & ~located.given_up & timed
        rows = np.flatnonzero(candidates)
        everything = len(rows) == len(candidates)
        decoded = self._decoder.decode(
            chunk.values if everything else chunk.values.take(pa.array(rows))
        )
        good = rows if decoded.good.all() else rows[decoded.good]
        records = chunk.records if len(good) == len(candidates) else chunk.records.take(good)
        self._rows.add([*decoded.columns, *own_columns(records, *located.columns(good))], records)
        faults |= {int(rows[index]): fault for index, fault in decoded.refused.items()}
        self._result.schema_ids += decoded.schema_ids
        return self._reject(chunk, located, faults)

    def _reject(self, chunk: Chunk, located: Located, faults: dict[int, tuple[str, str]]) -> Bools:
        rejected = np.zeros(len(chunk.records), np.bool_)
        if not faults:
            return rejected
        rows = np.array(sorted(faults), np.intp)
        rejected[rows] = True
        reasons = [faults[int(row)] for row in rows]
        taken = pa.array(rows)
        records = chunk.records.take(rows)
        own = own_columns(records, *located.columns(rows))
        at = OWN.names.index(TIMESTAMP.name)
        own[at] = pc.if_else(pa.array(has_date(records.timestamps)), own[at], None)
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


def _note(faults: dict[int, tuple[str, str]], mask: Bools, reason: str) -> None:
    if mask.any():
        faults |= dict.fromkeys(np.flatnonzero(mask).tolist(), (reason, ""))
