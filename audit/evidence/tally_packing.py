"""Encodes the tallies of a bucket in few bytes.

All tiers mostly have the same counts for an agent. So the module stores the values of an agent's
first tally, and for its other tallies the differences from the previous tally, which are mostly 0.
Agents are stored by their small numbers (see agent_numbers), in ascending order, as differences
from the previous agent.

The format begins with a CRC-32 of everything that follows, because SQLite does not notice changed
bytes in a value. Then come the number of agents and the number of tallies, how many tallies each
agent has, the first tallies of all agents, column by column, and all other tallies, column by
column, without the column of agents. Each of these parts has a byte with the width of its numbers,
four bytes with its length, and the numbers, compressed with zstd. The length is 0 if all numbers
are 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import cramjam
import numpy as np

from skidway.audit.evidence.agent_numbers import AgentNumbers
from skidway.audit.evidence.tallies import (
    AGENT,
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
_COUNTS: Final = struct.Struct("<II")
_PART: Final = struct.Struct("<BI")
_WIDTHS: Final = (1, 2, 4, 8)
_COLUMNS: Final = LINKS + 1
_ASCENDING: Final = (AGENT, SENDER, FIRST)
"""In these columns, the value of an agent's first tally is stored as the difference from the value
of the previous agent's first tally.
"""

_LEVEL: Final = 1


def pack(tallies: TallyColumns, numbers: AgentNumbers) -> bytes:
    """The tallies as bytes."""
    found = tallies.table.copy()
    found[AGENT] = numbers.of(found[AGENT])
    found = found[:, np.argsort(found[AGENT], kind="stable")]
    found[LINKS] -= links_of_all(found[LAST], np.zeros_like(found[LAST]))
    found[LAST] -= found[FIRST]
    is_first = np.diff(found[AGENT], prepend=-1) != 0
    firsts, others = found[:, is_first], _without_tally_before(found)[:, ~is_first]
    others[SENDER] = found[SENDER, ~is_first]
    for row in _ASCENDING:
        firsts[row, 1:] -= firsts[row, :-1].copy()
    places = np.flatnonzero(is_first)
    lengths = np.diff(places, append=found.shape[1])
    parts = [lengths, *firsts, *others[SENDER:]]
    packed = _COUNTS.pack(len(places), found.shape[1]) + b"".join(map(_packed, parts))
    return zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") + packed


def unpack(value: bytes, numbers: AgentNumbers) -> TallyColumns:
    """Reads the bytes that `pack` wrote. Raises StateRefused if they are damaged."""
    checksum, packed = value[:_CRC_BYTES], value[_CRC_BYTES:]
    if not packed or zlib.crc32(packed).to_bytes(_CRC_BYTES, "little") != checksum:
        raise StateRefused(
            "The audit's store is damaged: the counts of a bucket are not those that were"
            " written. Delete the store; the collector then reads the audit topics again."
        )
    agents, tallies = _COUNTS.unpack_from(packed)
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
    sums = np.cumsum(found, axis=1)
    found = sums + np.repeat(firsts - sums[:, places], lengths, axis=1)
    found[SENDER] = np.where(is_first, found[SENDER], senders)
    found[LAST] += found[FIRST]
    found[LINKS] += links_of_all(found[LAST], np.zeros_like(found[LAST]))
    found[AGENT] = numbers.agents(found[AGENT])
    return TallyColumns(found[:, np.lexsort((found[SENDER], found[AGENT]))])


def _without_tally_before(table: Int64s) -> Int64s:
    found = table.copy()
    found[:, 1:] -= table[:, :-1]
    return found


def _packed(part: Int64s) -> bytes:
    least, most = int(part.min(initial=0)), int(part.max(initial=0))
    width = next(x for x in _WIDTHS if -(1 << 8 * x - 1) <= least and most < 1 << 8 * x - 1)
    if not least and not most:
        return _PART.pack(width, 0)
    data = bytes(cramjam.zstd.compress(part.astype(f"<i{width}").tobytes(), _LEVEL))
    return _PART.pack(width, len(data)) + data


def _parts(packed: bytes, sizes: list[int]) -> Iterator[Int64s]:
    at = _COUNTS.size
    for size in sizes:
        width, length = _PART.unpack_from(packed, at)
        at += _PART.size
        if not length:
            yield np.zeros(size, np.int64)
            continue
        data = bytes(cramjam.zstd.decompress(packed[at : at + length]))
        at += length
        yield np.frombuffer(data, f"<i{width}").astype(np.int64)
