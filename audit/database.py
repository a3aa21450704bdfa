"""SQLite as this package uses it: one file, one writer, durable at every commit.

WAL with synchronous=FULL: a committed transaction survives a power cut, and readers never wait for
the writer. A database that is damaged or of another version is refused, never started over.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skidway.errors import StateRefused

BUSY_TIMEOUT_S = 10.0
IN_MEMORY = ":memory:"


def open_database(path: Path | str, schema: str, version: int) -> sqlite3.Connection:
    """Opens the database, or makes it. Transactions are begun by `transaction` only.

    Raises StateRefused when the file is no such database, damaged, or of another version.
    """
    try:
        connection = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        _check(connection, path, schema, version)
    except sqlite3.Error as error:
        raise StateRefused(f"The database {path} cannot be used: {error}.") from error
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All of it or nothing; durable when the block has ended."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection, path: Path | str, schema: str, version: int) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found == 0:
        with transaction(connection):
            for statement in schema.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version}")
    elif found != version:
        raise StateRefused(
            f"The database {path} has format {found}, but this version reads format {version}."
        )
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StateRefused(f"The database {path} is damaged: {verdict}.")
