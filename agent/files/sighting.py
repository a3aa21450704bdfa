"""A file that the agent found when it went through the directories of its sources, with its source
and, for a rotated file, the path from which it was rotated."""

from __future__ import annotations

from typing import NamedTuple

from skidway.agent.files.generations import copied_from
from skidway.agent.files.sources import TailedSource
from skidway.agent.values.found import Found


class Sighting(NamedTuple):
    """A file that a look found. number: the index of the file's source. base: if no pattern leads
    to the file, the path from which the file was rotated; a pattern matches this path. now: the
    time of the look (s). may_begin: whether the agent may begin a new file id for the file. If a
    new file id is not allowed, the file matters only if it is a known file that was compressed,
    renamed or copied. is_first: whether the agent looks at the file's pattern for the first time.
    is_missed: whether the agent looked at the file's pattern before, and the file changed after the
    last look.
    """

    found: Found
    number: int
    source: TailedSource
    now: float
    base: str | None = None
    may_begin: bool = True
    is_first: bool = False
    is_missed: bool = False

    @property
    def skip(self) -> int | None:
        """How many of the file's first bytes the agent skips at the first look at its pattern
        (`start_at: end`); None if the agent skips no bytes. UNMEASURED stands for all bytes of a
        compressed file.
        """
        return self.found.size if self.is_first and self.source.starts_at_end else None

    @property
    def meant(self) -> str:
        """The path at which a pattern finds the file; for a rotated file, its path before the
        rotation.
        """
        return self.base or self.found.path

    @property
    def bases(self) -> list[str]:
        """The paths of all logs of which the file may be a copy or a generation."""
        return [self.base] if self.base is not None else list(copied_from(self.found.path))
