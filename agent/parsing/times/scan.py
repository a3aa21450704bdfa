"""A column of texts as a matrix of characters, which the steps of a format read from left to right.

As long as the next directive begins at the same position in all rows, the position is one number.
If the positions differ, there is one number per row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skidway.dataclass import dataclass

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

WIDTH_MAX: Final = 80
"""The most bytes that a time may have. A longer value is not a time."""

MARGIN: Final = 24
"""More characters than any step looks ahead."""


@dataclass(slots=True)
class Scan:
    """The position (`at`) at which the next step reads, and the values that the steps have found in
    each row so far. good: which rows fit the format so far. `at` is one position if it is the same
    in all rows, and otherwise has a position for each row."""

    matrix: Bytes  # its shape: (greatest width + a margin of zeros) x rows
    width: Int64s  # bytes of each row
    good: Bools = field(init=False)
    at: int | Int64s = 0
    found: dict[str, Int64s] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.good = self.width > 0

    @property
    def rows(self) -> int:
        """How many texts there are."""
        return len(self.width)

    @property
    def is_at_end(self) -> Bools:
        """Which rows are read to their end."""
        ends: Bools = self.width == self.at
        return ends

    def char(self, ahead: int | Int64s = 0) -> Bytes:
        """Returns a character of each row: the one that is `ahead` characters after the
        position."""
        place = self.at + ahead
        if isinstance(place, int):
            same: Bytes = self.matrix[min(place, len(self.matrix) - 1)]
            return same
        chars: Bytes = self.matrix[np.minimum(place, len(self.matrix) - 1), np.arange(self.rows)]
        return chars

    def digit(self, ahead: int | Int64s = 0) -> Bytes:
        """Returns the digit of each row at this place; more than 9 if it is no digit."""
        return self.char(ahead) - np.uint8(48)

    def move(self, used: int | Int64s) -> None:
        """Moves the position in each row by `used` characters. If all rows move by the same number
        of characters, `at` (the position) stays one number for all rows.
        """
        ahead = self.at + (used if isinstance(self.at, np.ndarray) else one_if_equal(used))
        last = len(self.matrix) - MARGIN
        self.at = min(ahead, last) if isinstance(ahead, int) else np.minimum(ahead, last)

    def get(self, name: str) -> Int64s:
        """Returns what the steps have found under a name; 0 in each row if they found nothing."""
        return self.found[name] if name in self.found else np.zeros(self.rows, np.int64)


Step = Callable[[Scan], None]


def one_if_equal(numbers: int | Int64s) -> int | Int64s:
    """Returns one number in place of an array of equal numbers, because a place that is the same in
    all rows is read many times faster."""
    if isinstance(numbers, int):
        return numbers
    first = int(numbers[0])
    return first if (numbers == first).all() else numbers


def scan_of(values: pa.StringArray) -> Scan:
    """Returns a scan of the texts, which must not be empty as a column. Other blanks, such as the
    narrow one before AM that is not broken (U+202F), become ordinary ones."""
    if (_bytes(values) > 127).any():
        values = pc.replace_substring_regex(values, r"\p{Zs}", " ")
    matrix, width = _matrix(values)
    scan = Scan(matrix, width)
    if values.null_count:
        scan.good &= np.asarray(values.is_valid())
    return scan


def _bounds(values: pa.StringArray) -> npt.NDArray[np.int32]:
    buffer = values.buffers()[1]
    return np.frombuffer(buffer, np.int32)[values.offset : values.offset + len(values) + 1]


def _bytes(values: pa.StringArray) -> Bytes:
    buffer, bounds = values.buffers()[2], _bounds(values)
    if buffer is None:
        return np.zeros(0, np.uint8)
    return np.frombuffer(buffer, np.uint8)[bounds[0] : bounds[-1]]


def _matrix(values: pa.StringArray) -> tuple[Bytes, Int64s]:
    """Returns a column of characters for each value, padded with zeros, and how many bytes each
    value has.
    """
    data, bounds = _bytes(values), _bounds(values).astype(np.int64)
    width = np.diff(bounds)
    columns = min(int(width.max()), WIDTH_MAX)
    matrix = np.zeros((columns + MARGIN, len(values)), np.uint8)
    if columns and int(width.min()) == columns and columns == int(width.max()):
        # All values have the same width, so their bytes already are a matrix.
        matrix[:columns] = data.reshape(-1, columns).T
    elif columns:
        at = bounds[:-1] - bounds[0]
        for place in range(columns):
            rows = np.flatnonzero(width > place)
            matrix[place, rows] = data[at[rows] + place]
    # A value that is too long is not a time. Such a value gets a width that no format can reach.
    return matrix, np.where(width > WIDTH_MAX, WIDTH_MAX + MARGIN + 1, width)
