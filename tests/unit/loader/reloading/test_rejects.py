"""Before a reload, the loader counts the rejected records in each bucket (span of event time). The
tests check these counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from skidway.loader.reloading.rejects import rejects_before
from skidway.loader.state import layout
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import REJECTS, DataFile, Manifest
from skidway.loader.state.parquet_file import write_table
from support.loading import TOPIC, WHOLE
from support.memory_store import MemoryStore
from support.promises import promise

BUCKET_MS = 60_000
HOUR = 7
START = HOUR * layout.HOUR_MS


def file(store: MemoryStore, load: int, first: int, *minutes: int) -> LiveFile:
    """Returns a file of rejected records that the load number `load` wrote. The file has one record
    of agent 1 in each of the given minutes of the hour. The file's name contains `first`, the
    offset at which it begins."""
    columns = {
        "_agent": pa.array([1] * len(minutes), pa.int64()),
        "timestamp_ms": pa.array([START + at * BUCKET_MS + 5 for at in minutes], pa.int64()),
    }
    path = layout.rejects(TOPIC, HOUR, load, 0, first)
    names = ("_file_id", "_offset", "_length")
    rest = {name: pa.array([0] * len(minutes), pa.int64()) for name in names}
    made: DataFile = write_table(store, pa.table(columns | rest), REJECTS, path, path)
    return LiveFile(made, load, None)


def counted(load: int, *minutes: int, removed: tuple[str, ...] = ()) -> Manifest:
    """Returns the manifest of a load that counted one reject for each given minute of the hour. A
    minute of 60 or more lies in a later hour."""
    counts = [
        {"agent": 1, "bucket": START + at * BUCKET_MS, "rejects": count}
        for at, count in Counter(minutes).items()
    ]
    audit = {**WHOLE.audit, "deltas": [{"number": load, "counts": counts}]}
    return replace(WHOLE, number=load, audit=audit, removed=removed)


def by_minute(found: Counter[tuple[int, int]]) -> dict[int, int]:
    return {(start - START) // BUCKET_MS: count for (_, start), count in found.items() if count}


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@promise("5 reload")
def test_rejects_are_counted_in_their_files(store: MemoryStore) -> None:
    """To count the rejected records in each bucket, the loader reads the files of rejects."""
    files = [file(store, 1, 0, 3, 3, 4), file(store, 2, 10, 4)]
    found, unknown = rejects_before(store, files, {}, BUCKET_MS)
    assert (by_minute(found), unknown) == ({3: 2, 4: 2}, [])


@promise("5 reload")
@pytest.mark.parametrize("damage", ["gone", "damaged", "another file"])
def test_a_lost_file_s_rejects_are_those_that_its_load_counted(
    store: MemoryStore, damage: str
) -> None:
    """If a file of rejects is gone or damaged, the loader calculates how many rejects the file had.
    It takes the number of rejects that the file's load counted in the hour, and subtracts the
    rejects in this load's other files of the hour."""
    files = [file(store, 1, 0, 3, 3, 4), file(store, 1, 10, 3), file(store, 2, 20, 5)]
    if damage == "gone":
        store.delete(files[0].file.path)
    else:
        data = store.read(files[1].file.path) if damage == "another file" else b"PAR1"
        store.put(files[0].file.path, data or b"")
    manifests = {1: counted(1, 3, 3, 3, 4, 60), 2: counted(2, 5)}
    found, unknown = rejects_before(store, files, manifests, BUCKET_MS)
    assert (by_minute(found), unknown) == ({3: 3, 4: 1, 5: 1}, [])


@promise("5 reload")
def test_rejects_whose_times_have_no_date_are_counted_alike(store: MemoryStore) -> None:
    """Rejects whose times are outside the years 1970 to 9999 lie in hour 0, and count in its first
    bucket, whether they are counted in their files or, if a file is lost, by the manifest."""
    times = [-1, 1 << 62, -(1 << 63), 30]
    columns = {"_agent": pa.array([1] * 4, pa.int64()), "timestamp_ms": pa.array(times, pa.int64())}
    rest = {name: pa.array([0] * 4, pa.int64()) for name in ("_file_id", "_offset", "_length")}
    path = layout.rejects(TOPIC, 0, 1, 0, 0)
    there = LiveFile(write_table(store, pa.table(columns | rest), REJECTS, path, path), 1, None)
    assert rejects_before(store, [there], {}, BUCKET_MS) == (Counter({(1, 0): 4}), [])
    store.delete(path)
    counts = [{"agent": 1, "bucket": 0, "rejects": 4}]
    audit = {**WHOLE.audit, "deltas": [{"number": 1, "counts": counts}]}
    manifests = {1: replace(WHOLE, number=1, audit=audit)}
    assert rejects_before(store, [there], manifests, BUCKET_MS) == (Counter({(1, 0): 4}), [])


def test_a_lost_file_of_a_reload_is_named(store: MemoryStore) -> None:
    """If a load replaced files, its manifest says only by how much the counts have changed, not the
    counts themselves. So if a file of rejects of such a load is lost, its number of rejects is
    unknown. The loader then reports the file's path."""
    (lost,) = [file(store, 2, 0, 3)]
    store.delete(lost.file.path)
    _, unknown = rejects_before(store, [lost], {2: counted(2, 3, removed=("x",))}, BUCKET_MS)
    assert unknown == [lost.file.path]
