"""Chooses a share of records by a hash of their origins, and never by chance.

The hash is made from the hash that the audit uses for its checksums, and from the rule's name. So
if the agent sends records again, it chooses the same records; and two rules of one source choose
independently of each other.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from skidway.audit.counts.checksum import record_hash
from skidway.kafka.columns import Origins

_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def chosen(origins: Origins, name: str, kept: int, of: int) -> npt.NDArray[np.bool_]:
    """Returns which records a rule `sample` keeps: on average, `kept` of every `of` records. name:
    the rule's name."""
    hashes = record_hash(origins.agent, origins.file, origins.first, origins.length)
    mixed = hashes ^ np.uint64(_salt(name))
    mixed ^= mixed >> _SHIFTS[0]
    mixed *= _FIRST_FACTOR
    mixed ^= mixed >> _SHIFTS[1]
    mixed *= _SECOND_FACTOR
    mixed ^= mixed >> _SHIFTS[2]
    belongs: npt.NDArray[np.bool_] = mixed % np.uint64(of) < np.uint64(kept)
    return belongs


def _salt(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
