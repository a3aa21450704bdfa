"""Chooses the hours that one load reads again, and checks that their records are the same as
before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from skidway.audit.counts import checksum
from skidway.errors import SkidwayError
from skidway.loader.state import layout
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import REJECTS, ROWS, DataFile

COUNTED: Final = (ROWS, REJECTS)
"""The kinds of files that a reload replaces."""


class ReloadRefused(SkidwayError):
    """Raised if some hours cannot be reloaded; their files stay as they are. hours: these hours, in
    the form `2026-01-31T07`. sentences: the reasons. The error's message contains only the first
    reason.
    """

    def __init__(self, hours: Iterable[str], *sentences: str) -> None:
        super().__init__(sentences[0])
        self.hours, self.sentences = frozenset(hours), sentences


class Content(NamedTuple):
    """The number of records in some files, and the checksum of these records."""

    records: int = 0
    checksum: int = 0

    def with_file(self, file: DataFile) -> Content:
        """Returns the number and the checksum of these records and the records of `file`
        together."""
        return Content(self.records + file.rows, checksum.add(self.checksum, file.checksum))


NOTHING: Final = Content()


@dataclass(frozen=True, slots=True)
class HourContent:
    """The number and the checksum of an hour's rows, and the number and the checksum of all its
    records. The records are the rows and the rejects (records that cannot become rows)."""

    rows: Content = NOTHING
    all: Content = NOTHING

    @property
    def rejects(self) -> Content:
        """Returns the number and checksum of the hour's rejects."""
        difference = checksum.signed(self.all.checksum - self.rows.checksum)
        return Content(self.all.records - self.rows.records, difference)


def contents(files: Iterable[DataFile]) -> dict[str, HourContent]:
    """Returns, for each hour of the given files, the number and the checksum of the hour's records.
    Computes both from the entries that the manifests have for the files."""
    found: dict[str, HourContent] = {}
    for each in files:
        if each.kind not in COUNTED:
            continue
        known = found.get(layout.hour_of(each.path), HourContent())
        rows = known.rows.with_file(each) if each.kind == ROWS else known.rows
        found[layout.hour_of(each.path)] = HourContent(rows, known.all.with_file(each))
    return found


def first_group(files: Mapping[str, LiveFile], records_max: int) -> dict[str, LiveFile]:
    """Returns all files of the first hours: of the first hour, and of each following hour as long
    as all these hours together have at most `records_max` records."""
    by_hour: dict[str, dict[str, LiveFile]] = {}
    for path, each in files.items():
        by_hour.setdefault(layout.hour_of(path), {})[path] = each
    group: dict[str, LiveFile] = {}
    records = 0
    for hour in sorted(by_hour):
        size = sum(each.file.rows for each in by_hour[hour].values())
        if group and records + size > records_max:
            break
        group |= by_hour[hour]
        records += size
    return group


def check_same(
    topic: str, old: Mapping[str, HourContent], new: Mapping[str, HourContent], *, may_reject: bool
) -> None:
    """Raises ReloadRefused if, in some hour, the new records do not have the number and the
    checksum of the old records. old: for each hour, what was committed. new: for each hour, what
    the reload read. may_reject: whether records that were rows may become rejects."""
    refused: dict[str, str] = {}
    for hour in sorted({*old, *new}):
        was, now = old.get(hour, HourContent()), new.get(hour, HourContent())
        lost = was.rows.records - now.rows.records
        if was.all != now.all:
            refused[hour] = _differ(topic, hour, was.all, now.all)
        elif lost > 0 and not may_reject:
            refused[hour] = (
                f"{topic}, hour {hour}: {lost} of {was.rows.records} records that are rows would "
                "become rejects; nothing of this hour is changed. If that is right, say "
                "--more-rejects"
            )
    if refused:
        raise ReloadRefused(refused, *refused.values())


def _differ(topic: str, hour: str, was: Content, now: Content) -> str:
    if was.records == now.records:
        reason = f"{now.records} records, but they are not the {was.records} that were committed"
    else:
        reason = f"{now.records} records, and {was.records} were committed"
    return f"{topic}, hour {hour}: the log has {reason}; nothing of this hour is changed"
