"""Records that rules of the setting `shape` left out, headers of CSV, and blank lines. No batch
contains these records; the agent only counts them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from skidway.audit.counts.counts import Counts
from skidway.dataclass import dataclass
from skidway.kafka.source import Source

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Filtered:
    """Records that rules left out. owner: for each record, the index of its reading (a byte range
    of a file) in the list of readings; the indexes never decrease. times: the records' event times
    (ms). rule: for each record, the index in `rules` of the rule that left it out.
    """

    owner: Int64s
    file: Int64s
    first: Int64s
    length: Int64s
    times: Int64s
    rule: Int64s
    rules: Sequence[str]

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def by_rule(self) -> dict[str, tuple[int, int]]:
        """For each rule, how many records it left out, and how many bytes these records have."""
        found = {}
        for index in np.unique(self.rule).tolist():
            mine = self.rule == index
            found[self.rules[index]] = int(mine.sum()), int(self.length[mine].sum())
        return found

    def of(self, begin: int, end: int) -> Filtered:
        """Returns the records with the indexes `begin` to `end` - 1."""
        rows = slice(begin, end)
        return Filtered(
            self.owner[rows], self.file[rows], self.first[rows], self.length[rows],
            self.times[rows], self.rule[rows], self.rules,
        )  # fmt: skip

    def count(self, counts: Counts, source: Source, agent: int) -> int:
        """Adds these records to `counts`, by rule. Returns how many bytes they have."""
        for index in np.unique(self.rule).tolist():
            mine = self.rule == index
            rule = self.rules[index]
            counts.add_filtered(source, agent, self.times[mine], self.length[mine], rule)
        return int(self.length.sum())
