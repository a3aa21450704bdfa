"""Proves that new files have the same records as the files that they replace.

The proof is the same for every load that replaces files: all new files together have the number of
records and the checksum of all old files together. The manifests have both for each file, so the
proof does not open the old files, which may be gone or damaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from skidway.audit.counts import checksum
from skidway.errors import SkidwayError
from skidway.loader.state import layout
from skidway.loader.state.manifest import REJECTS, ROWS, DataFile


class OtherRecords(SkidwayError):
    """Raised if new files do not have the records of the files that they would replace."""


class Content(NamedTuple):
    """The number of records in some files, and the checksum of these records."""

    records: int = 0
    checksum: int = 0


def content(files: Iterable[DataFile], *kinds: str) -> Content:
    """Returns the content of all files of these kinds together; without `kinds`, of all rows and
    rejects."""
    counted = [each for each in files if each.kind in (kinds or (ROWS, REJECTS))]
    total = checksum.signed(sum(each.checksum for each in counted))
    return Content(sum(each.rows for each in counted), total)


def rows_by_hour(files: Iterable[DataFile]) -> dict[str, Content]:
    """Returns the content of the files of rows of each hour, by the hour's name
    (`2026-01-31T07`)."""
    hours: dict[str, list[DataFile]] = {}
    for each in files:
        if each.kind == ROWS:
            hours.setdefault(layout.hour_of(each.path), []).append(each)
    return {hour: content(found) for hour, found in hours.items()}


def check_same(where: str, old: Iterable[DataFile], new: Iterable[DataFile]) -> None:
    """Raises OtherRecords if the new files do not have the records of the old files. where: the
    beginning of the error's message."""
    was, now = content(old), content(new)
    if was.records != now.records:
        raise OtherRecords(f"{where} {now.records} records, and {was.records} were committed")
    if was != now:
        raise OtherRecords(
            f"{where} {now.records} records, but they are not the {was.records} that were committed"
        )
