"""Opens SQLite databases of other programs to read them.

Whoever reads a database through SQLite may also write: SQLite rolls a transaction back that a crash
has left, deletes the files that its journal names, and makes `-wal` and `-shm` beside the database.
If the database is another user's, this user can prepare all that. So a process of root acts as this
user while SQLite opens files.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from skidway.regular_file import require_regular
from skidway.state_owner import acting_as, owner_of

_BESIDE = ("", "-wal", "-shm", "-journal")


def open_to_read(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Opens a database that exists. The connection commits nothing, and any thread may use it; only
    `execute` may be used for statements. timeout_s: how long a statement waits for a lock. Raises
    sqlite3.Error, and SkidwayError if root cannot act as the user of the database."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        factory=_connection_of(path),
    )


def _connection_of(path: Path) -> type[sqlite3.Connection]:
    owner = owner_of(path)

    class Connection(sqlite3.Connection):
        """SQLite opens and deletes files when it opens the database, when a statement begins and
        when the database is closed; the later steps of a statement use what is open."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            with acting_as(owner):
                _require_files(path)
                super().__init__(*args, **kwargs)
                super().execute("PRAGMA trusted_schema = OFF")
                if owner is not None:  # who may not use root's TMPDIR
                    super().execute("PRAGMA temp_store = MEMORY")

        def execute(self, *args: Any) -> sqlite3.Cursor:
            with acting_as(owner):
                return super().execute(*args)

        def close(self) -> None:
            with acting_as(owner):
                super().close()

    return Connection


def _require_files(path: Path) -> None:
    """SQLite would wait for somebody who writes into a named pipe."""
    real = os.path.realpath(path)  # beside which SQLite looks for the other files
    for suffix in _BESIDE:
        name = f"{real}{suffix}"
        try:
            require_regular(os.stat(name), name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise sqlite3.OperationalError(f"{name}: {error.strerror}") from error
