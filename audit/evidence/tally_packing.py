"""Encodes the tallies of a bucket in few bytes.

All tiers mostly have the same counts for an agent. So the module stores the values of an agent's
first tally, and for its further tallies the differences from the previous tally, which are mostly
0. Two values of the further tallies are stored in another way. The sender of an agent's second,
third, ... tally is stored as the difference from the sender of the previous agent's second, third,
... tally, because both are mostly the same counter. The number of the first delta (`first`) is
stored as the difference from the previous tally of the same sender, because a counter counts many
agents in one delta. Before any of these differences are computed, an agent's own sender is replaced
by 0, and the numbers of the agent's deltas are replaced by their differences from a base (see
number_bases). Agents are stored by their small numbers (see agent_numbers), in ascending order, as
differences from the previous agent. Of narrow checksums, only the 24 bits that can differ from 0
are stored.

Format: a CRC-32 of all that follows, because SQLite notices no changed bytes in a value; how many
agents and tallies there are, whether the checksums are narrow, and the id of the base, or 0; then
several arrays of numbers. The first array says how many tallies each agent has. The next arrays are
the fields of the agents' first tallies, and the last arrays are the fields of the other tallies,
without the agents.

An array is stored as a byte with the width of its numbers, a byte with their form, four bytes with
the length of the compressed numbers, and the compressed numbers. In form 1, the lowest bytes of all
numbers come first, then the next bytes, and so on, because the highest bytes are mostly equal. In
form 0, one number comes after the other. Form 0 is smaller if many numbers are repeated. The length
is 0 if all numbers are 0. If the checksums are narrow, the numbers are compressed with brotli,
because such a bucket hardly changes any more, and brotli needs 5 % less space than zstd. If the
checksums are not narrow, the numbers are compressed with zstd, which is faster.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

import cramjam
import numpy as np
import numpy.typing as npt

from skidway.audit.counts.checksum import NARROW_BITS
from skidway.audit.evidence.agent_numbers import AgentNumbers
from skidway.audit.evidence.guarded import guarded, unguarded
from skidway.audit.evidence.number_bases import NO_BASE, NumberBase
from skidway.audit.evidence.tallies import (
    AGENT,
    CHECKSUM,
    COUNT,
    FIRST,
    LAST,
    LINKS,
    SENDER,
    Int64s,
    TallyColumns,
    links_of_all,
)

Bools = npt.NDArray[np.bool_]

_HEAD: Final = struct.Struct("<II?q")
_PART: Final = struct.Struct("<B?I")
_WIDTHS: Final = (1, 2, 4, 8)
_ZEROS: Final = _PART.pack(1, True, 0)
_COLUMNS: Final = LINKS + 1
_ASCENDING: Final = (AGENT, SENDER, FIRST)
"""In these columns, the value of an agent's first tally is stored as the difference from the value
of the previous agent's first tally.
"""

OWN: Final = 0
"""In packed tallies, this number stands for the agent itself as a sender. The base (see
number_bases) has the id that the number replaces. The number cannot be confused with another
sender, because the ledger gives no sender the id 0.
"""

_ZSTD_LEVEL: Final = 1
_BROTLI_LEVEL: Final = 5

_NARROW_SHIFT: Final = 64 - NARROW_BITS


def pack(tallies: TallyColumns, numbers: AgentNumbers, base: NumberBase = NO_BASE) -> bytes:
    """Encodes the tallies as bytes. base: the base of the bucket's hour, from which the numbers of
    agents' deltas are stored as differences (see number_bases); with NO_BASE, the numbers are
    stored as they are.
    """
    table = tallies.table
    begins = tallies.begins
    numbered = numbers.of(table[AGENT, begins], table[SENDER, begins])
    order = np.argsort(numbered)
    lengths = np.diff(begins, append=table.shape[1])[order]
    places, is_first = _places(lengths)
    rows = np.repeat(begins[order] - places, lengths) + np.arange(table.shape[1])
    senders = table[SENDER, rows]
    agents = np.repeat(numbered[order], lengths)
    own = base.own(agents, senders)
    keys = {SENDER: _ranks(places, lengths)[~is_first], FIRST: senders[~is_first]}
    firsts, others = [numbered[order]], []
    for row in range(SENDER, _COLUMNS):
        column = _stored(row, tallies)[rows]
        if row == SENDER:
            column[own] = OWN
        elif row == FIRST:
            column[own] -= base.numbers[agents[own]]
        firsts.append(column[is_first])
        others.append(_differences(column, is_first, keys.get(row)))
    for row in _ASCENDING:
        firsts[row] = _steps(firsts[row])
    head = _HEAD.pack(len(lengths), table.shape[1], tallies.is_narrow, base.id)
    parts = [lengths, *firsts, *others]
    packed = head + b"".join(_packed(part, is_final=tallies.is_narrow) for part in parts)
    return guarded(packed)


def unpack(value: bytes, numbers: AgentNumbers) -> TallyColumns:
    """Reads the bytes that `pack` wrote. Raises StateRefused if they are damaged."""
    packed = unguarded(value)
    agent_count, tallies, is_narrow, base_id = _HEAD.unpack_from(packed)
    base = numbers.bases.of(base_id)
    sizes = [agent_count] * (1 + _COLUMNS) + [tallies - agent_count] * (_COLUMNS - 1)
    lengths, *parts = _parts(packed, sizes, is_final=is_narrow)
    firsts, others = parts[:_COLUMNS], parts[_COLUMNS:]
    for row in _ASCENDING:
        firsts[row] = np.cumsum(firsts[row])
    places, is_first = _places(lengths)
    keys = _ranks(places, lengths)[~is_first]
    senders = _column(firsts[SENDER], _sums(others[0], keys), is_first)
    agents = np.repeat(firsts[AGENT], lengths)
    own = np.flatnonzero(senders == OWN) if base.id else np.empty(0, np.int64)
    senders[own] = base.senders[agents[own]]
    ids = numbers.agents(firsts[AGENT])
    order = np.argsort(ids)
    begins, counts = places[order], lengths[order]
    rows = np.repeat(begins - _places(counts)[0], counts) + np.arange(tallies)
    found = np.empty((_COLUMNS, tallies), np.int64)
    found[AGENT], found[SENDER] = np.repeat(ids[order], counts), senders[rows]
    for row in range(COUNT, _COLUMNS):
        differences = others[row - SENDER]
        if row == FIRST:
            column = _column(firsts[row], _sums(differences, senders[~is_first]), is_first)
            column[own] += base.numbers[agents[own]]
            found[row] = column[rows]
        elif differences.any():
            column = _column(firsts[row], differences, is_first)
            sums = np.cumsum(column)
            column = sums - np.repeat(sums[places] - firsts[row], lengths)
            found[row] = column[rows]
        else:
            found[row] = np.repeat(firsts[row][order], counts)
    found[LAST] += found[FIRST]
    found[LINKS] += links_of_all(found[LAST], np.zeros_like(found[LAST]))
    if is_narrow:
        found[CHECKSUM] <<= _NARROW_SHIFT
    return TallyColumns(found, is_narrow)


def _places(lengths: Int64s) -> tuple[Int64s, Bools]:
    """Returns the index of each agent's first tally, and for each tally whether it is the first of
    its agent. lengths: how many tallies each agent has."""
    ends = np.cumsum(lengths)
    places = ends - lengths
    is_first = np.zeros(int(ends[-1]) if len(ends) else 0, np.bool_)
    is_first[places] = True
    return places, is_first


def _stored(row: int, tallies: TallyColumns) -> Int64s:
    """Returns one field of all tallies, in the form from which `_differences` computes what is
    stored. Two fields get a form in which they are mostly 0: `last` becomes its difference from
    `first`, and `links` becomes its difference from the value that `links` has if no delta of the
    chain is missing. row: the field's row in the table."""
    found: Int64s = tallies.table[row]
    if row == LAST:
        found = found - tallies.table[FIRST]
    elif row == LINKS:
        last = tallies.table[LAST]
        found = found - links_of_all(last, np.zeros_like(last))
    elif row == CHECKSUM and tallies.is_narrow:
        found = (found.view(np.uint64) >> np.uint64(_NARROW_SHIFT)).view(np.int64)
    return found


def _ranks(places: Int64s, lengths: Int64s) -> Int64s:
    """Returns, for each tally, how many tallies of the same agent come before it. places, lengths:
    see `_places`."""
    ranks: Int64s = np.arange(int(lengths.sum())) - np.repeat(places, lengths)
    return ranks


def _differences(column: Int64s, is_first: Bools, keys: Int64s | None) -> Int64s:
    """Returns the values of the second and further tallies of all agents, in the form in which they
    are stored. Each value is stored as its difference from the value of the previous tally with the
    same key. If `keys` is None, it is the difference from the value of the previous tally.
    """
    if keys is None:
        return _steps(column)[~is_first]
    return _steps(column[~is_first][_order(keys)])


def _steps(values: Int64s) -> Int64s:
    """Returns the first value, and the difference of each further value from the previous one. (For
    short columns, np.diff with `prepend` takes several times as long.)"""
    found = values.copy()
    found[1:] -= values[:-1]
    return found


def _order(keys: Int64s) -> Int64s:
    """Returns the indexes that sort the keys. Equal keys keep their order."""
    small = keys.astype(np.uint16)  # NumPy sorts numbers of 16 bits twice as fast
    return np.argsort(small if np.array_equal(small, keys) else keys, kind="stable")


def _column(firsts: Int64s, others: Int64s, is_first: Bools) -> Int64s:
    found = np.empty(len(is_first), np.int64)
    found[is_first], found[~is_first] = firsts, others
    return found


def _sums(differences: Int64s, keys: Int64s) -> Int64s:
    """Returns the values from which `_differences` computed these differences. keys: the key of
    each tally."""
    found = np.empty_like(differences)
    found[_order(keys)] = np.cumsum(differences)
    return found


def _packed(part: Int64s, *, is_final: bool) -> bytes:
    """Encodes one array (see the module's docstring). is_final: whether the bucket will hardly
    change any more, so that a search for the smallest form is worth its time."""
    if not part.any():
        return _ZEROS
    least, most = int(part.min()), int(part.max())
    width = next(x for x in _WIDTHS if -(1 << 8 * x - 1) <= least and most < 1 << 8 * x - 1)
    numbers = part.astype(f"<i{width}")
    data = {True: numbers.view(np.uint8).reshape(-1, width).T.tobytes()}
    if is_final:
        data[False] = numbers.tobytes()
    packed = {form: _compressed(x, is_final=is_final) for form, x in data.items()}
    form = min(packed, key=lambda x: len(packed[x]))
    return _PART.pack(width, form, len(packed[form])) + packed[form]


def _compressed(data: bytes, *, is_final: bool) -> bytes:
    if is_final:
        return bytes(cramjam.brotli.compress(data, _BROTLI_LEVEL))
    return bytes(cramjam.zstd.compress(data, _ZSTD_LEVEL))


def _parts(packed: bytes, sizes: list[int], *, is_final: bool) -> Iterator[Int64s]:
    at, codec = _HEAD.size, cramjam.brotli if is_final else cramjam.zstd
    for size in sizes:
        width, is_by_byte, length = _PART.unpack_from(packed, at)
        at += _PART.size
        if not length:
            yield np.zeros(size, np.int64)
            continue
        data = bytes(codec.decompress(packed[at : at + length]))
        at += length
        if is_by_byte:
            data = np.frombuffer(data, np.uint8).reshape(width, size).T.tobytes()
        yield np.frombuffer(data, f"<i{width}").astype(np.int64)
