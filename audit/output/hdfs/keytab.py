"""Which principals a keytab has. The library that uses keytabs has one message for a file that is
missing, that is no keytab, and that has no key of the principal."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from skidway.audit.output.hadoop_client import KEYTAB
from skidway.errors import ConfigurationRefused

_VERSION: Final = b"\x05\x02"
_BYTES_MAX: Final = 1 << 20


def check(path: Path, principal: str) -> None:
    """Raises ConfigurationRefused if the file cannot be read, is no keytab, or has no key of the
    principal. If `principal` names no realm, any realm will do."""
    try:
        with path.open("rb") as file:
            data = file.read(_BYTES_MAX)
    except OSError as error:
        raise ConfigurationRefused(f"{KEYTAB}: cannot read {path}: {error.strerror}") from error
    try:
        found = principals(data)
    except (ValueError, struct.error) as error:
        raise ConfigurationRefused(f"{KEYTAB}: {path} is no keytab") from error
    if not any(principal in (each, each.rpartition("@")[0]) for each in found):
        others = f"only of {', '.join(sorted({*found}))}" if found else "nor any other"
        raise ConfigurationRefused(f"{KEYTAB}: {path} has no key of {principal}, {others}")


def principals(data: bytes) -> list[str]:
    """Returns the principal of each key, with its realm. Raises ValueError or struct.error if the
    bytes are no keytab.

    The format is that of MIT's documentation, "Keytab file format", version 2: behind two bytes of
    version, entries, each behind its length; a negative length is that of a deleted entry.
    """
    if not data.startswith(_VERSION):
        raise ValueError("version")
    found, at = [], len(_VERSION)
    while at + 4 <= len(data):
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if length > 0:
            found.append(_principal(data[at : at + length]))
        at += abs(length)
    return found


def _principal(entry: bytes) -> str:
    (count,) = struct.unpack_from(">H", entry)
    at, parts = 2, []
    for _ in range(count + 1):  # the realm comes first
        (length,) = struct.unpack_from(">H", entry, at)
        parts.append(entry[at + 2 : at + 2 + length].decode())
        at += 2 + length
    return f"{'/'.join(parts[1:])}@{parts[0]}"
