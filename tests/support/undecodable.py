"""Record batches with a right CRC whose records nobody can decode."""

from __future__ import annotations

import google_crc32c
import numpy as np

from skidway.kafka.batch import CRC_START, HEADER_BYTES
from skidway.kafka.run_unpacking import HEADER


def sealed(raw: bytes, **changes: int) -> bytes:
    """Returns a batch with other fields in its header (named as in HEADER) and a right CRC."""
    header = np.frombuffer(raw[:HEADER_BYTES], HEADER).copy()
    for name, value in changes.items():
        header[name] = value
    changed = bytearray(header.tobytes() + raw[HEADER_BYTES:])
    crc = int(google_crc32c.value(bytes(changed[CRC_START:])))
    changed[CRC_START - 4 : CRC_START] = crc.to_bytes(4)
    return bytes(changed)


def filled(raw: bytes, filling: bytes = b"\xff") -> bytes:
    """Returns a batch that has this byte in place of its records, and a right CRC."""
    return sealed(raw[:HEADER_BYTES] + filling * (len(raw) - HEADER_BYTES))
