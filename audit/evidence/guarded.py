"""Guards bytes in the store with a CRC-32, because SQLite notices no changed bytes in a value. Also
makes the error for a damaged store.
"""

from __future__ import annotations

import zlib
from typing import Final

from skidway.errors import StateRefused

_CRC_BYTES: Final = 4


def guarded(packed: bytes) -> bytes:
    """Returns the CRC-32 of the bytes, followed by the bytes themselves."""
    return zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") + packed


def unguarded(value: bytes) -> bytes:
    """Returns the bytes that were given to `guarded`. Raises StateRefused if they have changed."""
    checksum, packed = value[:_CRC_BYTES], value[_CRC_BYTES:]
    if not packed or zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") != checksum:
        raise damaged("the counts of a bucket are not those that were written")
    return packed


def damaged(what: str) -> StateRefused:
    """Returns the error that says what is damaged in the store, and what an operator can do."""
    return StateRefused(
        f"The audit's store is damaged: {what}. Delete the store; the collector then reads the"
        " audit topics again."
    )
