"""One file id and everything known about it. These values are mutable, and the agent's loop owns
them.

    begin          position                read position              size
      |  set apart or  |  has intents that are   |   not read yet        |
      |  acknowledged  |  being sent (flights)   |                       |

The checkpoint is `position` together with evidence, which shows later whether the file still has
the same bytes before `position`. The bytes before `position` are accounted for: for example
acknowledged, or set apart, that is, declared lost or uncertain. The state stores the checkpoint.
The read position is the end of the last intent. The state stores the intents, and so also the read
position. At all times, begin <= position <= read position.
"""

from __future__ import annotations

import struct
from dataclasses import field
from enum import StrEnum
from typing import Final

from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import GUARD_BYTES, Fingerprint, Guard, Mark, guard_of, with_mark
from skidway.agent.values.intents import Intent, Reading
from skidway.agent.values.labels import History, labels_at
from skidway.audit.counts.counts import Counts
from skidway.dataclass import dataclass


class FileState(StrEnum):
    """OPEN: the agent may read more bytes under this file id. ENDED: it reads no more, but the last
    announcement, which tells the audit the file's final length, is not durable yet. CLOSED: this
    announcement is durable.
    """

    OPEN = "open"
    ENDED = "ended"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Birth:
    """The values with which a file id was announced. These values never change, with two
    exceptions. If the device gets another number, `key` changes. If rotation compresses the file,
    `key` and `born_ns` change.

    path: as text for people (bytes that are not UTF-8 are escaped). topic_id: the topic's id when
    the file id began. serial: a number that rises with every file id of this state. born_ns: when
    the file's inode was made; None if unknown.
    """

    file: int
    serial: int
    topic: str
    topic_id: str
    host: str
    path: str
    key: FileKey
    fingerprint: Fingerprint
    begin: int = 0
    predecessor: int | None = None
    predecessor_position: int | None = None
    born_ns: int | None = None

    @property
    def skipped(self) -> int:
        """How many bytes of the file are skipped because they were there when the agent first
        searched for files with the source's pattern (`start_at: end`).
        """
        return self.begin if self.predecessor is None else 0


@dataclass(slots=True)
class Tally:
    """How many bytes of a file id were acknowledged, rejected, and so on. Together with the pending
    bytes, which are not accounted for yet, these are all bytes of the file id that the agent knows.
    """

    acknowledged: int = 0
    rejected: int = 0
    filtered: int = 0
    lost: int = 0
    uncertain: int = 0

    @property
    def total(self) -> int:
        """How many bytes are accounted for, that is, acknowledged, rejected, filtered, uncertain or
        lost."""
        return self.acknowledged + self.rejected + self.filtered + self.lost + self.uncertain


_POINT: Final = struct.Struct("<qIHI")
_MARK: Final = struct.Struct("<qI")


class Checkpoint(bytes):
    """The position before which every byte is accounted for, and the evidence about these bytes.

    A checkpoint is immutable. The agent keeps one checkpoint for each file. To save memory, its
    parts are packed into one object; as separate objects they would take 370 bytes.
    """

    __slots__ = ()

    def __new__(
        cls, position: int, prefix_crc: int, guard: Guard, marks: tuple[Mark, ...]
    ) -> Checkpoint:
        """guard, marks: checksums that show later whether the file still has the same bytes before
        `position` (see the module `identity`)."""
        point = _POINT.pack(position, prefix_crc, *guard)
        return super().__new__(cls, point + b"".join(_MARK.pack(*mark) for mark in marks))

    def __repr__(self) -> str:
        values = f"{self.position}, {self.prefix_crc}, {self.guard}, {self.marks}"
        return f"Checkpoint({values})"

    @property
    def position(self) -> int:
        """The position before which every byte is accounted for."""
        return int.from_bytes(self[:8], "little", signed=True)

    @property
    def prefix_crc(self) -> int:
        """CRC-32C of all bytes before the position, without the bytes that were skipped
        (`start_at: end`, or `TrackedFile.skip_to`)."""
        crc: int = _POINT.unpack_from(self)[1]
        return crc

    @property
    def guard(self) -> Guard:
        """The guard (see the module `identity`), a CRC of the last bytes before the position."""
        return Guard(*_POINT.unpack_from(self)[2:])

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The marks (see the module `identity`): positions, in rising order, each with the CRC of
        the bytes before it."""
        return tuple(Mark(*fields) for fields in _MARK.iter_unpack(self[_POINT.size :]))


@dataclass(frozen=True, slots=True)
class ReadingOutcome:
    """How the agent accounts for a reading's bytes, and which counts it adds, when the reading's
    batches are acknowledged. If the rules of `shape` left out all records of a reading, the reading
    has no batches, and is treated as acknowledged at once.
    """

    delivered_bytes: int
    rejected_bytes: int
    counts: Counts
    filtered_bytes: int = 0


@dataclass(slots=True)
class Flight:
    """An intent whose records are being sent.

    outcome: None until the press has made batches of the intent. waiting: how many batches are not
    acknowledged yet; a refused record about which the agent has not decided counts as a batch.
    uncertain_bytes, lost_bytes: how many of the intent's bytes were not acknowledged, but declared
    uncertain or lost.
    """

    intent: Intent
    after: Checkpoint
    outcome: ReadingOutcome | None = None
    waiting: int = 0
    uncertain_bytes: int = 0
    lost_bytes: int = 0

    @property
    def is_done(self) -> bool:
        """Whether the checkpoint may pass this flight (an intent that is being sent)."""
        return self.outcome is not None and self.waiting == 0


@dataclass(frozen=True, slots=True)
class LongLine:
    """A line, or a run of NUL bytes (a hole), that is too long for one read. scanned: how many of
    its bytes were searched for its end. is_hole: whether it consists of NUL bytes.
    """

    scanned: int
    crc: int
    prefix_crc: int
    tail: bytes
    is_hole: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A write that has not made its file longer. The agent noticed it only by the file's new time
    of change.

    changed_ns: the file's time of change before the write. since: when the agent noticed the new
    time of change (s).
    """

    changed_ns: int
    since: float


@dataclass(slots=True)
class TrackedFile:
    """One file id and everything known about it. The module's docstring explains the positions."""

    birth: Birth
    checkpoint: Checkpoint
    location: str  # the file's real path, links followed; empty if the file was deleted
    meant: str = ""  # the path at which a pattern finds the file, or found the file before rotation
    tally: Tally = field(default_factory=Tally)
    state: FileState = FileState.OPEN
    announced: bool = False
    announced_ms: int = 0
    length: int | None = None  # the final length; None while the file is OPEN
    changed_ns: int | None = None  # the file's time of change at the last look
    is_emptied: bool = False  # whether the file was found empty after its id had ended
    labels: History = ()

    # The fields from here on are not durable. A starting agent finds their values out again.
    read_position: int = 0
    read_crc: int = 0  # CRC-32C of the bytes before the read position, without skipped bytes
    tail: bytes | None = None  # the last bytes before the read position; None until they are read
    promised: int = 0  # the last intent's end; read_position is lower while intents are repeated
    size: int = 0
    is_seen: bool = False  # whether a look has found the file since the agent started
    grown_at: float = 0.0
    # when the agent first saw that the record at the read position is unfinished; None if it is not
    unfinished_at: float | None = None
    rotated: bool = False
    rotated_at: float = 0.0  # when the agent noticed that the file is rotated or deleted
    verified: bool = False
    source: int | None = None  # index of its source; None if no source matches its path
    long_line: LongLine | None = None
    # whether the byte order mark says big-endian; None until the first two bytes are read
    is_big_endian: bool | None = None
    written: Written | None = None
    # where the last runs of NUL bytes that were read begin and end (see module holes)
    holes: tuple[tuple[int, int], ...] = ()
    # whether the first look found that the file had changed while no agent ran
    is_unwatched: bool = False
    flights: tuple[Flight, ...] = ()  # a tuple, because an empty list for each file takes 60 bytes

    @property
    def file(self) -> int:
        """The file id."""
        return self.birth.file

    @property
    def position(self) -> int:
        return self.checkpoint.position

    @property
    def pending(self) -> int:
        """How many of the bytes that the agent has seen are not accounted for yet."""
        return max(self.bytes_known - self.tally.total, 0)

    @property
    def bytes_known(self) -> int:
        """How many bytes of the file belong to this file id: as many as the agent has seen so far,
        or all of them once the file id has ended."""
        if self.length is not None:
            return self.length + self.lost_unread - self.birth.begin
        return max(self.size, self.read_position) - self.birth.begin

    @property
    def lost_unread(self) -> int:
        """How many of the lost bytes the agent has never read, because the file vanished or was
        truncated. The file's position has not moved past these bytes; it has moved past all other
        bytes that are accounted for.
        """
        return self.tally.total - (self.position - self.birth.begin)

    @property
    def last_point(self) -> Checkpoint:
        """The checkpoint that the file will have when all its present intents are accounted for."""
        return self.flights[-1].after if self.flights else self.checkpoint

    @property
    def is_unproven(self) -> bool:
        """Whether bytes before the read position were accounted for without a proof that the file
        still has the bytes that were read. The brokers may have records of these bytes, and the
        file on the host may still contain the same bytes.
        """
        return self.read_position > 0 and not self.last_point.guard.length

    @property
    def is_deleted(self) -> bool:
        """Whether the agent saw that the file has no name any more (its last link was removed).
        After that, any other file may get the file's inode.
        """
        return not self.location

    @property
    def is_replaying(self) -> bool:
        """Whether the agent still has to send again some of the intents that it made before its
        last start."""
        return self.promised > self.read_position

    def reading(self, intent: Intent, data: bytes) -> Reading:
        """Makes a reading of an intent of this file: adds the intent's bytes, and the file's host,
        path and labels."""
        labels = labels_at(self.labels, intent.first)
        return Reading(intent, data, self.birth.host, self.birth.path, labels)

    def read_on(
        self, prefix_crc: int, tail: bytes, end: int, first: Mark | None = None
    ) -> Checkpoint:
        """Moves the read position to `end`. Returns the checkpoint at `end`. This checkpoint
        becomes valid when all bytes before `end` are accounted for. first: the end of the file's
        first record, if the bytes before `end` begin with it.
        """
        self.read_position, self.read_crc = end, prefix_crc
        self.unfinished_at = None
        self.promised = max(self.promised, end)
        self.tail = tail[-GUARD_BYTES:]
        before = self.last_point.marks if first is None else (first,)
        marks = with_mark(before, Mark(end, prefix_crc))
        return Checkpoint(end, prefix_crc, guard_of(self.tail), marks)

    def skip_to(self, end: int) -> Checkpoint:
        """Moves the read position to `end`. The agent can no longer prove that the bytes before
        `end` are those that it has read. Returns the checkpoint at `end`, without a CRC.
        """
        self.read_position, self.read_crc, self.tail = end, 0, None
        self.unfinished_at = None
        self.promised = max(self.promised, end)
        return Checkpoint(end, 0, Guard(0, 0), self.last_point.marks)

    def end(self) -> None:
        """Ends the file id: the agent reads no more of its bytes, and the file's final length is
        the end of its last intent.
        """
        self.state = FileState.ENDED
        self.length = self.promised
        self.long_line = None
