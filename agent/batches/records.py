"""Records of one topic, as columns, before they are divided into batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.agent.parsing import lines as line_columns
from skidway.dataclass import dataclass
from skidway.kafka.columns import Origins, Pieces

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Records:
    """The records for one topic, as rows. owner: for each row, the index of its reading (a byte
    range of a file) in the list of readings; the indexes never decrease.
    """

    owner: Int64s
    file: Int64s
    first: Int64s
    length: Int64s
    times: Int64s
    values: Pieces
    keys: pa.BinaryArray | None = None

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def sizes(self) -> Int64s:
        """The number of bytes of each record's value and key together."""
        return sizes_of(self.values, self.keys)

    def files(self) -> Iterator[tuple[int, Int64s]]:
        """Yields each file from which the records were made, with the rows of its records."""
        for file in distinct(self.file):
            yield file, np.flatnonzero(self.file == file)

    def origins(self, agent: int, rows: slice | Int64s) -> Origins:
        """Returns the origins of the records in these rows."""
        first = self.first[rows]
        agents = np.full(len(first), agent, np.int64)
        return Origins(agents, self.file[rows], first, self.length[rows])


def sizes_of(values: Pieces, keys: pa.BinaryArray | None) -> Int64s:
    """Returns the number of bytes of each value together with its key."""
    size = values.sizes
    return size if keys is None else size + line_columns.sizes(keys)


def distinct(numbers: Int64s) -> tuple[int, ...]:
    """Returns the distinct numbers in rising order. Usually there is only one number."""
    first = int(numbers[0])
    if (numbers == first).all():
        return (first,)
    return tuple(np.unique(numbers).tolist())
