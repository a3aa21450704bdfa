"""The lines into which a framer divides readings (byte ranges of files), each with its position in
its file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from skidway.agent.batches.filtered import Filtered
from skidway.agent.batches.records import Int64s, Records
from skidway.agent.batches.rejected import RejectedLine
from skidway.agent.batches.shape import LeftOut
from skidway.agent.parsing import lines as line_columns
from skidway.agent.parsing.byte_order import UTF_8, mark_of, marked
from skidway.agent.parsing.framing import Framer, Frames, nul_bytes
from skidway.agent.parsing.parser import NUL_BYTES, TOO_LONG, Reject
from skidway.agent.values.intents import Reading
from skidway.kafka.columns import Origins, Pieces


class FramedLines:
    """The framed lines of some readings, each with its file and its position in this file.

    values: the bytes of the lines. texts: the same bytes, but without the byte order mark with
    which a file may begin.
    """

    def __init__(self, readings: Sequence[Reading], framer: Framer, encoding: str = UTF_8) -> None:
        self.readings, self._encoding = readings, encoding
        data = readings[0].data if len(readings) == 1 else b"".join(r.data for r in readings)
        range_ends = np.cumsum([len(reading.data) for reading in readings])
        self.frames: Frames = framer.frame(data, range_ends)
        data = data if self.frames.woven is None else self.frames.woven
        self.owner = np.searchsorted(range_ends, self.frames.first, side="right")
        self.shift = np.array([r.intent.end for r in readings], np.int64) - range_ends
        self.files = np.array([r.intent.file for r in readings], np.int64)
        self.values = line_columns.cut(data, self.frames)
        self.texts = self._without_marks()

    @property
    def holes(self) -> Int64s:
        """The indexes of the lines that are holes: runs of NUL bytes in place of lines."""
        is_hole = self.frames.is_hole
        return np.empty(0, np.int64) if is_hole is None else np.flatnonzero(is_hole)

    def _without_marks(self) -> pa.BinaryArray:
        mark, texts = mark_of(self._encoding), self.values
        at_beginning = [i for i, reading in enumerate(self.readings) if not reading.intent.first]
        for row in np.searchsorted(self.owner, at_beginning).tolist() if mark else ():
            value = texts[row].as_py()
            if value.startswith(mark):
                text = pa.array([value[len(mark) :]], pa.binary())
                texts = pa.concat_arrays([texts[:row], text, texts[row + 1 :]])
        return texts

    def records(
        self, rows: Int64s, times: Int64s, values: Pieces, keys: pa.BinaryArray | None
    ) -> Records:
        owner = self.owner[rows]
        first = self.frames.first[rows] + self.shift[owner]
        length = self.frames.length[rows]
        return Records(owner, self.files[owner], first, length, times, values, keys)

    def origins(self, agent: int, rows: Int64s) -> Origins:
        owner = self.owner[rows]
        first = self.frames.first[rows] + self.shift[owner]
        agents = np.full(len(rows), agent, np.int64)
        return Origins(agents, self.files[owner], first, self.frames.length[rows])

    def filtered(self, left_out: LeftOut, times: Int64s, rules: Sequence[str]) -> Filtered:
        origins = self.origins(0, left_out.rows)
        owner = self.owner[left_out.rows]
        return Filtered(
            owner, origins.file, origins.first, origins.length, times, left_out.rule, rules
        )

    def rejected(self, reject: Reject) -> tuple[int, RejectedLine]:
        """Returns the index of the reading of a rejected line, and the line. A line in UTF-16 gets
        a byte order mark even if it is not the first line of its file, because nothing else in its
        rejected record says the byte order.
        """
        row = reject.row
        owner = int(self.owner[row])
        reading, encoding = self.readings[owner], self._encoding
        return owner, RejectedLine(
            reason=reject.reason,
            detail=reject.detail,
            line=b"" if reject.reason == NUL_BYTES else marked(self.texts[row].as_py(), encoding),
            host=reading.host,
            path=reading.path,
            file=reading.intent.file,
            first=int(self.frames.first[row] + self.shift[owner]),
            length=int(self.frames.end[row] - self.frames.first[row]),
        )


def overlong(reading: Reading, encoding: str) -> tuple[int, RejectedLine]:
    """Rejects an over-long line or a large hole (a long run of NUL bytes). Returns 0 (the index of
    the only reading) and the rejected line. `reading` has only the head of the line or hole. If the
    head has only NUL bytes, the whole range is a hole, because such a range never contains both a
    hole and a line.
    """
    intent = reading.intent
    is_hole = nul_bytes(reading.data) == len(reading.data)
    head = reading.data if intent.first else reading.data.removeprefix(mark_of(encoding))
    line = RejectedLine(
        reason=NUL_BYTES if is_hole else TOO_LONG,
        detail=hole_detail(intent.length) if is_hole else "longer than max.line.bytes",
        line=b"" if is_hole else marked(head, encoding),
        host=reading.host,
        path=reading.path,
        file=intent.file,
        first=intent.first,
        length=intent.length,
        is_head=not is_hole,
    )
    return 0, line


def hole_detail(size: int) -> str:
    return f"{size:,} NUL bytes are in place of lines"
