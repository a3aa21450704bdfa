"""The seals of one message, as columns. The module count_columns says why columns are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Self, overload

import numpy as np
import numpy.typing as npt

from skidway.audit.topic.count_columns import CHECKED_BYTES_MAX, YEAR_10000_MS
from skidway.audit.topic.field_bounds import NUMBERS, PARTITIONS, TIMES
from skidway.audit.topic.source_names import names_of, sources_of
from skidway.dataclass import dataclass
from skidway.kafka.source import Source

NEVER_SEALED: Final = 0
"""The value of `sealed_until` for a topic whose files the agent has found, but cannot read
completely yet."""

_LONG: Final = np.dtype("<i8")
_ROWS: Final = 3
_HIGHEST_END: Final = NUMBERS.stop >> 8 * (_LONG.itemsize - 1)
"""The highest byte of a number is less than this."""


@dataclass(frozen=True, slots=True)
class SealedTopic:
    """An agent's seal of one topic: the agent has counted all lines that the topic's files had at
    wall time `sealed_until` (ms), and the counts are in its deltas.

    If `sealed_until` is NEVER_SEALED, the seal confirms no lines, and only says that the agent has
    files of the topic. If it is negative, -T, no file has matched a source of the topic since T:
    the seal confirms only the lines of the time before T, and nobody knows of later lines. at: the
    number of the last delta that the agent had made when it noted `sealed_until`. offsets: for each
    partition, the last offset that was acknowledged to the agent. final: whether the agent sends
    nothing after this seal, because its host leaves for good; if so, `at` is the number of the
    agent's last delta.
    """

    source: Source
    sealed_until: int
    at: int
    offsets: tuple[tuple[int, int], ...] = ()
    final: bool = False


class SealColumns(Sequence[SealedTopic]):
    """An agent's seals of its topics, in arrays.

    names: the topics, in one text (see source_names). table: an array of shape (3, n):
    `sealed_until`, `at` and `final` of each topic. offsets: an array of shape (3, m): index of the
    topic, partition and offset. A `SealColumns` is equal to any other sequence of equal seals.
    """

    __slots__ = ("names", "offsets", "table")

    def __init__(
        self, names: str, table: npt.NDArray[np.int64], offsets: npt.NDArray[np.int64]
    ) -> None:
        self.names = names
        self.table = table
        self.offsets = offsets

    @classmethod
    def of(cls, topics: Iterable[SealedTopic]) -> SealColumns:
        """Puts seals into columns."""
        if isinstance(topics, SealColumns):
            return topics
        found = list(topics)
        rows = [(x.sealed_until, x.at, x.final) for x in found]
        offsets = [(index, *pair) for index, x in enumerate(found) for pair in x.offsets]
        return cls(names_of(x.source for x in found), _table(rows), _table(offsets))

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Reads the Avro record SealColumns. Raises ValueError if it is damaged."""
        return cls.from_bytes(record["sources"], record["table"], record["offsets"])

    @classmethod
    def from_bytes(cls, names: str, table: bytes, offsets: bytes) -> Self:
        """Reads the fields of the Avro record SealColumns. Raises ValueError if they are
        damaged."""
        found = cls(
            names,
            np.frombuffer(table, _LONG).reshape(_ROWS, -1),
            np.frombuffer(offsets, _LONG).reshape(_ROWS, -1),
        )
        count = len(sources_of(names))
        if len(found) != count:
            raise ValueError(f"{count} sources have {len(found)} seals")
        places = offsets[: 2 * found.offsets.shape[1] * _LONG.itemsize]
        are_places = _are_places_again if len(places) <= CHECKED_BYTES_MAX else _are_places
        if not are_places(places, count):
            raise ValueError(f"an offset names none of the {count} sources, or no partition")
        column = count * _LONG.itemsize
        if not _are_numbers(table[column : 2 * column] + offsets[len(places) :]):
            raise ValueError("a seal has a number or an offset that no program writes")
        until = found.table[0].tolist()
        if until and not (min(until) in TIMES and max(until) in TIMES):
            raise ValueError("a topic is sealed until a time too far from 1970")
        return found

    def to_record(self) -> dict[str, Any]:
        """The seals as a value of the Avro record SealColumns."""
        return {
            "sources": self.names,
            "table": self.table.astype(_LONG, copy=False).tobytes(),
            "offsets": self.offsets.astype(_LONG, copy=False).tobytes(),
        }

    def __len__(self) -> int:
        return int(self.table.shape[1])

    def __iter__(self) -> Iterator[SealedTopic]:
        offsets: dict[int, list[tuple[int, int]]] = {}
        for index, partition, offset in self.offsets.T.tolist():
            offsets.setdefault(index, []).append((partition, offset))
        for index, source in enumerate(sources_of(self.names)):
            sealed_until, at, final = self.table[:, index].tolist()
            yield SealedTopic(source, sealed_until, at, tuple(offsets.get(index, ())), bool(final))

    @overload
    def __getitem__(self, index: int) -> SealedTopic: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[SealedTopic, ...]: ...
    def __getitem__(self, index: int | slice) -> SealedTopic | tuple[SealedTopic, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))


def fileless_since(sealed_until: int) -> int | None:
    """Returns the time T for a `sealed_until` of -T (see `SealedTopic`); None if it is another
    time. Times beyond the year 9999 are damaged, and do not count."""
    return -sealed_until if -YEAR_10000_MS < sealed_until < NEVER_SEALED else None


def _are_places(places: bytes, count: int) -> bool:
    # negative numbers become very large
    indexes, partitions = np.frombuffer(places, _LONG).view(np.uint64).reshape(2, -1)
    return not len(indexes) or bool(
        indexes.max() < count and partitions.max() <= PARTITIONS.stop - 1
    )


_are_places_again = lru_cache(maxsize=1024)(_are_places)
"""Does the same as `_are_places`, but remembers the answers, because most seals of an agent have
the same indexes and partitions."""


def _are_numbers(column: bytes) -> bool:
    """Whether all integers of a column are NUMBERS. Looks only at their highest bytes."""
    return max(column[_LONG.itemsize - 1 :: _LONG.itemsize], default=0) < _HIGHEST_END


def _table(rows: Sequence[tuple[int, ...]]) -> npt.NDArray[np.int64]:
    return np.array(rows, _LONG).reshape(-1, _ROWS).T
