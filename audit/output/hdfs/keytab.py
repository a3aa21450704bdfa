"""Which principals a keytab has. The library that uses keytabs has one message for a file that is
missing, that is no keytab, and that has no key of the principal."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

from skidway.audit.output.hadoop_client import KEYTAB
from skidway.errors import ConfigurationRefused
from skidway.regular_file import read_regular

_VERSION: Final = b"\x05\x02"
_KEY: Final = ">IIBHH"
"""Type of the name, time, version of the key, type of the key, and its length."""
_SHOWN: Final = 5
"""An error names at most so many principals."""


def check(path: Path, principal: str) -> None:
    """Raises ConfigurationRefused if the file cannot be read, is no keytab, or has no key of the
    principal. If `principal` names no realm, any realm will do."""
    try:
        data = read_regular(path)
    except OSError as error:
        raise ConfigurationRefused(f"{KEYTAB}: cannot read {path}: {error.strerror}") from error
    try:
        found = principals(data)
    except (ValueError, struct.error) as error:
        raise ConfigurationRefused(f"{KEYTAB}: {path} is no keytab, or damaged") from error
    if not any(principal in (each, each.rpartition("@")[0]) for each in found):
        names = sorted({each.encode("unicode_escape").decode() for each in found})
        more = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
        others = f"only of {', '.join(names[:_SHOWN])}{more}" if names else "nor any other"
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
    while at < len(data):
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if at + abs(length) > len(data):
            raise ValueError("length")
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
    *_, length = struct.unpack_from(_KEY, entry, at)
    if not 0 < length <= len(entry) - at - struct.calcsize(_KEY):
        raise ValueError("key")
    return f"{'/'.join(parts[1:])}@{parts[0]}"
