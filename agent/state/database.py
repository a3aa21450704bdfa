"""Opens the agent's database, or refuses it if it is damaged or belongs to another machine. The
agent reads the database when it starts, and changes it with one transaction in each turn.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from skidway import invocation, machine_id, wal_index
from skidway.agent.recipe import Recipe, from_json
from skidway.agent.state.changes import (
    ADOPTED,
    LEFT,
    LOOKED,
    MATCH,
    SCHEMAS,
    SINCE,
    SOURCES,
    Changes,
    LastWord,
    checksum,
    marks_of,
    source_row,
)
from skidway.agent.state.tables import APPLICATION_ID, FORMAT, TABLES
from skidway.agent.values import identity, labels
from skidway.agent.values.found import FileKey, Found, UnbegunFile, UnopenedFile
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.intents import Intent
from skidway.agent.values.labels import History
from skidway.agent.values.schemas import KnownSchema
from skidway.agent.values.tracked import Birth, Checkpoint, FileState, Tally, TrackedFile
from skidway.audit.counts.counts import BucketKey, Sums
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.messages import Certainty, Loss
from skidway.dataclass import dataclass
from skidway.errors import SkidwayError, StateRefused
from skidway.files import fsync_directory
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

DATABASE = "agent.db"
CACHE_KIB = 512
"""How many KiB of the database SQLite keeps in memory. SQLite's default is 2 MB. The agent needs
less than that, because one turn of its loop reads few rows.
"""
_TRANSIENT = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_ENVIRONMENT = (
    *_TRANSIENT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
)
_WHAT_NOW = (
    "bring back the newest good copy of it, or move the directory away: a new state reads all "
    "files again under new ids, and the audit will name the possible doubling"
)


class StateFull(SkidwayError):
    """Raised if a transaction failed because the disk is full, or because another process locks the
    database. The transaction was rolled back, so none of its changes is stored.
    """


@dataclass(frozen=True, slots=True)
class Message:
    """A row of the outbox, which stores messages to the audit until they are acknowledged. id:
    gives the order of the messages. number: the message's number if it is a delta or a seal. file:
    the file id that the message announces, if it is an announcement. value: the encoded message.
    """

    id: int
    number: int | None
    file: int | None
    value: bytes


@dataclass(frozen=True, slots=True)
class TopicState:
    """A row of the table `topics`. sealed_until: the time (ms) up to which the agent's newest seal
    confirms that all lines of the topic are counted; None before the first seal."""

    topic_id: str
    sealed_until: int | None


class StateDatabase:
    """Owns the connection to the database. Every method raises StateRefused if it notices that the
    database is damaged.

    file_name: the name of the database's file in the state's directory. tables: the SQL statements
    that create its tables. what_now: the end of the error message about a damaged database; it says
    what an operator can do.
    """

    file_name: ClassVar[str] = DATABASE
    tables: ClassVar[str] = TABLES
    what_now: ClassVar[str] = _WHAT_NOW

    def __init__(
        self, connection: sqlite3.Connection, name: str = DATABASE, *, is_new: bool = False
    ) -> None:
        """name: the name of the database in error messages. is_new: whether this process made the
        database, and so also its agent id."""
        self.is_new = is_new
        self._connection = connection
        self._name = name
        with self._damage():
            meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
        self.agent = int(meta["agent"])
        self.machine = str(meta["machine"])
        self.epoch = int(meta["epoch"])
        self.number = int(meta["number"])
        self.cluster = str(meta.get("cluster", ""))
        self.cluster_id = str(meta.get("cluster_id", ""))
        self.bucket_ms = int(meta.get("bucket_ms", 0))
        left = json.loads(meta.get(LEFT, "{}"))
        adopted = json.loads(meta.get(ADOPTED, "null"))
        self.adopted = None if adopted is None else (int(adopted[0]), int(adopted[1]))
        self.left = {topic: LastWord(*word) for topic, word in left.items()}

    def close(self) -> None:
        """Closes the connection. Uncommitted changes are lost."""
        self._connection.close()

    def commit(self, changes: Changes) -> None:
        """Makes all changes durable, or none of them. Raises StateFull if the disk has no room or
        another process locks the database, SkidwayError if the file system refuses the write, and
        StateRefused if the database is damaged."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for statement, rows in changes.statements:
                self._connection.executemany(statement, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            if _code(error) in _TRANSIENT:
                raise StateFull(f"cannot write the state {self._name}: {error}") from error
            raise self._refused(error) from error

    def begin_as(self, agent: int) -> bool:
        """Gives a state another agent id, if no file was read with it yet. Returns whether it was
        given. Raises the errors of `commit`."""
        if self.number or self.epoch > 1 or self.files():
            return False
        changes = Changes()
        changes.put_meta("agent", str(agent))
        self.commit(changes)
        self.agent, self.is_new = agent, True
        return True

    # --- what the agent reads when it starts --------------------------------------------------

    def files(self) -> list[TrackedFile]:
        """Returns every row of the table `files` as an object, in the order in which the agent made
        the file ids."""
        return [self._file(row) for row in self._rows("SELECT * FROM files ORDER BY serial")]

    def labels(self) -> dict[int, History]:
        """Returns, by file id, the history of the labels of the pod that wrote the file. Files
        without labels are left out."""
        found = {}
        for *row, crc in self._rows("SELECT * FROM labels"):
            if checksum(tuple(row)) != crc:
                raise self._damaged(f"the labels of file {row[0]} do not have their checksum")
            found[row[0]] = labels.from_json(row[1])
        return found

    def unopened(self) -> list[UnopenedFile]:
        """Returns the files that the agent found, but could not open yet."""
        return [_unopened(row) for row in self._rows("SELECT * FROM unopened")]

    def unbegun(self) -> list[UnbegunFile]:
        """Returns the files that have no file id, because they are empty or too old to be read."""
        return [_unbegun(row) for row in self._rows("SELECT * FROM unbegun")]

    def intents(self) -> list[Intent]:
        """Returns the intents that their files' checkpoints have not passed. In the list, each
        file's intents come in the order of their bytes.

        Sequence numbers alone do not give this order: if an intent was divided, its parts have
        higher sequence numbers than the intents of later bytes. The list is first sorted by
        sequence number. In this list, the intents of one file may have the places 2, 5 and 7. These
        three intents are then sorted by their bytes and put into the places 2, 5 and 7 again, so
        that the intents of other files do not move.
        """
        found = [self._intent(row) for row in self._rows("SELECT * FROM intents ORDER BY sequence")]
        of_file: dict[int, list[Intent]] = {}
        for intent in found:
            of_file.setdefault(intent.file, []).append(intent)
        rising = {
            file: iter(sorted(own, key=lambda intent: intent.first))
            for file, own in of_file.items()
        }
        return [next(rising[intent.file]) for intent in found]

    def last_sequence(self) -> int:
        """Returns the highest sequence number among the stored intents; 0 if there are none."""
        return int(self._rows("SELECT coalesce(max(sequence), 0) FROM intents")[0][0])

    def recipes(self) -> dict[bytes, Recipe]:
        """Returns the stored recipes, by fingerprint (the hash of a recipe)."""
        found = {}
        for fingerprint, content in self._rows("SELECT fingerprint, content FROM recipes"):
            recipe = from_json(content)
            if recipe.fingerprint != fingerprint:
                raise self._damaged("a recipe does not have its fingerprint")
            found[fingerprint] = recipe
        return found

    def topics(self) -> dict[str, TopicState]:
        """Returns the stored facts about each topic, by the topic's name."""
        rows = self._rows("SELECT topic, topic_id, sealed_until FROM topics")
        return {topic: TopicState(topic_id, sealed) for topic, topic_id, sealed in rows}

    def schemas(self) -> list[KnownSchema]:
        """Returns the schemas whose ids a registry has given."""
        rows = self._rows("SELECT key, value FROM meta")
        text = next((value for key, value in rows if key == SCHEMAS), "[]")
        return [KnownSchema(*each) for each in json.loads(text)]

    def since(self) -> dict[str, int]:
        """Returns, for each topic, the time (ms) at which the agent first started with the topic in
        its settings."""
        rows = self._rows("SELECT key, value FROM meta")
        return {key[len(SINCE) :]: value for key, value in rows if key.startswith(SINCE)}

    def looked(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Returns a tuple for each pattern whose files the agent has searched for: the topic of the
        pattern's source, the pattern, and the patterns of the setting `exclude` that were set in
        every search.
        """
        found = []
        for key, value in self._rows("SELECT key, value FROM meta"):
            if key.startswith(LOOKED):
                topic, _, text = key[len(LOOKED) :].partition(" ")
                found.append((topic, text, tuple(json.loads(value))))
        return found

    def matches(self) -> dict[str, tuple[int, int, bool]]:
        """Returns, by key of a source: since when (ms) and in which epoch the agent has had it, and
        whether a file has matched it."""
        found = {}
        for key, value in self._rows("SELECT key, value FROM meta"):
            if key.startswith(MATCH):
                since_ms, epoch, has_matched = json.loads(value)
                found[key[len(MATCH) :]] = since_ms, epoch, has_matched
        return found

    def sources(self) -> dict[str, Any]:
        """Returns the newest report about sources that the agent cannot read; empty if there is
        none."""
        rows = self._rows("SELECT value FROM meta WHERE key = ?", (SOURCES,))
        return next((dict(json.loads(value)) for (value,) in rows), {})

    def offsets(self) -> dict[TopicPartition, int]:
        """Returns the last acknowledged offset of each partition."""
        rows = self._rows("SELECT topic, partition, last FROM offsets")
        return {TopicPartition(topic, partition): last for topic, partition, last in rows}

    def floors(self) -> list[tuple[TopicPartition, str, int]]:
        """Returns a tuple for each floor: the partition, its topic's id, and the offset below which
        no stored intent has a record.
        """
        rows = self._rows("SELECT topic, partition, topic_id, floor FROM floors")
        return [(TopicPartition(topic, part), id_, floor) for topic, part, id_, floor in rows]

    def sums(self) -> list[tuple[BucketKey, Sums]]:
        """Returns, for each bucket, the sums of its counted records that are in no delta yet."""
        filtered: dict[tuple[Any, ...], list[Filtered]] = {}
        for *key, rule, records, size in self._rows("SELECT * FROM filtered_sums ORDER BY rule"):
            filtered.setdefault(tuple(key), []).append(Filtered(rule, records, size))
        return [
            (
                (Source(*row[:4]), self.agent, row[4]),
                Sums(row[5], row[6], row[7], filtered=tuple(filtered.get(row[:5], ()))),
            )
            for row in self._rows("SELECT * FROM sums")
        ]

    def touched(self, keys: Iterable[BucketKey]) -> dict[BucketKey, int]:
        """Returns, for each given bucket, the number of the last delta that has counts of the
        bucket. Buckets without a delta are left out.
        """
        found: dict[BucketKey, int] = {}
        statement = (
            "SELECT number FROM touched WHERE cluster = ? AND cluster_id = ? AND topic = ? "
            "AND topic_id = ? AND bucket = ?"
        )
        for key in keys:
            rows = self._rows(statement, (*source_row(key[0]), key[2]))
            if rows:
                found[key] = rows[0][0]
        return found

    def losses(self, *, undeclared: bool = False) -> list[Loss]:
        """Returns the byte ranges that the agent has declared lost or uncertain. undeclared:
        whether to return only the ranges that are in no delta yet, so that the audit does not know
        them.
        """
        statement = "SELECT * FROM losses"
        if undeclared:
            statement += " WHERE number IS NULL"
        return [
            Loss(
                source=Source(*row[1:5]),
                agent=self.agent,
                file=row[5],
                first=row[6],
                end=row[7],
                certainty=Certainty(row[8]),
                reason=row[9],
                from_bucket=row[10],
                to_bucket=row[11],
            )
            for row in self._rows(statement + " ORDER BY id")
        ]

    def outbox(self) -> list[Message]:
        """Returns the messages that no broker has acknowledged yet, in the order in which they were
        made."""
        rows = self._rows("SELECT id, number, file, value FROM outbox ORDER BY id")
        return [Message(*row) for row in rows]

    # --- checksums, and errors of a damaged database ------------------------------------------

    def _file(self, row: tuple[Any, ...]) -> TrackedFile:
        *values, crc = row
        if checksum(tuple(values)) != crc:
            raise self._damaged(f"the row of file {row[0]} does not have its checksum")
        return _tracked(values)

    def _intent(self, row: tuple[Any, ...]) -> Intent:
        *values, crc = row
        if checksum(tuple(values)) != crc:
            raise self._damaged(f"the row of intent {row[0]} does not have its checksum")
        return Intent(*values)

    def _rows(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._damage():
            return self._connection.execute(statement, parameters).fetchall()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise self._refused(error) from error

    @contextmanager
    def _damage(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._refused(error) from error

    def _refused(self, error: sqlite3.Error) -> SkidwayError:
        return _refusal(error, self._name, self.what_now)

    def _damaged(self, what: str) -> StateRefused:
        return _unusable(what, self._name, self.what_now)


Opened = TypeVar("Opened", bound=StateDatabase)


def open_state(directory: Path, *, create: bool = True) -> StateDatabase:
    """Opens the state in a directory that the caller has locked. create: whether to make a new
    state if there is none. Raises StateRefused if the state is missing, damaged or of another
    format, and SkidwayError if the file system refuses the access, has no space, or a new state
    cannot be made.
    """
    return open_as(StateDatabase, directory, create=create)


def open_as(kind: type[Opened], directory: Path, *, create: bool = True) -> Opened:
    """Opens a database as an object of the class `kind`. Apart from that, does the same as
    `open_state`."""
    path = directory / kind.file_name
    is_new = not os.path.lexists(path)
    if not is_new and not path.is_file():
        raise StateRefused(
            f"the state {path} is no file, or a link to a file that is not there; if it is on a "
            "disk that is not mounted, mount the disk"
        )
    if is_new:
        if Path(f"{path}-wal").exists():
            raise StateRefused(
                f"the state {path} is gone, but its log {path}-wal is there; {kind.what_now}"
            )
        if not create:
            raise StateRefused(f"there is no state {path}; the agent has not run with it yet")
        _create_file(path, kind.tables)
    wal_index.require_room(path)
    try:
        connection = sqlite3.connect(path, isolation_level=None, timeout=5)
    except sqlite3.Error as error:
        raise _refusal(error, str(path), kind.what_now) from error
    try:
        _check(connection, path, kind.what_now)
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        opened = kind(connection, str(path), is_new=is_new)
    except sqlite3.Error as error:
        connection.close()
        raise _refusal(error, str(path), kind.what_now) from error
    except SkidwayError:
        connection.close()
        raise
    wal_index.allocate(path.resolve())
    return opened


def create_tables(connection: sqlite3.Connection, machine: str, tables: str = TABLES) -> None:
    """Makes the tables of a new state, and stores a new agent id and the id of the machine on which
    the state may be used. tables: the SQL statements that create the tables."""
    connection.executescript(tables)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    first = {"agent": identity.new_id(), "machine": machine, "epoch": 1, "number": 0}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", list(first.items()))


def check_machine(state: StateDatabase, machine: str) -> None:
    """Raises StateRefused if the state was made on another machine."""
    if state.machine == machine:
        return
    adopt = invocation.of_this_process().command("agent state adopt")
    where = f"({state.machine}, here is {machine})"
    if machine.startswith(identity.HOST_NAMED):
        raise StateRefused(
            f"this state belongs to another machine {where}: {machine_id.MISSING}, so its host name"
            f" stands for it; {machine_id.ADVICE}. If the state was moved here for good, say so "
            f"with `{adopt}`, and never run both"
        )
    raise StateRefused(
        f"this state belongs to another machine {where}; if it was moved here for good, say so "
        f"with `{adopt}`, and never run both"
    )


def _create_file(path: Path, tables: str) -> None:
    """Makes the whole database under the name `path` + `.new`, and then renames it to `path`. So an
    incomplete database never has the name `path`.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        for leftover in (new, Path(f"{new}-wal"), Path(f"{new}-shm"), Path(f"{new}-journal")):
            leftover.unlink(missing_ok=True)
        connection = sqlite3.connect(new, isolation_level=None)
        connection.execute("PRAGMA synchronous = FULL")
        create_tables(connection, identity.machine_id(), tables)
        connection.close()
        os.rename(new, path)
        fsync_directory(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise SkidwayError(f"cannot create the state {path}: {error}") from error


def _check(connection: sqlite3.Connection, path: Path, what_now: str) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise StateRefused(f"the state {path} is no agent's database, or empty; {what_now}")
    if version != FORMAT:
        raise StateRefused(
            f"the state {path} has format {version}, this program knows {FORMAT}; "
            "run the program that wrote it"
        )
    verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if verdict != "ok":
        raise StateRefused(f"the state {path} is damaged: {verdict}; {what_now}")


def _tracked(values: list[Any]) -> TrackedFile:
    (
        file, serial, topic, topic_id, host, path, device, inode, fingerprint_length, fingerprint,
        begin, predecessor, predecessor_position, born_ns, location, meant, state, length,
        changed_ns, emptied, announced, announced_ms, position, prefix_crc, guard_length, guard_crc,
        marks, *tally,
    ) = values  # fmt: skip
    birth = Birth(
        file=file,
        serial=serial,
        topic=topic,
        topic_id=topic_id,
        host=host,
        path=path,
        key=FileKey(device, inode),
        fingerprint=Fingerprint(fingerprint_length, fingerprint),
        begin=begin,
        predecessor=predecessor,
        predecessor_position=predecessor_position,
        born_ns=born_ns,
    )
    point = Checkpoint(position, prefix_crc, Guard(guard_length, guard_crc), marks_of(marks))
    return TrackedFile(
        birth=birth,
        checkpoint=point,
        location=os.fsdecode(location),
        meant=os.fsdecode(meant),
        tally=Tally(*tally),
        state=FileState(state),
        announced=bool(announced),
        announced_ms=announced_ms,
        length=length,
        changed_ns=changed_ns,
        is_emptied=bool(emptied),
        read_position=position,
        read_crc=prefix_crc,
    )


def _unopened(row: tuple[Any, ...]) -> UnopenedFile:
    device, inode, size, changed_ns, born_ns, path, real_path, topic, topic_id, base, *rest = row
    key = FileKey(device, inode)
    found = Found(os.fsdecode(path), key, size, changed_ns, born_ns, os.fsdecode(real_path))
    base = None if base is None else os.fsdecode(base)
    begins, skip = rest
    return UnopenedFile(topic, topic_id, base, found, bool(begins), skip)


def _unbegun(row: tuple[Any, ...]) -> UnbegunFile:
    path, device, inode, size, changed_ns, born_ns, real_path, base = row
    key = FileKey(device, inode)
    found = Found(os.fsdecode(path), key, size, changed_ns, born_ns, os.fsdecode(real_path))
    return UnbegunFile(found, None if base is None else os.fsdecode(base))


def _refusal(error: sqlite3.Error, name: str, what_now: str) -> SkidwayError:
    """Returns the error to raise for an error of SQLite. Only if the database may be damaged, the
    message says what an operator can do with a damaged database (`what_now`)."""
    if _code(error) in _ENVIRONMENT:
        return SkidwayError(f"cannot use the state {name}: {error}")
    return _unusable(str(error), name, what_now)


def _unusable(what: str, name: str, what_now: str) -> StateRefused:
    return StateRefused(f"the state {name} cannot be used: {what}; {what_now}")


def _code(error: sqlite3.Error) -> int:
    """Returns SQLite's primary result code of the error."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
