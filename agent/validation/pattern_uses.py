"""Counts, for `agent validate`, how many files each pattern of a source's `paths` and `exclude`
takes now, and says why a pattern takes none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from skidway.agent.files.host import Host, Scan, shown
from skidway.agent.files.patterns import Pattern, patterns_of
from skidway.agent.settings import SourceSettings
from skidway.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PatternUse:
    """What a pattern does now. files: how many files of the source it takes, or leaves out. why:
    why it does nothing; None if it does something. may_be_idle: whether nobody minds that it does
    nothing."""

    setting: str
    pattern: str
    files: int
    why: str | None = None
    may_be_idle: bool = False

    @property
    def is_mark(self) -> bool:
        """Whether the reader should look at the pattern."""
        return not self.files and not self.may_be_idle

    def __str__(self) -> str:
        does = "takes" if self.setting == "paths" else "leaves out"
        count = "no file" if not self.files else f"{self.files:,} file{'s'[: self.files - 1]}"
        return f"{self.setting} {self.pattern} {does} {count}" + (f": {self.why}" * bool(self.why))


def uses(source: SourceSettings, host: Host) -> list[PatternUse]:
    """Returns what each pattern of a source does now: first those of `paths`, then those of
    `exclude`."""
    scans = {text: host.scan(patterns_of([text])) for text in source.paths}
    left_out = patterns_of(["/"], source.exclude)[0]
    paths = [_of_path(text, scan, left_out, source) for text, scan in scans.items()]
    found = {each.path for scan in scans.values() for each in scan.found}
    return [*paths, *(_of_exclude(text, found) for text in source.exclude)]


def _of_path(text: str, scan: Scan, left_out: Pattern, source: SourceSettings) -> PatternUse:
    kept = [each for each in scan.found if not left_out.excludes(each.path)]
    why = None if kept else _why_nothing(scan)
    return PatternUse("paths", text, len(kept), why, source.optional)


def _why_nothing(scan: Scan) -> str | None:
    if scan.found:
        return f"exclude leaves out all {len(scan.found):,} that it matches"
    for path in scan.directories[:1]:
        return f"{shown(path)} is a directory; {shown(path)}/** means the files below it"
    return None


def _of_exclude(text: str, found: Iterable[str]) -> PatternUse:
    found = list(found)
    means = patterns_of([text])
    taken = sum(any(each.means(path) for each in means) for path in found)
    why = None if taken else _why_nothing_excluded(means, found)
    return PatternUse("exclude", text, taken, why, may_be_idle=not found)


def _why_nothing_excluded(means: Sequence[Pattern], found: Iterable[str]) -> str | None:
    for path in found:
        for above in map(str, PurePosixPath(path).parents):
            if any(each.means(above) for each in means):
                return f"{shown(above)} is a directory; {shown(above)}/** means the files below it"
    return None
