"""A reload counts the rejected records of each bucket (span of event time) in the files of rejects
that it replaces."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from skidway.loader.reloading.rejects import rejects_in
from skidway.loader.state import layout
from skidway.loader.state.manifest import REJECTS, DataFile
from skidway.loader.state.parquet_file import write_table
from support.loading import TOPIC
from support.memory_store import MemoryStore
from support.promises import promise

BUCKET_MS = 60_000
START = 7 * layout.HOUR_MS


def file(store: MemoryStore, first: int, *times: int) -> DataFile:
    """Returns a file of rejected records that has one record of agent 1 at each of the given times.
    The file's name contains `first`, the offset at which it begins."""
    columns = {
        "_agent": pa.array([1] * len(times), pa.int64()),
        "timestamp_ms": pa.array(times, pa.int64()),
    }
    path = layout.rejects(TOPIC, 7, 1, 0, first)
    names = ("_file_id", "_offset", "_length")
    rest = {name: pa.array([0] * len(times), pa.int64()) for name in names}
    return write_table(store, pa.table(columns | rest), REJECTS, path, path)


@promise("5 reload")
def test_rejects_are_counted_in_their_files() -> None:
    """The rejects of a file are counted for each bucket of their times. A time outside the years
    1970 to 9999 counts in the first bucket."""
    store = MemoryStore()
    times = [START + 5, START + 9, START + BUCKET_MS, -1, 1 << 62, -(1 << 63), 30]
    found = rejects_in(store, file(store, 0, *times), BUCKET_MS)
    assert found == Counter({(1, START): 2, (1, START + BUCKET_MS): 1, (1, 0): 4})


@promise("5 reload")
@pytest.mark.parametrize("damage", ["gone", "damaged", "another file"])
def test_the_rejects_of_a_lost_file_are_unknown(damage: str) -> None:
    """If a file of rejects is gone, damaged, or has another number of records than was committed,
    its number of rejects is unknown, and the reload says so."""
    store = MemoryStore()
    lost, other = file(store, 0, START, START), file(store, 10, START)
    store.delete(lost.path)
    if damage != "gone":
        data = store.read(other.path) if damage == "another file" else b"PAR1"
        store.put(lost.path, data or b"")
    assert rejects_in(store, lost, BUCKET_MS) is None
