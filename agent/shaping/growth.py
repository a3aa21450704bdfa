"""Limits by how much masks lengthen a text.

One rule makes a text at most GROWTH_MAX times as long as it was, because the rule puts at most
eight characters in place of one character. But a second rule may also replace the characters that
the first rule has put there. So several rules could turn a line of 1 MiB into a text that needs
more memory than the host has. Therefore a record is rejected as soon as all masks of a field
together have made the field's text more than GROWTH_MAX times as long as it was. The result depends
only on the record and the rules.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.agent.shaping.texts import lengths

GROWTH_MAX: Final = 8
"""Masks may make a text at most this many times as long as it was. The number is the length of
`[masked]`, the longest text that a mask writes in place of a private text."""


class Growth:
    """Owns the lengths that the texts of masked fields had before their first mask."""

    def __init__(self) -> None:
        self._lengths: dict[str, npt.NDArray[np.int64]] = {}

    def before(self, name: str, column: pa.Array) -> None:
        """Notes the lengths of a field's texts. Called before a mask is applied to the field."""
        if name not in self._lengths:
            self._lengths[name] = lengths(column)

    def fits(self, name: str, column: pa.Array) -> npt.NDArray[np.bool_]:
        """Returns which texts of a masked field are at most GROWTH_MAX times as long as before the
        first mask."""
        return np.asarray(lengths(column) <= GROWTH_MAX * self._lengths[name], np.bool_)

    def keep(self, stays: npt.NDArray[np.bool_]) -> None:
        """Called after a rule has left out rows: forgets the lengths of the texts in these rows.
        stays: which rows are kept."""
        self._lengths = {name: each[stays] for name, each in self._lengths.items()}

    def rename(self, name: str, to: str) -> None:
        """Called when a rule renames the field `name` to `to`: from now on, the lengths of its
        texts are found under `to`."""
        if name in self._lengths:
            self._lengths[to] = self._lengths.pop(name)


def is_too_long(masked: str, text: str) -> bool:
    """Whether `masked`, the result of all masks, is more than GROWTH_MAX times as long as
    `text`."""
    return len(masked.encode()) > GROWTH_MAX * len(text.encode())
