"""Computes the checksum of a set of records. The checksum does not depend on the order of the
records.

Each record has a 64-bit hash of its origin. The checksum of a set is the sum of these hashes modulo
2^64, as a signed long. If one record is lost and another record is doubled, the count stays the
same, but the checksum changes. The hash chains the finalizer of splitmix64 over the four fields of
the origin. All arithmetic is modulo 2^64:

    mix(z) = z ^= z >> 30;  z *= 0xBF58476D1CE4E5B9;  z ^= z >> 27;  z *= 0x94D049BB133111EB;
             z ^= z >> 31
    h = 0;  for x in agent, file, first, length:  h = mix((h ^ x) + 0x9E3779B97F4A7C15)

A checksum can be made *narrow*: it is multiplied by 2^40, modulo 2^64. The result depends only on
the low 24 bits of the checksum. The sum of narrow checksums is the narrow checksum of the sum, so
everything that compares sums of checksums works with narrow checksums too.

The hash is part of the format of audit messages and manifests, so it must never change. Tests
compare it with fixed values. The checksum detects faults, but not manipulation.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))

NARROW_BITS = 24
"""A narrow checksum depends only on this many low bits of the original checksum."""

_MODULUS = 1 << 64
_SIGN = 1 << 63
_NARROW_SHIFT = 64 - NARROW_BITS
_NARROW_MASK = (1 << NARROW_BITS) - 1


def record_hash(agent: Int64s, file: Int64s, first: Int64s, length: Int64s) -> UInt64s:
    """Returns the hash of each record's origin. All four arrays have the same length."""
    return _chain(_chain(_file_hash(agent, file), first), length)


def total(hashes: UInt64s) -> int:
    """Returns the checksum of records, that is, the sum of their hashes as a signed long."""
    return signed(int(hashes.sum(dtype=np.uint64)))


def add(left: int, right: int) -> int:
    """Returns the checksum of two sets of records together. No record may be in both sets."""
    return signed(left + right)


def narrow(checksum: int) -> int:
    """Makes a checksum narrow: the result depends only on its low 24 bits (see the module's
    docstring)."""
    return signed(checksum << _NARROW_SHIFT)


def brief(checksum: int) -> int:
    """Returns the low 24 bits of the original checksum, even if the checksum was made narrow. So a
    report that shows these bits does not change if the checksum is made narrow. The function treats
    every checksum whose low 24 bits are 0 as narrow. One of 16 million original checksums also ends
    with 24 bits that are 0; for this checksum, the function returns wrong bits."""
    low = checksum & _NARROW_MASK
    return low or checksum >> _NARROW_SHIFT & _NARROW_MASK


def signed(number: int) -> int:
    """Turns any integer, modulo 2^64, into a signed long."""
    return (number + _SIGN) % _MODULUS - _SIGN


def mixed(numbers: UInt64s) -> UInt64s:
    """Returns the hash of each number z: mix(z + 0x9E3779B97F4A7C15)."""
    found = numbers + _GAMMA
    found ^= found >> _SHIFTS[0]
    found *= _FIRST_FACTOR
    found ^= found >> _SHIFTS[1]
    found *= _SECOND_FACTOR
    found ^= found >> _SHIFTS[2]
    return found


def _file_hash(agent: Int64s, file: Int64s) -> UInt64s:
    """Returns the part of the hash that comes from agent and file. The function computes this part
    once for each run of records of one file."""
    count = len(agent)
    if count == 0:
        return np.zeros(0, np.uint64)
    changed = (agent[1:] != agent[:-1]) | (file[1:] != file[:-1])
    begins = np.concatenate(([0], np.flatnonzero(changed) + 1))
    hashes = _chain(_chain(np.zeros(len(begins), np.uint64), agent[begins]), file[begins])
    return np.repeat(hashes, np.diff(begins, append=count))


def _chain(hashes: UInt64s, field: Int64s) -> UInt64s:
    return mixed(hashes ^ np.ascontiguousarray(field, np.int64).view(np.uint64))
