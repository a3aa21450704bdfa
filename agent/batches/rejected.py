"""A line that the agent rejects becomes a record of `<topic>.rejected`, with all bytes of the line
(except values that rules of `shape` hide) and its position in the file.

Schema: schemas/rejected.avsc. The record of a hole (a run of NUL bytes) does not repeat these
bytes: the record's origin gives their number. If a line is longer than `max.line.bytes`, or too
long for a batch of `<topic>.rejected`, the record contains only the head of the line, and the
record's origin gives the full length. A repaired line that is too long is an exception (see
`_cut`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from skidway.agent.parsing import replayed
from skidway.agent.parsing.parser import DETAIL_CHARACTERS_MAX
from skidway.agent.recipe import Recipe
from skidway.agent.shaping.rejected_text import WITHHELD
from skidway.dataclass import dataclass
from skidway.kafka.batch import HEADER_BYTES
from skidway.kafka.columns import RECORD_OVERHEAD_MAX

FIELDS_BYTES_MAX = 128 + 4 * DETAIL_CHARACTERS_MAX
"""A rejected line's record has at most this many bytes besides its line, topic, host and path."""

ENDS_MAX = 6
"""A line's byte order mark and its terminator have at most this many bytes together: four for the
mark of GB 18030, and two for CRLF.
"""


@dataclass(frozen=True, slots=True)
class RejectedLine:
    """One rejected line. first, length: the line's position in its file, and its length in bytes.
    The origin of the line's record contains both. original: if this line is a repaired line that
    was rejected again, the origin (agent, file, first byte) of the line that was rejected first. In
    that case, host and path are also those of the line that was rejected first. is_head: whether
    the agent has only the head of the line.
    """

    reason: str
    detail: str
    line: bytes
    host: str
    path: str
    file: int
    first: int
    length: int
    original: tuple[int, int, int] | None = None
    is_head: bool = False


def line_bytes_max(recipe: Recipe, host: str, path: str) -> int:
    """Returns how many bytes of a line fit into a batch of the rejected topic."""
    limit = min(recipe.batch_bytes, recipe.rejected.limit_bytes)
    names = sum(len(text.encode()) for text in (recipe.data.name, host, path))
    return max(limit - HEADER_BYTES - RECORD_OVERHEAD_MAX - FIELDS_BYTES_MAX - names, 0)


def columns(recipe: Recipe, agent: int, lines: Sequence[RejectedLine]) -> pa.RecordBatch:
    """Returns one row of the rejected schema for each line."""
    cut = [_cut(line, line_bytes_max(recipe, line.host, line.path)) for line in lines]
    count = len(lines)
    return pa.RecordBatch.from_pydict(
        {
            "topic": pa.array([recipe.data.name] * count, pa.string()),
            "reason": pa.array([line.reason for line in lines], pa.string()),
            "detail": pa.array(
                [line.detail[:DETAIL_CHARACTERS_MAX] for line in lines], pa.string()
            ),
            "line": pa.array(cut, pa.binary()),
            "host": pa.array([line.host for line in lines], pa.string()),
            "path": pa.array([line.path for line in lines], pa.string()),
            "agent": pa.array([agent] * count, pa.int64()),
            "file": pa.array([line.file for line in lines], pa.int64()),
            "first": pa.array([line.first for line in lines], pa.int64()),
            "length": pa.array([line.length for line in lines], pa.int64()),
            **_originals(lines),
        }
    )


def _cut(line: RejectedLine, limit: int) -> bytes:
    """Returns the line, cut to the limit. If the line is cut, it loses more than ENDS_MAX bytes,
    which is the most that a byte order mark and a terminator have. So readers can distinguish a cut
    line from a line without its byte order mark and terminator. If a repaired line is too long,
    returns only the text WITHHELD (`[withheld]`). Readers recognize other cut lines by the `length`
    in the record, but for a repaired line this is the length of its envelope (the JSON object in
    the replay's file).
    """
    if len(line.line) <= limit and not line.is_head:
        return line.line
    if line.original is not None:
        return WITHHELD
    return line.line[: max(min(limit, line.length - ENDS_MAX - 1), 0)]


def _originals(lines: Sequence[RejectedLine]) -> dict[str, pa.Array]:
    if all(line.original is None for line in lines):
        return {}
    return {
        name: pa.array([line.original and line.original[at] for line in lines], pa.int64())
        for at, name in enumerate(replayed.FIELDS)
    }
