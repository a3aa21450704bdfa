"""Gathers the SQL statements of one transaction before the transaction begins. If the transaction
fails, the agent can try it again with the same statements.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import google_crc32c

from skidway.agent.recipe import Recipe
from skidway.agent.values.found import UnbegunFile, UnopenedFile
from skidway.agent.values.identity import Mark
from skidway.agent.values.intents import Intent
from skidway.agent.values.labels import to_json
from skidway.agent.values.schemas import KnownSchema
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.counts.counts import BucketKey, Sums
from skidway.audit.topic.messages import Loss
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

Row = tuple[Any, ...]

SINCE: Final = "since "
SCHEMAS: Final = "schemas"
"""This prefix, followed by a topic's name, is a key of the table `meta`. The key's value is the
time (ms) at which the agent first started with this topic in its settings.
"""

MATCH: Final = "match "
"""This prefix, followed by the key of a source, is a key of the table `meta`. The value is a JSON
list: the fields of a `Match`."""

SOURCES: Final = "sources"
"""This key of the table `meta` has the newest report about sources that cannot be read."""

LOOKED: Final = "looked "
"""This prefix, a topic's name, a blank and a pattern of paths together are a key of the table
`meta`. The key says that the agent has searched for files that match the pattern. Its value is a
JSON list: the patterns of the setting `exclude` that were set in every such search.
"""

LEFT: Final = "last_words"
"""This key of the table `meta` has the last word (see `LastWord`) of each topic that has one, as
JSON."""

ADOPTED: Final = "adopted"
"""This key of the table `meta` has the epoch and the number of the last message that the agent sent
before an operator adopted the state (`skidway agent state adopt`).
"""

_MARK = struct.Struct("<qI")

FILE_COLUMNS: Final = (
    "file", "serial", "topic", "topic_id", "host", "path", "device", "inode",
    "fingerprint_length", "fingerprint", "begin", "predecessor", "predecessor_position",
    "born_ns", "location", "meant", "state", "length", "changed_ns", "emptied", "announced",
    "announced_ms", "position", "prefix_crc", "guard_length", "guard_crc", "marks",
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
    """A topic's last word: a seal after which the audit waits for no more lines of this agent in
    the topic. wall_ms: the seal confirms that all lines that were in the files at this wall time
    are counted. at: the highest number of the deltas (messages with new counts) and seals that the
    agent had made by `wall_ms`.
    """

    wall_ms: int
    at: int


# The class has so many methods because each kind of row in the state needs at least one.
class Changes:
    """Gathers SQL statements in the order of the calls. The methods do not write to the
    database."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, list[Row]]] = []

    def __bool__(self) -> bool:
        return bool(self.statements)

    def put_meta(self, key: str, value: str | int) -> None:
        """Sets the value of one key in the table `meta`."""
        self._do("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put_topic(self, topic: str, topic_id: str, sealed_until: int | None) -> None:
        """Sets a topic's id, and `sealed_until`: the time (ms) up to which the agent's newest seal
        confirms that all lines of the topic are counted."""
        self._do("INSERT OR REPLACE INTO topics VALUES (?, ?, ?)", (topic, topic_id, sealed_until))

    def put_schemas(self, known: Iterable[KnownSchema]) -> None:
        """Replaces the stored schemas whose ids a registry has given."""
        self.put_meta(SCHEMAS, json.dumps(list(known)))

    def put_since(self, topic: str, now_ms: int) -> None:
        """Stores the time (ms) at which the agent first started with this topic in its settings."""
        self.put_meta(SINCE + topic, now_ms)

    def put_looked(self, topic: str, pattern: str, exclude: Sequence[str]) -> None:
        """Stores that the agent has searched for files that match a pattern of a topic's source.
        exclude: the patterns of the setting `exclude` that were set in every such search.
        """
        self.put_meta(f"{LOOKED}{topic} {pattern}", json.dumps(exclude))

    def put_match(self, source: str, match: tuple[int, int, bool] | None) -> None:
        """Writes what is known about a source; None if the agent has it no longer (see module
        files.matches)."""
        if match is None:
            self._do("DELETE FROM meta WHERE key = ?", (MATCH + source,))
        else:
            self.put_meta(MATCH + source, json.dumps(match))

    def put_sources(self, report: Mapping[str, Any]) -> None:
        """Writes the report about sources that the agent cannot read (see source_report)."""
        self.put_meta(SOURCES, json.dumps(report))

    def put_left(self, words: Mapping[str, LastWord]) -> None:
        """Replaces the stored last words, which are final seals (see `LastWord`). words: the final
        seal of each topic that has one, if no later seal has replaced it."""
        self.put_meta(LEFT, json.dumps(words, sort_keys=True))

    def put_adopted(self, last: tuple[int, int] | None) -> None:
        """Stores the epoch and the number of the last message that the agent sent before an
        operator adopted the state. None means that the agent has been started since the
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
        """Sets the floors of partitions. Each floor is a tuple: the partition, its topic's id, and
        the offset below which no stored intent has a record.
        """
        rows = [(tp.topic, tp.partition, topic_id, floor) for tp, topic_id, floor in floors]
        self._do("INSERT OR REPLACE INTO floors VALUES (?, ?, ?, ?)", *rows)

    def put_files(self, files: Iterable[TrackedFile]) -> None:
        """Writes a row of the table `files` for each given file."""
        self._do(_PUT_FILE, *[file_row(file) for file in files])

    def forget_files(self, files: Iterable[int]) -> None:
        """Deletes the rows of file ids. The caller knows that no more records or losses of these
        file ids can come."""
        rows = [(file,) for file in files]
        self._do("DELETE FROM files WHERE file = ?", *rows)
        self._do("DELETE FROM labels WHERE file = ?", *rows)

    def put_labels(self, files: Iterable[TrackedFile]) -> None:
        """Stores the labels of the pod that wrote each given file, and from which byte position on
        each set of labels applies."""
        rows = [(file.file, to_json(file.labels)) for file in files]
        statement = "INSERT OR REPLACE INTO labels VALUES (?, ?, ?)"
        self._do(statement, *[(*row, checksum(row)) for row in rows])

    def put_unopened(self, files: Iterable[UnopenedFile]) -> None:
        """Replaces the stored list of the files that the agent could not open yet."""
        self._do("DELETE FROM unopened", ())
        rows = [unopened_row(each) for each in files]
        self._do("INSERT INTO unopened VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", *rows)

    def put_unbegun(self, gone: Iterable[str], files: Iterable[UnbegunFile]) -> None:
        """Changes the stored list of the files without a file id: removes the paths `gone`, and
        adds or replaces `files`."""
        self._do("DELETE FROM unbegun WHERE path = ?", *[(os.fsencode(path),) for path in gone])
        rows = [unbegun_row(each) for each in files]
        self._do("INSERT OR REPLACE INTO unbegun VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *rows)

    def put_recipe(self, recipe: Recipe) -> None:
        """Adds a recipe, if it is not stored yet. Called before `put_intents` adds the first intent
        that names the recipe."""
        row = (recipe.fingerprint, recipe.to_json())
        self._do("INSERT OR IGNORE INTO recipes VALUES (?, ?)", row)

    def forget_recipes(self) -> None:
        """Deletes the recipes that no stored intent names."""
        self._do("DELETE FROM recipes WHERE fingerprint NOT IN (SELECT recipe FROM intents)", ())

    def put_intents(self, intents: Iterable[Intent]) -> None:
        """Adds intents. The agent sends their records after this transaction is durable."""
        self._do(_PUT_INTENT, *[intent_row(intent) for intent in intents])

    def forget_intents(self, sequences: Iterable[int]) -> None:
        """Deletes intents, for example because their files' checkpoints have passed them, or
        because other intents replace them."""
        self._do("DELETE FROM intents WHERE sequence = ?", *[(each,) for each in sequences])

    def put_sums(self, sums: Iterable[tuple[BucketKey, Sums]]) -> None:
        """Sets the sums of each given bucket. The sums cover all counted records of the bucket that
        are in no delta (message with new counts) yet.
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
        """Deletes all sums. Called if deltas in the same transaction contain the sums, or if an
        earlier process of the agent has published them (see `renewal`)."""
        self._do("DELETE FROM sums", ())
        self._do("DELETE FROM filtered_sums", ())

    def forget_touched(self) -> None:
        """Deletes the numbers that `put_touched` has stored: for each bucket, the number of its
        last delta. Called if the size of buckets or the epoch has changed, because the next delta
        of a bucket then continues no earlier delta.
        """
        self._do("DELETE FROM touched", ())

    def put_touched(self, touched: Iterable[tuple[BucketKey, int]]) -> None:
        """Sets, for each bucket, the number of the last delta with counts of the bucket."""
        rows = [(*source_row(source), bucket, number) for (source, _, bucket), number in touched]
        self._do("INSERT OR REPLACE INTO touched VALUES (?, ?, ?, ?, ?, ?)", *rows)

    def put_loss(self, loss: Loss, declared_ms: int) -> None:
        """Adds a loss: a byte range of a file that the agent declares lost or uncertain. The next
        delta will contain the loss. declared_ms: when the agent declared it."""
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
        """Stores that the delta with this number contains all losses that were in no delta
        before."""
        self._do("UPDATE losses SET number = ? WHERE number IS NULL", (number,))

    def forget_losses(self) -> None:
        """Deletes each loss that is in a delta and whose file id is no longer stored. The row of a
        loss keeps the agent from declaring the same loss again. When the file id is gone, the agent
        cannot find the loss again, so the row is not needed any more.
        """
        self._do(
            "DELETE FROM losses WHERE number IS NOT NULL AND file NOT IN (SELECT file FROM files)",
            (),
        )

    def put_message(
        self, id: int, value: bytes, *, number: int | None = None, file: int | None = None
    ) -> None:
        """Adds a message for the audit topic to the outbox. number: the message's number, if it has
        one. file: the file id, if the message announces one.
        """
        self._do("INSERT INTO outbox VALUES (?, ?, ?, ?)", (id, number, file, value))

    def forget_messages(self, ids: Iterable[int]) -> None:
        """Deletes messages from the outbox: messages that a broker has acknowledged, or
        announcements of file ids that are replaced by new file ids (see `renewal`)."""
        self._do("DELETE FROM outbox WHERE id = ?", *[(each,) for each in ids])

    def _do(self, statement: str, *rows: Row) -> None:
        if rows:
            self.statements.append((statement, list(rows)))


def source_row(source: Source) -> Row:
    """Returns a source topic as four columns: cluster, cluster_id, topic, topic_id. The tables
    `sums`, `filtered_sums`, `touched` and `losses` have these columns."""
    return source.cluster, source.cluster_id, source.topic, source.topic_id


def checksum(row: Row) -> int:
    """Returns the CRC-32C over the values of a row."""
    crc: int = google_crc32c.value(repr(row).encode())
    return crc


def file_row(file: TrackedFile) -> Row:
    """Returns the file's row in the table `files`."""
    birth, point, tally = file.birth, file.checkpoint, file.tally
    row = (
        birth.file, birth.serial, birth.topic, birth.topic_id, birth.host, birth.path,
        birth.key.device, birth.key.inode,
        birth.fingerprint.length, birth.fingerprint.digest,
        birth.begin, birth.predecessor, birth.predecessor_position,
        birth.born_ns, os.fsencode(file.location), os.fsencode(file.meant),
        file.state.value, file.length, file.changed_ns, int(file.is_emptied),
        int(file.announced), file.announced_ms,
        point.position, point.prefix_crc, point.guard.length, point.guard.crc,
        marks_blob(point.marks),
        tally.acknowledged, tally.rejected, tally.filtered, tally.lost, tally.uncertain,
    )  # fmt: skip
    return (*row, checksum(row))


def unopened_row(file: UnopenedFile) -> Row:
    """Returns the file's row in the table `unopened`."""
    found, base = file.found, file.base
    return (
        found.key.device, found.key.inode, found.size, found.changed_ns, found.born_ns,
        os.fsencode(found.path), os.fsencode(found.real_path),
        file.topic, file.topic_id, None if base is None else os.fsencode(base), int(file.may_begin),
        file.skip,
    )  # fmt: skip


def unbegun_row(file: UnbegunFile) -> Row:
    """Returns the file's row in the table `unbegun`."""
    found, base = file.found, file.base
    return (
        os.fsencode(found.path), found.key.device, found.key.inode, found.size, found.changed_ns,
        found.born_ns, os.fsencode(found.real_path), None if base is None else os.fsencode(base),
    )  # fmt: skip


def intent_row(intent: Intent) -> Row:
    """Returns the intent's row in the table `intents`."""
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


def marks_blob(marks: tuple[Mark, ...]) -> bytes:
    """Encodes a file's marks: some positions, each with the CRC of all bytes before it (see
    values/identity). Each mark becomes its position (i64) and its CRC (u32), little-endian."""
    return b"".join(_MARK.pack(*mark) for mark in marks)


def marks_of(blob: bytes) -> tuple[Mark, ...]:
    """Decodes what `marks_blob` has encoded."""
    return tuple(Mark(*fields) for fields in _MARK.iter_unpack(blob))
