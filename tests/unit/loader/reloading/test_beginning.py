"""Tests at which offsets a reload begins to read the log again, and at which offsets it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from skidway.loader.planning.plan import Bounds
from skidway.loader.reloading import beginning as beginnings
from skidway.loader.reloading.beginning import Beginning
from skidway.loader.reloading.lineage import ReloadRefused, lineage
from skidway.loader.state import layout, operations
from skidway.loader.state.manifest import BatchMark, Gap, Manifest, PartitionRange
from support.loading import TOPIC, WHOLE
from support.memory_store import MemoryStore
from support.promises import promise

HOUR = 7
GAP = Gap(12, 14, "named by the mirror")


def part(load: int, partition: int, first: int, hour: int = HOUR) -> str:
    return layout.rows(TOPIC, hour, load, partition, first)


def reject(load: int, partition: int, first: int) -> str:
    return layout.rejects(TOPIC, HOUR, load, partition, first)


def merged(load: int, hour: int = HOUR) -> str:
    return layout.rewritten(f"{TOPIC}/{layout.hour_folder(hour)}", load, 0)


def load(number: int, *ends: int, removed: Sequence[str] = (), gap: Gap | None = None) -> Manifest:
    """Returns the manifest of a load. `ends` are the offsets at which the load ends in partitions
    0, 1 and so on."""
    gaps = (gap,) if gap else ()
    ranges = (PartitionRange(at, 0, end, gaps if at == 0 else ()) for at, end in enumerate(ends))
    given = {"partitions": tuple(ranges), "removed": tuple(removed)}
    return replace(WHOLE, topic=TOPIC, number=number, **given)


OTHER_HOUR = merged(4, 8)
LOADS = [
    load(1, 10, 5),
    load(2, 20, 9, gap=GAP),
    load(3, 30, 9),
    load(4, 30, 9, removed=[part(2, 0, 10), part(3, 0, 20), part(1, 1, 0, hour=8)]),
    load(5, 40, 9),
    load(6, 40, 9, removed=[merged(4), reject(5, 0, 33), part(5, 0, 30)]),
]
"""Load 4 is a compaction (it combines small files). It replaces files of the loads 2 and 3 and, in
another hour, a file of load 1. Load 6 is a reload, which replaces the file that load 4 wrote, and
files of load 5."""


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    for each in LOADS:
        made.put(each.path, each.to_json())
    return made


def begun(store: MemoryStore, *paths: str) -> Beginning:
    return operations.run(beginnings.beginning(TOPIC, paths), store)


@promise("5 reload")
@pytest.mark.parametrize(
    ("path", "loads", "ends"),
    [
        (part(1, 1, 0), {1}, {1: 5}),
        (part(3, 0, 20), {3}, {0: 30}),
        (reject(5, 0, 33), {5}, {0: 40}),
        (merged(4), {2, 3}, {0: 30}),
        (OTHER_HOUR, {1}, {1: 5}),
        (part(6, 0, 10), {2, 3, 5}, {0: 40}),
        (reject(6, 0, 33), {2, 3, 5}, {0: 40}),
    ],
)
def test_the_loads_that_took_a_file_s_records(
    store: MemoryStore, path: str, loads: set[int], ends: dict[int, int]
) -> None:
    """A reload finds the loads that read a file's records from the log. The name of the file gives
    the load that wrote it. If that load replaced earlier files of the hour by this file, the
    records may also come from the loads that wrote the earlier files. The names of the earlier
    files give those loads."""
    found = operations.run(lineage(TOPIC, [path], 1), store)
    assert (found.loads, found.ends) == (loads, ends)


@promise("5 reload")
def test_reading_begins_before_the_first_load_with_its_marks(store: MemoryStore) -> None:
    """To reload records, the loader finds the first load that read one of these records from the
    log. The reload begins where this load began, that is, at the offsets at which the load before
    it ended. The reload skips the same gaps as the original loads."""
    found = begun(store, part(6, 0, 10))
    assert found.before == LOADS[0]
    assert found.gaps[0] == (GAP,)
    assert (found.position(0).end, found.position(1).end, found.position(7).end) == (10, 5, 0)


def test_records_of_the_first_load(store: MemoryStore) -> None:
    """For records of a topic's first load, a reload begins at offset 0, without a manifest of an
    earlier load."""
    found = begun(store, part(1, 1, 0), part(2, 0, 10))
    assert found.before is None
    assert found.position(0) == PartitionRange(0, 0, 0)


@promise("5 reload")
def test_manifests_that_are_not_kept_are_named(store: MemoryStore) -> None:
    """A reload needs the manifests of the loads that read the records from the log, and of the load
    before them. If one of these manifests has been deleted, the reload is refused. Without the
    marks that belong to these manifests (the last loaded position in each log file), the reload
    could not recognize repeated records."""
    with pytest.raises(ReloadRefused, match="has records of load 2 or earlier loads") as refused:
        operations.run(lineage(TOPIC, [part(6, 0, 10)], 3), store)
    assert "manifests.keep" in str(refused.value)
    store.put(layout.checkpoint(TOPIC, 4, 5), b"")
    with pytest.raises(ReloadRefused) as refused:
        begun(store, reject(5, 0, 33))
    assert "are of load 5, and the manifests below load 5 are deleted" in str(refused.value)
    assert "manifests.keep" in str(refused.value)


@pytest.mark.parametrize(
    "path", [f"{TOPIC}/{layout.hour_folder(HOUR)}/copy.parquet", merged(5), part(5, 7, 0)]
)
def test_a_file_of_which_nobody_knows_the_records(store: MemoryStore, path: str) -> None:
    """A reload refuses a file if its name is not one that loads give to files. It also refuses a
    file if the load whose number is in the name cannot have written the file."""
    with pytest.raises(ReloadRefused, match="neither name nor manifests say"):
        begun(store, path)


BELOW = BatchMark(8, 9, 1, 0)
POSITION = PartitionRange(0, 0, 10, below=BELOW)


@promise("5 reload")
@pytest.mark.parametrize(
    ("log_start", "watermark", "words"),
    [
        (0, 40, ""),
        (10, 40, ""),
        (11, 40, "partition 0: offsets 10 to 10 are gone"),
        (50, 60, "partition 0: offsets 10 to 39 are gone"),
        (0, 39, "loaded up to offset 40, but the log ends at 39"),
    ],
)
def test_all_offsets_must_be_there(log_start: int, watermark: int, words: str) -> None:
    """In each partition a reload must read up to the offset at which the last original load of the
    records ended. If one of these offsets is gone, or if the log ends earlier, the reload reads
    nothing. The error names the partition and the offset."""
    found = beginnings.planned(TOPIC, Bounds(0, log_start, watermark), POSITION, 40, ())
    assert (words in found.refused) if words else not found.refused
    assert (found.position, found.first, found.end) == (10, 10, 10 if words else 40)
    assert found.below == BELOW


def test_a_gap_of_the_loads_is_passed_over() -> None:
    """A reload does not need the offsets that the original loads skipped, because they were already
    missing at that time."""
    gaps = (Gap(10, 20, "accepted"),)
    found = beginnings.planned(TOPIC, Bounds(0, 20, 50), POSITION, 40, gaps)
    assert (found.first, found.end, found.refused) == (20, 40, "")
    found = beginnings.planned(TOPIC, Bounds(0, 21, 50), POSITION, 40, gaps)
    assert "offsets 10 to 20 are gone" in found.refused
