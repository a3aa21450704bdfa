"""Reads the files that sources name: schemas and keys.

A team that may write a file of `sources.dir` could name a file that only the agent may read, or put
a link to it where its rule allows a file; the content would then show in rows, in the registry, or
in errors. So what such a file names must belong to the same owner, which gives nothing away. This
is judged on what is open, so nobody can exchange it meanwhile. Nothing is waited for, and no more
is read than a limit.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final

from skidway.agent.settings import SourceSettings
from skidway.agent.shaping import pseudonyms
from skidway.errors import ConfigurationRefused
from skidway.regular_file import open_regular, require_regular
from skidway.text_file import NotUtf8, decoded
from skidway.ways import way

SCHEMA_BYTES_MAX: Final = 1 << 20

Read = Callable[[Path, int], bytes]
"""Returns the bytes of a file that may have so many. Raises OSError."""


def with_named(source: SourceSettings, folder: Path, read: Read) -> SourceSettings:
    """Returns the source with the content of its schema file, takes its key, and makes their paths
    absolute: a relative path begins at `folder`. Raises ConfigurationRefused."""
    found: dict[str, Any] = {}
    if source.schema_file is not None:
        path = folder / source.schema_file
        found = {"schema": str(path), "schema_text": schema_text(path, read)}
    if source.hash_key_location is not None:
        path = folder / source.hash_key_location
        found["hash_key_location"] = path
        data = _content("hash.key.location", path, read, pseudonyms.FILE_BYTES_MAX)
        pseudonyms.take_key(path, data)
    return replace(source, **found)


def schema_text(path: Path, read: Read) -> str:
    """Returns the text of a schema file. Raises ConfigurationRefused."""
    try:
        return decoded(_content("schema", path, read, SCHEMA_BYTES_MAX))
    except NotUtf8 as error:
        raise ConfigurationRefused(f"schema: {path}: {error}") from error


def open_by_owner(path: Path) -> IO[bytes]:
    """Opens a file if each link that leads to it belongs to root, to this user, or to the owner of
    the file. Raises OSError."""
    with way(str(path.absolute())) as found:
        status = found.end.status
        require_regular(status, path)
        for link in found.end.links:
            if link.owner not in (0, os.geteuid(), status.st_uid):
                said = f"The link {link.path} of user {link.owner} leads to a file of another user"
                raise PermissionError(errno.EPERM, said, str(path))
        # what was judged, whatever is at the path by now
        return open_regular(f"/proc/self/fd/{found.descriptor}")


def read_any(path: Path, bytes_max: int) -> bytes:
    """Reads a file that the agent's own configuration names, whoever owns it. Raises OSError."""
    return read_named(path, None, bytes_max)


def trusted_owners(owner: int) -> frozenset[int]:
    """Returns to whom a file must belong that a file of this user names."""
    own = frozenset({0, os.geteuid()})
    return own if owner in own else frozenset({owner})


def read_named(path: Path, owners: Collection[int] | None, bytes_max: int) -> bytes:
    """Returns the bytes of a file. owners: to whom it must belong; None if that does not matter.
    Raises OSError."""
    try:
        data = _read(path, bytes_max) if owners is None else _judged(path, owners, bytes_max)
    except ValueError as error:  # NUL, or half of a surrogate pair
        raise OSError(errno.EINVAL, "No file has such a path", str(path)) from error
    if len(data) > bytes_max:
        raise OSError(errno.EFBIG, f"It has more than {bytes_max:,} bytes", str(path))
    return data


def _content(key: str, path: Path, read: Read, bytes_max: int) -> bytes:
    try:
        return read(path, bytes_max)
    except OSError as error:
        reason = error.strerror or str(error)
        reason = reason[:1].lower() + reason[1:]
        raise ConfigurationRefused(f"{key}: cannot read {path.absolute()}: {reason}") from error


def _read(path: Path, bytes_max: int) -> bytes:
    with open_regular(path) as file:
        return file.read(bytes_max + 1)


def _judged(path: Path, owners: Collection[int], bytes_max: int) -> bytes:
    with open_by_owner(path) as file:
        owner = os.fstat(file.fileno()).st_uid
        if owner not in owners:
            whose = " or ".join(str(each) for each in sorted(owners))
            said = f"It belongs to user {owner}; what is named here must belong to user {whose}"
            raise PermissionError(errno.EPERM, said, str(path))
        return file.read(bytes_max + 1)
