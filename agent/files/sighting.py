"""What a look found, and why it matters."""

from __future__ import annotations

from typing import NamedTuple

from skidway.agent.files.generations import copied_from
from skidway.agent.files.sources import TailedSource
from skidway.agent.values.found import Found


class Sighting(NamedTuple):
    """A file that a look found. number: index of its source; base: the meant path that it was
    rotated from, if no pattern leads to it; now: s. may_begin: whether a file id may begin with it;
    if not, it matters only if a known file became this one.
    """

    found: Found
    number: int
    source: TailedSource
    now: float
    base: str | None = None
    may_begin: bool = True

    @property
    def meant(self) -> str:
        """The path at which a pattern finds it; for a rotated file, the path before."""
        return self.base or self.found.path

    @property
    def bases(self) -> list[str]:
        """The paths of the logs that it may be a copy or a generation of."""
        return [self.base] if self.base is not None else list(copied_from(self.found.path))
