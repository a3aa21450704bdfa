"""The loader's state of a topic (such as marks and names of log files) is in tables. The tables are
stored in side files, separate from the files of rows. The side files that a manifest lists together
contain the state after the manifest's load."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.counts.marks import NO_MARK
from skidway.errors import StateRefused
from skidway.loader.state.closures import Closed, Closures, Fence, Stage
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import FENCE, MARKS, NAMES, Manifest
from skidway.loader.state.table_file import TableStaging
from skidway.loader.state.tables import (
    DELTAS_MAX,
    Changes,
    Tables,
    read_tables,
    stage,
)
from support.loading import WHOLE
from support.memory_store import MemoryStore
from support.promises import promise

NOTHING = Changes({}, {})
UUID = "c" * 32


def load(
    store: MemoryStore,
    number: int,
    before: Manifest | None,
    changes: Changes,
    fence: dict[int, Fence] | None = None,
) -> Manifest:
    """Writes the side files (files with the loader's state) of a load that only makes the given
    changes to the state. Returns the load's manifest."""
    tables = read_tables(store, before)
    tables.add(changes)
    tables.closures.files |= changes.closed
    for key, each in changes.closed.items():
        if each.stage is Stage.GONE:
            del tables.closures.files[key]
    tables.closures.fence |= fence or {}
    names = before.side if before else {}
    staging = TableStaging(store, LoadId("logs", number, UUID))
    side = stage(staging, names, tables, changes)
    for file in staging.files:
        assert store.rename(file.staged, file.path)
    return replace(WHOLE, number=number, files=tuple(staging.files), side=side)


def marks(number: int) -> Changes:
    return Changes({0: {(7, number): 10 * number}}, {(7, number): ("h", "/p")})


def test_later_files_win() -> None:
    """If two loads have changed the same mark (the byte position up to which a log file is loaded),
    the value from the later load is valid. Other marks keep their values."""
    store = MemoryStore()
    first = load(store, 1, None, Changes({0: {(7, 1): 10, (7, 2): 5}, 1: {(7, 1): 3}}, {}))
    second = load(store, 2, first, Changes({0: {(7, 1): 30}}, {(7, 1): ("h", "/p")}))
    tables = read_tables(store, second)
    assert tables.marks == {0: {(7, 1): 30, (7, 2): 5}, 1: {(7, 1): 3}}
    assert tables.locations == {(7, 1): ("h", "/p")}
    assert len(second.side[MARKS]) == 2
    assert len(second.side[NAMES]) == 1


def test_a_load_that_changes_nothing_writes_nothing() -> None:
    """A side file has a part of the loader's state. A load that changes no state writes no side
    file, and its manifest lists the existing ones."""
    store = MemoryStore()
    first = load(store, 1, None, marks(1))
    second = load(store, 2, first, NOTHING)
    assert second.files == ()
    assert second.side == first.side


def test_deltas_become_a_snapshot() -> None:
    """A side file (file with the loader's state) usually has only the changes of one load. After
    DELTAS_MAX such files, one file (a snapshot) contains the whole table, so that reading stays
    cheap."""
    store = MemoryStore()
    newest = None
    for number in range(1, DELTAS_MAX + 2):
        newest = load(store, number, newest, marks(number))
    assert newest is not None
    assert [len(newest.side[kind]) for kind in (MARKS, NAMES)] == [1, 1]
    tables = read_tables(store, newest)
    assert tables.marks[0] == {(7, n): 10 * n for n in range(1, DELTAS_MAX + 2)}
    assert len(tables.locations) == DELTAS_MAX + 1


def test_without_a_manifest_there_is_no_state() -> None:
    """The first load of a topic begins with empty tables, without marks."""
    assert read_tables(MemoryStore(), None) == Tables()


def test_ids_up_to_the_largest_survive() -> None:
    """The tables can store all agent and file ids up to the largest, 2^63 - 1."""
    store = MemoryStore()
    key = ((1 << 63) - 1, (1 << 63) - 1)
    newest = load(store, 1, None, Changes({3: {key: (1 << 63) - 1}}, {}))
    assert read_tables(store, newest).marks == {3: {key: (1 << 63) - 1}}


def test_a_side_file_that_is_gone_stops_by_name() -> None:
    """If a side file (file with the loader's state) is missing, the load fails and names the file,
    because without the marks in this file the load would double rows."""
    store = MemoryStore()
    newest = load(store, 1, None, marks(1))
    store.delete(newest.side[MARKS][0])
    with pytest.raises(StateRefused, match=r"marks/0{19}1\.parquet.*is missing"):
        read_tables(store, newest)


def test_a_damaged_side_file_stops_by_name() -> None:
    """If a side file, which has a part of the loader's state, is damaged, the load stops with an
    error."""
    store = MemoryStore()
    newest = load(store, 1, None, marks(1))
    store.put(newest.side[MARKS][0], b"PAR1 but no more")
    with pytest.raises(StateRefused, match="damaged"):
        read_tables(store, newest)


@promise("5 closed files")
def test_what_is_dropped_stays_dropped() -> None:
    """For a log file, the tables store its marks, its name, and whether its agent has closed it. If
    a load drops this state of a log file, the state does not come back in later loads, neither
    before nor after the next snapshot (the file with the whole table). Other log files keep their
    state."""
    store = MemoryStore()
    newest = load(store, 1, None, marks(1).then(Changes({}, {}, {(7, 1): Closed(5, 6)})))
    newest = load(store, 2, newest, marks(2))
    gone = Closed(0, 0, Stage.GONE)
    newest = load(store, 3, newest, Changes({0: {(7, 1): NO_MARK}}, {(7, 1): None}, {(7, 1): gone}))
    for number in range(4, DELTAS_MAX + 4):
        tables = read_tables(store, newest)
        assert tables.marks[0][7, 2] == 20
        assert (7, 1) not in tables.marks[0]
        assert (7, 1) not in tables.locations
        assert tables.closures.files == {}
        newest = load(store, number, newest, marks(number))
    assert len(newest.side[MARKS]) < DELTAS_MAX


def test_closures_and_the_fence_survive() -> None:
    """The tables also store which log files the agents have closed, and the fence (the offsets up
    to which the loader must load before it forgets these files). The next load needs both, because
    it does not read the audit topic's old messages again."""
    store = MemoryStore()
    files = {(7, 1): Closed(5, 6, Stage.FENCED), (7, 2): Closed(8, 9)}
    fence = {0: Fence(3, 10), 2: Fence(7)}
    newest = load(store, 1, None, Changes({}, {}, files), fence)
    newest = load(store, 2, newest, marks(4))
    assert read_tables(store, newest).closures == Closures(files, fence)
    assert len(newest.side[FENCE]) == 1
