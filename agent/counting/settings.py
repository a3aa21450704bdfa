"""The settings of `skidway agent count`: which files it reads, and how many notes of their lines it
keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from skidway.agent.files.access import Rule
from skidway.agent.files.patterns import Pattern, patterns_of
from skidway.agent.files.sources import TailedSource
from skidway.agent.values import path_texts
from skidway.dataclass import dataclass
from skidway.errors import UsageError

SOURCE: Final = "count"
"""`skidway agent count` sends lines to no topic. Its only source has this name in place of a
topic."""

KEEP_MB: Final = 1024
KEEP_MB_MIN: Final = 64
KEEP_S: Final = 7 * 86_400.0
KEEP_S_MIN: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class CountSettings:
    """paths, exclude: the patterns of the files. directory: where the notes are. links: which links
    are followed. keep_s, keep_bytes: the greatest age of a note, and the most bytes of all notes;
    notes beyond these limits are deleted, the oldest first.
    """

    paths: tuple[str, ...]
    directory: Path
    exclude: tuple[str, ...] = ()
    starts_at_end: bool = False
    links: Rule = "owner"
    keep_s: float = KEEP_S
    keep_bytes: int = KEEP_MB << 20

    def check(self) -> None:
        """Raises UsageError if a pattern is not valid, or if `keep_s` or `keep_bytes` is
        too low."""
        for option, patterns in (("--files", self.paths), ("--exclude", self.exclude)):
            for pattern in patterns:
                if (why := path_texts.refusal(pattern)) is not None:
                    raise UsageError(f"{option} {pattern!r} {why}.")
        if self.keep_s < KEEP_S_MIN:
            raise UsageError("--keep must be at least 1h.")
        if self.keep_bytes < KEEP_MB_MIN << 20:
            raise UsageError(f"--keep-mb must be at least {KEEP_MB_MIN}.")

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns of the files."""
        return patterns_of(self.paths, self.exclude)

    def source(self) -> TailedSource:
        """Returns the files in the form of a source of the agent. Only a line feed ends a line, as
        for other shippers."""
        return TailedSource(
            topic=SOURCE,
            topic_id="",
            patterns=self.patterns,
            recipe=b"",
            starts_at_end=self.starts_at_end,
            optional=True,
        )
