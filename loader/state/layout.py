"""Gives the names of all files that the loader keeps under `<root>`.

If the names of files of rows change, audit/recount/listing.py and faults.py must change too,
because they parse these names.

<topic>/dt=2026-01-31/hour=07/part-<load>-<partition>-<first offset>.parquet     rows
<topic>/dt=2026-01-31/hour=07/rows-<load>-<number>.parquet   the rows of rewritten files
<topic>/dt=2026-01-31/hour=07/_SUCCESS               marks the hour as complete
<topic>/_common_metadata                             the columns of the newest schema, without rows
_skidway/<topic>/<load as 20 digits>.json                                        manifest
_skidway/<topic>/checkpoints/<load>-<oldest>.jsonl   the files of the output after a load; manifests
                                                below load `oldest` may be gone; both numbers have
                                                20 digits
_skidway/<topic>/staging/<load>-<uuid>/...                  files that are not in place yet
_skidway/<topic>/<table>/<load as 20 digits>.parquet            tables' files (state/tables.py)
_skidway/<topic>/buckets/<first hour>-<end hour>-<rows>-<touched>-<load as 20 digits>.parquet
_skidway/<topic>/rejects/dt=.../hour=.../reject-<load>-<partition>-<first offset>.parquet
_skidway/<topic>/waiting/<agent>-<file>        since when an announcement has been missing, ms
_skidway/_runs/<uuid>.note                     a run that works on the output now (run_notes.py)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from skidway.errors import StateRefused

STATE: Final = "_skidway"
RUNS: Final = f"{STATE}/_runs"
"""Directory of the notes about runs. It cannot be the directory of a topic, because topics whose
names begin with `_` are not loaded."""

MANIFEST_DIGITS: Final = 20
HOUR_MS: Final = 3_600_000
_MANIFEST = re.compile(r"^(\d{20})\.json$")
_HOUR = re.compile(r"/dt=(\d{4}-\d\d-\d\d)/hour=(\d\d)/")
_CHECKPOINT = re.compile(r"^(\d{20})-(\d{20})\.jsonl$")
_TABLE = re.compile(r"^(?:.*-)?(\d{20})\.parquet$")
_SPAN = re.compile(r"/(-?\d+)-(-?\d+)-(\d+)-(\d+)-\d{20}\.parquet$")
_REJECTS = re.compile(r"/reject-\d+-(\d+)-(\d+)\.parquet$")
_FILE = re.compile(r"/(?:(?:part|reject)-(\d+)-(\d+)-\d+|rows-(\d+)-\d+)\.parquet$")
_STAGING = re.compile(r"^(\d+)-([0-9a-f]{32})$")


@dataclass(frozen=True, slots=True)
class LoadId:
    """One attempt at one load of one topic. Of all attempts with the same number, only one is
    committed."""

    topic: str
    number: int
    uuid: str

    @property
    def staging(self) -> str:
        """Returns the directory that has the load's files until they are moved to their final
        paths."""
        return staging(self.topic, self.number, self.uuid)


def state(topic: str) -> str:
    """Returns the directory `_skidway/<topic>`, which contains a topic's manifests and the other
    files of its state."""
    return f"{STATE}/{topic}"


def manifest(topic: str, load: int) -> str:
    """Returns the path of the manifest that commits a load."""
    return f"{state(topic)}/{load:0{MANIFEST_DIGITS}}.json"


def manifest_number(name: str) -> int | None:
    """Returns the load number in the file name of a manifest, or None for other files."""
    found = _MANIFEST.match(name)
    return int(found[1]) if found else None


def checkpoints(topic: str) -> str:
    """Returns the directory of a topic's checkpoints (state/checkpoint.py)."""
    return f"{state(topic)}/checkpoints"


def checkpoint(topic: str, load: int, oldest: int) -> str:
    """Returns the path of the checkpoint that lists the output's files after a load. oldest:
    manifests below this number may be gone."""
    name = f"{load:0{MANIFEST_DIGITS}}-{oldest:0{MANIFEST_DIGITS}}.jsonl"
    return f"{checkpoints(topic)}/{name}"


def checkpoint_numbers(name: str) -> tuple[int, int] | None:
    """Returns the numbers `load` and `oldest` in the file name of a checkpoint, or None for other
    files."""
    found = _CHECKPOINT.match(name)
    return (int(found[1]), int(found[2])) if found else None


def stagings(topic: str) -> str:
    """Returns the directory that contains the staging directories of a topic's loads."""
    return f"{state(topic)}/staging"


def staging(topic: str, load: int, uuid: str) -> str:
    """Returns the directory that has one load's files until they are moved to their final paths."""
    return f"{stagings(topic)}/{load}-{uuid}"


def staging_of(name: str) -> tuple[int, str] | None:
    """Returns the load and the uuid in a staging directory's name, or None for other names."""
    found = _STAGING.match(name)
    return (int(found[1]), found[2]) if found else None


def hour_folder(hour: int) -> str:
    """Returns the folder `dt=.../hour=...` of an hour in UTC; `hour` counts the hours since the
    epoch."""
    start = datetime.fromtimestamp(hour * 3600, tz=UTC)
    return f"dt={start:%Y-%m-%d}/hour={start:%H}"


def hour_of(path: str) -> str:
    """Returns the hour of a file of rows, as `2026-01-31T07`, or an empty text if the path has no
    hour."""
    found = _HOUR.search(path)
    return f"{found[1]}T{found[2]}" if found else ""


@dataclass(frozen=True, slots=True)
class Hours:
    """The hours [first, end), like `2026-01-31T07`."""

    first: str
    end: str

    def covers(self, path: str) -> bool:
        """Returns whether a file belongs to one of these hours."""
        return self.first <= hour_of(path) < self.end


NO_HOURS: Final = Hours("", "")


def hour_number(text: str) -> int:
    """Returns the number of hours from 1970 to an hour like `2026-01-31T07`."""
    return int(datetime.fromisoformat(f"{text}:00+00:00").timestamp()) // 3600


def hour_text(hour: int) -> str:
    """Returns an hour in UTC as `2026-01-31T07`; `hour` counts the hours since the epoch."""
    return f"{datetime.fromtimestamp(hour * 3600, tz=UTC):%Y-%m-%dT%H}"


def success(topic: str, hour: str) -> str:
    """Returns the path of the file `_SUCCESS` that marks an hour, such as `2026-01-31T07`, as
    complete. Hadoop's jobs look for this file name."""
    return f"{topic}/{hour_folder(hour_number(hour))}/_SUCCESS"


def is_day_folder(name: str) -> bool:
    """Returns whether a name in a topic's folder is the name of a directory of rows."""
    return name.startswith("dt=")


def rows(topic: str, hour: int, load: int, partition: int, first_offset: int) -> str:
    """Returns the path of a file of rows."""
    return f"{topic}/{hour_folder(hour)}/part-{load}-{partition}-{first_offset}.parquet"


def rewritten(folder: str, load: int, number: int) -> str:
    """Returns the path of a file that replaces other files. folder: the directory of the file's
    hour."""
    return f"{folder}/rows-{load}-{number}.parquet"


def file_of(path: str) -> tuple[int, int | None] | None:
    """Returns the load and the partition in the name of a file of rows or rejects, or None for
    other names. The partition is None if the file replaces other files, because its records may
    come from several partitions."""
    found = _FILE.search(path)
    if found is None:
        return None
    return (int(found[1]), int(found[2])) if found[1] else (int(found[3]), None)


def columns(topic: str) -> str:
    """Returns the path of the Parquet file without rows that has the columns of the newest schema.
    If a directory has a file of this name, Spark reads the directory's columns from it."""
    return f"{topic}/_common_metadata"


def rejects(topic: str, hour: int, load: int, partition: int, first_offset: int) -> str:
    """Returns the path of a file of rejects, which are records that the loader cannot make into
    rows."""
    folder = f"{state(topic)}/rejects/{hour_folder(hour)}"
    return f"{folder}/reject-{load}-{partition}-{first_offset}.parquet"


def first_reject(path: str) -> tuple[int, int, int] | None:
    """Returns what the path of a file of rejects says: the hour (counted since the epoch), the
    partition, and the offset of the file's first record. Returns None for other paths."""
    found, hour = _REJECTS.search(path), hour_of(path)
    return (hour_number(hour), int(found[1]), int(found[2])) if found and hour else None


def table(topic: str, table: str, load: int) -> str:
    """Returns the path of the file that a load writes for a table (state/tables.py)."""
    return f"{state(topic)}/{table}/{load:0{MANIFEST_DIGITS}}.parquet"


def tables(topic: str, table: str) -> str:
    """Returns the directory of the files of a table (state/tables.py)."""
    return f"{state(topic)}/{table}"


def table_number(name: str) -> int | None:
    """Returns the load number in the name of a file of a table (state/tables.py), or None for other
    files."""
    found = _TABLE.match(name)
    return int(found[1]) if found else None


def span(topic: str, table: str, parts: tuple[int, int, int, int], load: int) -> str:
    """Returns the path of the file with a table's rows for a span of hours. parts: the first hour
    and the end of the span, both in hours since the epoch; the number of rows; and the number of
    the last load that counted a bucket (an interval of event time) of the span."""
    name = "-".join(map(str, parts))
    return f"{state(topic)}/{table}/{name}-{load:0{MANIFEST_DIGITS}}.parquet"


def span_of(path: str) -> tuple[int, int, int, int]:
    """Returns the `parts` (see `span`) in the path of a span's file. Raises StateRefused for other
    paths."""
    found = _SPAN.search(path)
    if found is None:
        raise StateRefused(f"{path}, which a manifest names, is no file of a span of buckets")
    return int(found[1]), int(found[2]), int(found[3]), int(found[4])


def waiting(topic: str, agent: int, file: int) -> str:
    """Returns the path of the note that says since when a log file's announcement has been missing.
    (In an announcement, an agent names a file's host and path.)"""
    return f"{state(topic)}/waiting/{agent}-{file}"


def run_note(run: str) -> str:
    """Returns the path of the note about a run. run: the id of the run, a uuid in hex digits. The
    note is JSON, but has another suffix than manifests, so that a person who lists `*/*.json` does
    not mistake the note for a manifest."""
    return f"{RUNS}/{run}.note"
