"""Opens files that this process did not make itself.

Where a file is expected, somebody may have put a named pipe, and whoever opens a pipe waits until
somebody writes into it.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO


def open_regular(path: str | Path) -> IO[bytes]:
    """Opens a file to read its bytes, without waiting. Raises OSError; also for what is no regular
    file: IsADirectoryError for a directory."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    file = os.fdopen(os.open(path, flags), "rb")
    try:
        require_regular(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def read_regular(path: str | Path) -> bytes:
    """Returns the bytes of a file. Raises the errors of `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def require_regular(status: os.stat_result, path: str | Path) -> None:
    """Raises OSError if this is not the status of a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "It is not a regular file", str(path))
