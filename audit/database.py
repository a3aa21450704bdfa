"""Opens SQLite databases for this package. Each database has one file and one writer, and is
durable at every commit.

The databases use WAL with synchronous=FULL, so a committed transaction survives a power cut, and
readers never wait for the writer. The program refuses a database that is damaged or has another
version, and never replaces it by an empty database. If a database cannot grow because the disk is
full, the program ends with an error message. The last committed transaction stays in the database.
When the program starts again, it rereads the messages or records that this transaction does not
cover.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skidway import wal_index
from skidway.database_reader import open_to_read
from skidway.errors import SkidwayError, StateRefused

BUSY_TIMEOUT_S = 10.0
IN_MEMORY = ":memory:"
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
"""The least and the greatest number that SQLite stores."""

_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY)

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class DatabaseFailed(SkidwayError):
    """The database cannot be read or written now. Its last transaction stays committed."""


def open_database(
    path: Path | str, schema: str, version: int, *, only_read: bool = False
) -> sqlite3.Connection:
    """Opens the database, or creates it with the statements `schema`. A statement outside of
    `transaction` is committed at once. only_read: opens a database that exists, and that may be
    another user's, to read it.

    Raises StateRefused if the file cannot be opened, is not an SQLite database, is damaged, or has
    another version than `version`. Raises DatabaseFailed if the disk is full or broken, if the file
    is read-only, or if another connection locks the database for longer than BUSY_TIMEOUT_S.
    """
    if path != IN_MEMORY:
        _require_room(Path(path))
    try:
        connection = open_to_read(Path(path), BUSY_TIMEOUT_S) if only_read else _to_write(path)
        with failures(path):
            _check(connection, path, schema, version, may_create=not only_read)
        if not only_read:  # the file of another user may pretend any size
            wal_index.allocate(Path(path).resolve())
    except sqlite3.Error as error:
        raise StateRefused(f"The database {path} cannot be used: {error}.") from error
    return connection


@contextmanager
def failures(path: Path | str) -> Iterator[None]:
    """Raises StateRefused if SQLite reports in the `with` block that the database is damaged.
    Raises DatabaseFailed if SQLite cannot use the disk (for example, because the disk is full), or
    if another connection locks the database. Does not change other errors.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits only add detail
        if code in _DAMAGED:
            raise StateRefused(f"The database {path} is damaged: {error}.") from error
        if code not in _NO_ROOM:
            raise
        raise _failed(path, error) from error


def storable(number: int) -> int:
    """Returns the number that SQLite can store (64 bits) and that is nearest to this number. SQLite
    can store every number of a message, but perhaps not a sum or a difference of such numbers."""
    return max(LEAST, min(number, GREATEST))


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Commits all statements of the `with` block, or none of them. When the block has ended, the
    committed statements are durable."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk, SQLite may have rolled back already
            connection.execute("ROLLBACK")
        raise


def _to_write(path: Path | str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    with failures(path):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _require_room(path: Path) -> None:
    try:
        wal_index.require_room(path)
    except wal_index.NoRoom as error:
        raise _failed(path, error) from error


def _failed(path: Path | str, error: Exception) -> DatabaseFailed:
    return DatabaseFailed(
        f"The database {path} cannot be used now: {error}. Nothing is lost: make room, or"
        " repair the disk, and start the program again; it goes on after its last transaction."
    )


def _check(
    connection: sqlite3.Connection, path: Path | str, schema: str, version: int, *, may_create: bool
) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found == 0 and may_create:
        _create(connection, schema, version)
    elif found != version:
        raise StateRefused(
            f"The database {path} has format {found}, but this version reads format {version}."
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StateRefused(f"The database {path} is damaged: {verdict}.")


def _create(connection: sqlite3.Connection, schema: str, version: int) -> None:
    with transaction(connection):
        for statement in schema.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")
