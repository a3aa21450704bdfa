"""Gathers the statements of one transaction before the transaction begins. If the transaction
fails, the agent can try it again with the same statements.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import google_crc32c

from skidway.agent.batches.recipe import Recipe
from skidway.agent.values.drawn import Drawn
from skidway.agent.values.found import UnbegunFile, UnopenedFile
from skidway.agent.values.identity import Mark
from skidway.agent.values.intents import Intent
from skidway.agent.values.labels import to_json
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.counts.counts import BucketKey, Sums
from skidway.audit.topic.messages import Loss
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

Row = tuple[Any, ...]

SINCE: Final = "since "
"""This prefix, followed by a topic's name, is a key of the table `meta`. The key's value is the
time of the agent's first start with the topic.
"""

LOOKED: Final = "looked "
"""This prefix, a topic's name, a blank and a pattern of the topic's sources are a key of the table
`meta`. The agent has looked at the pattern. The key's value is a JSON list of the patterns of paths
that every look at this pattern has left out (`exclude`). A number, which earlier versions wrote,
means an empty list.
"""

LEFT: Final = "last_words"
"""The key of `meta` for the topics that have a last word (see `LastWord`)."""

ADOPTED: Final = "adopted"
"""The key of `meta` for the epoch and the number of the last message that was sent before an
operator adopted the state (`skidway agent state adopt`).
"""

_MARK = struct.Struct("<qI")

FILE_COLUMNS: Final = (
    "file", "serial", "topic", "topic_id", "host", "path", "device", "inode",
    "fingerprint_length", "fingerprint", "begin", "predecessor", "predecessor_position",
    "born_ns", "location", "meant", "state", "length", "changed_ns", "announced", "announced_ms",
    "position", "prefix_crc", "guard_length", "guard_crc", "marks",
    "acknowledged", "rejected", "filtered", "lost", "uncertain", "crc",
)  # fmt: skip

_PUT_FILE = (
    f"INSERT OR REPLACE INTO files ({', '.join(FILE_COLUMNS)}) "  # noqa: S608 - our own names
    f"VALUES ({', '.join('?' * len(FILE_COLUMNS))})"
)
_PUT_INTENT = "INSERT INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_SUM = """
INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET count = excluded.count, bytes = excluded.bytes,
checksum = excluded.checksum
"""
_PUT_FILTERED = "INSERT OR REPLACE INTO filtered_sums VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


class LastWord(NamedTuple):
    """The seal that is a topic's last word. After this seal, the audit waits for no more lines of
    the agent. wall_ms: the wall time up to which, as the seal confirms, all lines of the files are
    counted. at: the number of the last delta (message with new counts) that the agent had made when
    it noted this time.
    """

    epoch: int
    wall_ms: int
    at: int


# The class has 31 methods: at least one for each kind of row in the state.
class Changes:
    """Gathers statements in the order of the calls. The methods do not write to the database."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, list[Row]]] = []

    def __bool__(self) -> bool:
        return bool(self.statements)

    def put_meta(self, key: str, value: str | int) -> None:
        """Sets the value of one key in the table `meta`."""
        self._do("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put_topic(self, topic: str, topic_id: str, sealed_until: int | None) -> None:
        """Sets a topic's id, and the time (ms) until which the topic is sealed."""
        self._do("INSERT OR REPLACE INTO topics VALUES (?, ?, ?)", (topic, topic_id, sealed_until))

    def put_since(self, topic: str, now_ms: int) -> None:
        """Stores the time (ms) at which the agent first started with a topic."""
        self.put_meta(SINCE + topic, now_ms)

    def put_looked(self, topic: str, pattern: str, exclude: Sequence[str]) -> None:
        """Notes that the agent has looked at a pattern of a topic's source. exclude: the patterns
        of the paths that every look at the pattern has excluded.
        """
        self.put_meta(f"{LOOKED}{topic} {pattern}", json.dumps(exclude))

    def put_left(self, words: Mapping[str, LastWord]) -> None:
        """Sets the topics whose newest seal is a last word, each with that seal."""
        self.put_meta(LEFT, json.dumps(words, sort_keys=True))

    def put_adopted(self, last: tuple[int, int] | None) -> None:
        """Stores the epoch and the number of the last message that was sent before the state was
        adopted. With None, deletes both numbers, because the agent has been started since the
        adoption."""
        self.put_meta(ADOPTED, json.dumps(last))

    def forget_offsets(self, topic: str) -> None:
        """Deletes the offsets and floors of a topic that was deleted and made again."""
        self._do("DELETE FROM offsets WHERE topic = ?", (topic,))
        self._do("DELETE FROM floors WHERE topic = ?", (topic,))

    def put_offsets(self, offsets: Iterable[tuple[TopicPartition, int]]) -> None:
        """Sets the last acknowledged offset of each given partition."""
        rows = [(tp.topic, tp.partition, last) for tp, last in offsets]
        self._do("INSERT OR REPLACE INTO offsets VALUES (?, ?, ?)", *rows)

    def put_floors(self, floors: Iterable[tuple[TopicPartition, str, int]]) -> None:
        """Sets floors, each as (partition, its topic's id, offset below which no intent has a
        record).
        """
        rows = [(tp.topic, tp.partition, topic_id, floor) for tp, topic_id, floor in floors]
        self._do("INSERT OR REPLACE INTO floors VALUES (?, ?, ?, ?)", *rows)

    def put_files(self, files: Iterable[TrackedFile]) -> None:
        """Writes the durable facts about each given file."""
        self._do(_PUT_FILE, *[file_row(file) for file in files])

    def forget_files(self, files: Iterable[int]) -> None:
        """Deletes file ids from which no more records or losses can come."""
        rows = [(file,) for file in files]
        self._do("DELETE FROM files WHERE file = ?", *rows)
        self._do("DELETE FROM labels WHERE file = ?", *rows)

    def put_labels(self, files: Iterable[TrackedFile]) -> None:
        """Sets the labels of each given file, and from which position on they apply."""
        rows = [(file.file, to_json(file.labels)) for file in files]
        statement = "INSERT OR REPLACE INTO labels VALUES (?, ?, ?)"
        self._do(statement, *[(*row, checksum(row)) for row in rows])

    def put_unopened(self, files: Iterable[UnopenedFile]) -> None:
        """Replaces the list of the files that could not be opened yet."""
        self._do("DELETE FROM unopened", ())
        rows = [unopened_row(each) for each in files]
        self._do("INSERT INTO unopened VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *rows)

    def put_unbegun(self, gone: Iterable[str], files: Iterable[UnbegunFile]) -> None:
        """Removes paths from the list of the files without a file id, and puts files into it."""
        self._do("DELETE FROM unbegun WHERE path = ?", *[(os.fsencode(path),) for path in gone])
        rows = [unbegun_row(each) for each in files]
        self._do("INSERT OR REPLACE INTO unbegun VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *rows)

    def put_recipe(self, recipe: Recipe) -> None:
        """Adds a recipe (the settings by which records are made) before the first intents that name
        it."""
        row = (recipe.fingerprint, recipe.to_json())
        self._do("INSERT OR IGNORE INTO recipes VALUES (?, ?)", row)

    def forget_recipes(self) -> None:
        """Deletes recipes that neither an intent nor a chosen range (see `Drawn`) names."""
        self._do(
            "DELETE FROM recipes WHERE fingerprint NOT IN (SELECT recipe FROM intents)"
            " AND fingerprint NOT IN (SELECT recipe FROM drawn)",
            (),
        )

    def put_drawn(self, ranges: Iterable[Drawn]) -> None:
        """Stores randomly chosen ranges of files. The agent will make their records once more, so
        that the audit can compare them with rows (package sampling)."""
        statement = "INSERT OR REPLACE INTO drawn VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        self._do(statement, *[drawn_row(each) for each in ranges])

    def forget_drawn(self, ranges: Iterable[Drawn]) -> None:
        """Deletes chosen ranges that were reported to the audit, or that other ranges replace."""
        self._do(
            "DELETE FROM drawn WHERE (period, period_ms, lot, file, first) = (?, ?, ?, ?, ?)",
            *[drawn_row(each)[:5] for each in ranges],
        )

    def forget_all_drawn(self) -> None:
        """Deletes all chosen ranges, because the agent no longer chooses ranges."""
        self._do("DELETE FROM drawn", ())

    def put_intents(self, intents: Iterable[Intent]) -> None:
        """Adds intents. The agent sends their records after this transaction is durable."""
        self._do(_PUT_INTENT, *[intent_row(intent) for intent in intents])

    def forget_intents(self, sequences: Iterable[int]) -> None:
        """Deletes intents that the checkpoint passed, or that other intents replace."""
        self._do("DELETE FROM intents WHERE sequence = ?", *[(each,) for each in sequences])

    def put_sums(self, sums: Iterable[tuple[BucketKey, Sums]]) -> None:
        """Sets, for each given bucket (a span of event time), the sums of all counted records that
        are in no delta (a message with counts) yet.
        """
        given = list(sums)
        self._do(
            _PUT_SUM,
            *[
                (*source_row(source), bucket, each.count, each.bytes, each.checksum)
                for (source, _, bucket), each in given
            ],
        )
        self._do(
            _PUT_FILTERED,
            *[
                (*source_row(source), bucket, x.rule, x.records, x.bytes)
                for (source, _, bucket), each in given
                for x in each.filtered
            ],
        )

    def clear_sums(self) -> None:
        """Deletes all sums, because they are in deltas now."""
        self._do("DELETE FROM sums", ())
        self._do("DELETE FROM filtered_sums", ())

    def forget_touched(self) -> None:
        """Deletes all numbers that `put_touched` set. Called when the bucket size or the epoch
        changes: from then on there are new buckets, and no delta has counts of them yet.
        """
        self._do("DELETE FROM touched", ())

    def put_touched(self, touched: Iterable[tuple[BucketKey, int]]) -> None:
        """Sets, for each bucket, the number of the last delta with counts of the bucket."""
        rows = [(*source_row(source), bucket, number) for (source, _, bucket), number in touched]
        self._do("INSERT OR REPLACE INTO touched VALUES (?, ?, ?, ?, ?, ?)", *rows)

    def put_loss(self, loss: Loss, declared_ms: int) -> None:
        """Adds a byte range of a file that was declared lost or uncertain. The next delta will
        contain it."""
        row = (
            *source_row(loss.source),
            loss.file,
            loss.first,
            loss.end,
            loss.certainty.value,
            loss.reason,
            loss.from_bucket,
            loss.to_bucket,
            declared_ms,
        )
        self._do(
            "INSERT INTO losses (cluster, cluster_id, topic, topic_id, file, first, "
            '"end", certainty, reason, from_bucket, to_bucket, declared_ms) '
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )

    def number_losses(self, number: int) -> None:
        """Gives all losses that are in no delta yet the number of the delta that contains them."""
        self._do("UPDATE losses SET number = ? WHERE number IS NULL", (number,))

    def forget_losses(self) -> None:
        """Deletes each loss that is in a delta and whose file id is deleted. Such a loss cannot be
        declared a second time, so the state need not store it.
        """
        self._do(
            "DELETE FROM losses WHERE number IS NOT NULL AND file NOT IN (SELECT file FROM files)",
            (),
        )

    def put_message(
        self, id: int, value: bytes, *, number: int | None = None, file: int | None = None
    ) -> None:
        """Adds a message for the audit topic: either a numbered message or an announcement of a
        file id.
        """
        self._do("INSERT INTO outbox VALUES (?, ?, ?, ?)", (id, number, file, value))

    def forget_messages(self, ids: Iterable[int]) -> None:
        """Deletes messages that were acknowledged."""
        self._do("DELETE FROM outbox WHERE id = ?", *[(each,) for each in ids])

    def _do(self, statement: str, *rows: Row) -> None:
        if rows:
            self.statements.append((statement, list(rows)))


def source_row(source: Source) -> Row:
    """The columns of a row for a source."""
    return source.cluster, source.cluster_id, source.topic, source.topic_id


def checksum(row: Row) -> int:
    """CRC-32C over the values of a row."""
    crc: int = google_crc32c.value(repr(row).encode())
    return crc


def file_row(file: TrackedFile) -> Row:
    """The columns of `files`."""
    birth, point, tally = file.birth, file.checkpoint, file.tally
    row = (
        birth.file, birth.serial, birth.topic, birth.topic_id, birth.host, birth.path,
        birth.key.device, birth.key.inode,
        birth.fingerprint.length, birth.fingerprint.digest,
        birth.begin, birth.predecessor, birth.predecessor_position,
        birth.born_ns, os.fsencode(file.location), os.fsencode(file.meant),
        file.state.value, file.length, file.changed_ns,
        int(file.announced), file.announced_ms,
        point.position, point.prefix_crc, point.guard.length, point.guard.crc,
        marks_blob(point.marks),
        tally.acknowledged, tally.rejected, tally.filtered, tally.lost, tally.uncertain,
    )  # fmt: skip
    return (*row, checksum(row))


def unopened_row(file: UnopenedFile) -> Row:
    """The columns of `unopened`."""
    found, base = file.found, file.base
    return (
        found.key.device, found.key.inode, found.size, found.changed_ns, found.born_ns,
        os.fsencode(found.path), os.fsencode(found.real_path),
        file.topic, file.topic_id, None if base is None else os.fsencode(base), int(file.may_begin),
        file.skip,
    )  # fmt: skip


def unbegun_row(file: UnbegunFile) -> Row:
    """The columns of `unbegun`."""
    found, base = file.found, file.base
    return (
        os.fsencode(found.path), found.key.device, found.key.inode, found.size, found.changed_ns,
        found.born_ns, os.fsencode(found.real_path), None if base is None else os.fsencode(base),
    )  # fmt: skip


def intent_row(intent: Intent) -> Row:
    """The columns of `intents`."""
    row = (
        intent.sequence,
        intent.file,
        intent.first,
        intent.end,
        intent.crc,
        intent.read_ms,
        intent.recipe,
    )
    return (*row, checksum(row))


def drawn_row(each: Drawn) -> Row:
    """The columns of `drawn`."""
    intent = each.intent
    row = (
        each.period, each.period_ms, each.rank, intent.file, intent.first, intent.end, intent.crc,
        intent.read_ms, intent.sequence, intent.recipe, each.number, each.count,
    )  # fmt: skip
    return (*row, checksum(row))


def marks_blob(marks: tuple[Mark, ...]) -> bytes:
    """Encodes marks. Each mark is its position (i64) and its CRC (u32), little-endian."""
    return b"".join(_MARK.pack(*mark) for mark in marks)


def marks_of(blob: bytes) -> tuple[Mark, ...]:
    """The inverse of `marks_blob`."""
    return tuple(Mark(*fields) for fields in _MARK.iter_unpack(blob))
