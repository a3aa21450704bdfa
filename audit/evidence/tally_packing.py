"""Encodes the tallies of a bucket in few bytes.

All tiers mostly have the same counts for an agent. So the module stores the values of an agent's
first tally, and for its other tallies the differences from the previous tally, which are mostly 0.
Agents are stored by their small numbers (see agent_numbers), in ascending order, as differences
from the previous agent. A counter counts many agents in one delta, so the numbers of the other
tallies' first deltas are stored as differences from the previous tally of the same sender. Of
narrow checksums, only the 24 bits that are not 0 are stored.

Format: a CRC-32 of all that follows, because SQLite notices no changed bytes in a value; the
numbers of agents and of tallies, and whether the checksums are narrow; how many tallies each agent
has; the first tallies, column by column; the others, column by column, without the agents. Each of
these parts has a byte with the width of its numbers, a byte with their form, four bytes with its
length, and the numbers, compressed with zstd. In form 1, the lowest bytes of all numbers come
first, then the next bytes, and so on, because the highest bytes are mostly equal. In form 0, one
number comes after the other, which is smaller if few numbers are different. The length is 0 if all
numbers are 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import cramjam
import numpy as np

from skidway.audit.counts.checksum import NARROW_BITS
from skidway.audit.evidence.agent_numbers import AgentNumbers
from skidway.audit.evidence.tallies import (
    AGENT,
    CHECKSUM,
    FIRST,
    LAST,
    LINKS,
    SENDER,
    Int64s,
    TallyColumns,
    links_of_all,
)
from skidway.errors import StateRefused

_CRC_BYTES: Final = 4
_HEAD: Final = struct.Struct("<II?")
_PART: Final = struct.Struct("<B?I")
_WIDTHS: Final = (1, 2, 4, 8)
_COLUMNS: Final = LINKS + 1
_ASCENDING: Final = (AGENT, SENDER, FIRST)
"""In these columns, the value of an agent's first tally is stored as the difference from the value
of the previous agent's first tally.
"""

_LEVEL: Final = 1
_FINAL_LEVEL: Final = 9

_NARROW_SHIFT: Final = 64 - NARROW_BITS


def pack(tallies: TallyColumns, numbers: AgentNumbers) -> bytes:
    """The tallies as bytes."""
    found = tallies.table.copy()
    found[AGENT] = numbers.of(found[AGENT], found[SENDER])
    found = found[:, np.argsort(found[AGENT], kind="stable")]
    found[LINKS] -= links_of_all(found[LAST], np.zeros_like(found[LAST]))
    found[LAST] -= found[FIRST]
    if tallies.is_narrow:
        found[CHECKSUM] = found[CHECKSUM].view(np.uint64) >> np.uint64(_NARROW_SHIFT)
    is_first = np.diff(found[AGENT], prepend=-1) != 0
    firsts, others = found[:, is_first], _without_tally_before(found)[:, ~is_first]
    others[SENDER] = found[SENDER, ~is_first]
    others[FIRST] = _differences(found[FIRST, ~is_first], others[SENDER])
    for row in _ASCENDING:
        firsts[row, 1:] -= firsts[row, :-1].copy()
    places = np.flatnonzero(is_first)
    lengths = np.diff(places, append=found.shape[1])
    parts = [lengths, *firsts, *others[SENDER:]]
    head = _HEAD.pack(len(places), found.shape[1], tallies.is_narrow)
    packed = head + b"".join(_packed(part, is_final=tallies.is_narrow) for part in parts)
    return zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") + packed


def unpack(value: bytes, numbers: AgentNumbers) -> TallyColumns:
    """Reads the bytes that `pack` wrote. Raises StateRefused if they are damaged."""
    checksum, packed = value[:_CRC_BYTES], value[_CRC_BYTES:]
    if not packed or zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") != checksum:
        raise StateRefused(
            "The audit's store is damaged: the counts of a bucket are not those that were"
            " written. Delete the store; the collector then reads the audit topics again."
        )
    agents, tallies, is_narrow = _HEAD.unpack_from(packed)
    sizes = [agents] * (1 + _COLUMNS) + [tallies - agents] * (_COLUMNS - 1)
    lengths, *parts = _parts(packed, sizes)
    places = np.cumsum(lengths) - lengths
    is_first = np.zeros(tallies, bool)
    is_first[places] = True
    firsts = np.array(parts[:_COLUMNS])
    for row in _ASCENDING:
        np.cumsum(firsts[row], out=firsts[row])
    found = np.zeros((_COLUMNS, tallies), np.int64)
    found[SENDER:, ~is_first] = parts[_COLUMNS:]
    senders = found[SENDER].copy()
    numbered = _sums(found[FIRST, ~is_first], senders[~is_first])
    sums = np.cumsum(found, axis=1)
    found = sums + np.repeat(firsts - sums[:, places], lengths, axis=1)
    found[SENDER] = np.where(is_first, found[SENDER], senders)
    found[FIRST, is_first], found[FIRST, ~is_first] = firsts[FIRST], numbered
    found[LAST] += found[FIRST]
    found[LINKS] += links_of_all(found[LAST], np.zeros_like(found[LAST]))
    if is_narrow:
        found[CHECKSUM] <<= _NARROW_SHIFT
    found[AGENT] = numbers.agents(found[AGENT])
    return TallyColumns(found[:, np.lexsort((found[SENDER], found[AGENT]))], is_narrow)


def _without_tally_before(table: Int64s) -> Int64s:
    found = table.copy()
    found[:, 1:] -= table[:, :-1]
    return found


def _differences(values: Int64s, senders: Int64s) -> Int64s:
    """The values in the order of their senders, each as the difference from the value before."""
    return np.diff(values[np.argsort(senders, kind="stable")], prepend=0)


def _sums(differences: Int64s, senders: Int64s) -> Int64s:
    """The values whose `_differences` these are."""
    found = np.empty_like(differences)
    found[np.argsort(senders, kind="stable")] = np.cumsum(differences)
    return found


def _packed(part: Int64s, *, is_final: bool) -> bytes:
    """is_final: whether the bucket will hardly change any more, so that a search for the smallest
    form is worth its time."""
    least, most = int(part.min(initial=0)), int(part.max(initial=0))
    width = next(x for x in _WIDTHS if -(1 << 8 * x - 1) <= least and most < 1 << 8 * x - 1)
    if not least and not most:
        return _PART.pack(width, True, 0)
    numbers = part.astype(f"<i{width}")
    by_byte = numbers.view(np.uint8).reshape(-1, width).T.tobytes()
    data, level = {True: by_byte}, _LEVEL
    if is_final:
        data, level = {True: by_byte, False: numbers.tobytes()}, _FINAL_LEVEL
    packed = {form: bytes(cramjam.zstd.compress(x, level)) for form, x in data.items()}
    form = min(packed, key=lambda x: len(packed[x]))
    return _PART.pack(width, form, len(packed[form])) + packed[form]


def _parts(packed: bytes, sizes: list[int]) -> Iterator[Int64s]:
    at = _HEAD.size
    for size in sizes:
        width, is_by_byte, length = _PART.unpack_from(packed, at)
        at += _PART.size
        if not length:
            yield np.zeros(size, np.int64)
            continue
        data = bytes(cramjam.zstd.decompress(packed[at : at + length]))
        at += length
        if is_by_byte:
            data = np.frombuffer(data, np.uint8).reshape(width, size).T.tobytes()
        yield np.frombuffer(data, f"<i{width}").astype(np.int64)
