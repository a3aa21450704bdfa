"""Tests each rule of a load's commit by itself. The models in tests/model test how these rules work
together."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest

from skidway.errors import StateRefused
from skidway.kafka.source import Source
from skidway.loader.state import commit, layout, operations
from skidway.loader.state.manifest import (
    REJECTS,
    ROWS,
    DataFile,
    Manifest,
    PartitionRange,
    Replacement,
)
from skidway.loader.state.moves import Move, Settle, settle
from skidway.loader.state.operations import Delete, Rename, Replace
from support.memory_store import MemoryStore
from support.promises import promise

TOPIC = "logs"
MINE, OTHER = "a" * 32, "b" * 32


def manifest(number: int = 1, uuid: str = MINE, rows: bytes = b"rows") -> Manifest:
    path = f"{TOPIC}/dt=2026-01-01/hour=00/part-{number}-0-0.parquet"
    staged = f"{layout.staging(TOPIC, number, uuid)}/rows-0-0-0-0.parquet"
    return Manifest(
        number=number, uuid=uuid, created=0, program="", producer=f"/out/{TOPIC}", epoch=1,
        cluster="offline", cluster_id="c", topic=TOPIC, topic_id="t",
        source=Source("dc1", "s", TOPIC, "t"), partitions=(PartitionRange(0, 0, number),),
        files=(DataFile(ROWS, path, staged, len(rows), 1, 0, 0),), schema=None,
    )  # fmt: skip


def staged(store: MemoryStore, of: Manifest, rows: bytes = b"rows") -> Manifest:
    store.put(of.files[0].staged, rows)
    return of


def place(store: MemoryStore, of: Manifest) -> bytes | None:
    return store.read(of.files[0].path)


def performed(steps: operations.Steps[Any], store: MemoryStore) -> list[operations.Operation]:
    """Performs the steps of a commit on a store, and returns the operations that the steps yielded,
    in order."""
    order: list[operations.Operation] = []
    answer = None
    with contextlib.suppress(StopIteration):
        while True:
            order.append(steps.send(answer))
            answer = operations.perform(order[-1], store)
    return order


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (5, None, Settle.RENAME),
        (None, 5, Settle.DONE),
        (5, 5, Settle.DELETE_SOURCE),
        (None, None, Settle.BOTH_GONE),
        (5, 4, Settle.STOP),
        (4, None, Settle.STOP),
        (4, 5, Settle.STOP),
        (None, 4, Settle.STOP),
    ],
)
def test_a_move_into_place(source: int | None, target: int | None, expected: Settle) -> None:
    """The manifest contains the length of each committed file. A file of another length is never
    moved or deleted. If such a file is at the final path of a committed file, it does not count as
    the committed file."""
    assert settle(Move("s", "t", 5), source, target) is expected


def test_a_commit_moves_everything_and_tidies_up() -> None:
    """After a commit the load's files are at their final paths, the manifest exists, and the
    staging directory is gone."""
    store = MemoryStore()
    mine = staged(store, manifest())
    assert operations.run(commit.commit(mine), store)
    assert place(store, mine) == b"rows"
    assert store.names(layout.stagings(TOPIC)) == []
    assert operations.run(commit.begin(TOPIC), store) == mine


def test_a_staged_file_of_another_length_is_never_committed() -> None:
    """If a file in the staging directory has another length than its task has reported, the load
    stops before anything is visible to readers."""
    store = MemoryStore()
    mine = staged(store, manifest(), b"row")
    with pytest.raises(StateRefused, match="3 bytes instead of 4"):
        operations.run(commit.commit(mine), store)
    assert store.read(mine.path) is None


@promise("5 staging")
def test_the_names_of_staged_files_are_durable_before_the_manifest() -> None:
    """The staging directory is synced after the lengths of its files are checked and before the
    manifest is created. So if a manifest survives a power loss, the files that it names also
    survive."""
    mine, store = manifest(), MemoryStore()
    staged(store, mine)
    order = performed(commit.commit(mine), store)
    synced = order.index(operations.Sync((mine.staging,)))
    (created,) = [at for at, each in enumerate(order) if isinstance(each, operations.Create)]
    looked = [
        at for at, each in enumerate(order) if each == operations.Length(mine.files[0].staged)
    ]
    assert looked[0] < synced < created


def test_the_columns_come_before_the_rows() -> None:
    """Each topic has a file without rows that shows the newest columns. A commit replaces this file
    before it moves the first file of rows. If the same load is finished a second time, nothing
    changes."""
    store = MemoryStore()
    store.put(layout.columns(TOPIC), b"old")
    mine = staged(store, manifest())
    mine = replace(mine, columns=Replacement(layout.columns(TOPIC), f"{mine.staging}/columns"))
    store.put(f"{mine.staging}/columns", b"new")
    moved = [
        each for each in performed(commit.commit(mine), store) if isinstance(each, Replace | Rename)
    ]
    assert [type(each) for each in moved] == [Replace, Rename]
    operations.run(commit.finish(mine), store)
    assert store.read(layout.columns(TOPIC)) == b"new"


@promise("5 staging")
def test_a_start_looks_at_the_newest_load_and_at_what_is_staged_only() -> None:
    """At its start, a loader checks only the newest load and the files in staging directories
    (files of loads that are not finished). So the start takes the same time however many loads
    there are. If files of older loads are deleted, only the audit's recount notices it."""
    store = MemoryStore()
    first, second = staged(store, manifest(1)), staged(store, manifest(2))
    for each in (first, second):
        assert operations.run(commit.commit(each), store)
    store.delete(first.files[0].path)
    assert operations.run(commit.begin(TOPIC), store) == second


def test_the_loser_leaves_nothing_but_the_winner() -> None:
    """If another load has committed under the same number, this load is not committed, and its
    staging directory is deleted."""
    store = MemoryStore()
    other = staged(store, manifest(uuid=OTHER))
    mine = staged(store, manifest())
    assert operations.run(commit.commit(other), store)
    assert not operations.run(commit.commit(mine), store)
    assert store.names(layout.stagings(TOPIC)) == []
    assert operations.run(commit.begin(TOPIC), store) == other


def test_a_loser_whose_staging_was_deleted_has_lost_and_not_failed() -> None:
    """If another load has committed under the same number, this load reports a lost race, even if a
    later load has deleted this load's staging directory. This load reports no failure, because
    nothing is damaged."""
    store = MemoryStore()
    other = staged(store, manifest(uuid=OTHER))
    operations.run(commit.commit(other), store)
    assert not operations.run(commit.commit(manifest()), store)


@pytest.mark.parametrize("happened", [True, False])
def test_a_lost_answer_is_looked_up(happened: bool) -> None:
    """If the store's answer to the creation of a manifest is lost, the loader reads the manifest.
    So the load is committed exactly once, whether or not the request had created the manifest."""
    store = MemoryStore()
    mine = staged(store, manifest())
    store.lose_answer = happened
    assert operations.run(commit.commit(mine), store)
    assert place(store, mine) == b"rows"


def test_a_store_that_never_answers_ends_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load tries a limited number of times to create its manifest. Then it ends uncommitted, with
    an error of one sentence."""
    store = MemoryStore()
    mine = staged(store, manifest())
    monkeypatch.setattr(operations, "perform", _never_created)
    with pytest.raises(StateRefused, match="could not be created in 10 attempts"):
        operations.run(commit.commit(mine), store)


def test_a_start_finishes_what_a_commit_left() -> None:
    """When a load was killed after its manifest was created and before its files were moved, the
    next start of a loader moves the files."""
    store = MemoryStore()
    mine = staged(store, manifest())
    store.put(mine.path, mine.to_json())
    assert operations.run(commit.begin(TOPIC), store) == mine
    assert place(store, mine) == b"rows"
    assert store.names(layout.stagings(TOPIC)) == []


def test_a_start_deletes_the_source_of_a_copy() -> None:
    """If a file of the right length exists both in the staging directory and at its final path, the
    next start of a loader deletes the staged file."""
    store = MemoryStore()
    mine = staged(store, manifest())
    store.put(mine.path, mine.to_json())
    store.put(mine.files[0].path, b"rows")
    operations.run(commit.begin(TOPIC), store)
    assert place(store, mine) == b"rows"
    assert store.length(mine.files[0].staged) is None


def test_a_start_keeps_staging_of_a_load_without_manifest() -> None:
    """When a loader starts, it keeps the staged files of a load whose number has no manifest yet,
    because the loader that staged these files may still be alive."""
    store = MemoryStore()
    undecided = staged(store, manifest(number=1))
    assert operations.run(commit.begin(TOPIC), store) is None
    assert store.length(undecided.files[0].staged) == 4


def test_a_start_deletes_staging_of_losers() -> None:
    """Several loaders may stage files for a load of the same number. After one of these loads is
    committed, the next start of a loader deletes the files that the other loaders staged."""
    store = MemoryStore()
    winner = staged(store, manifest(uuid=OTHER))
    operations.run(commit.commit(winner), store)
    left = staged(store, manifest())
    operations.run(commit.begin(TOPIC), store)
    assert store.length(left.files[0].staged) is None


def test_a_committed_file_that_is_nowhere_stops_by_name() -> None:
    """If a committed file is gone, the next start of a loader fails and names the file, because
    lost rows are never ignored silently."""
    store = MemoryStore()
    mine = manifest()
    store.put(mine.path, mine.to_json())
    with pytest.raises(StateRefused, match=r"part-1-0-0\.parquet, and it is neither there"):
        operations.run(commit.begin(TOPIC), store)


def test_a_committed_file_of_another_length_stops_by_name() -> None:
    """If the length of a committed file differs from the length in the manifest, the file is
    damaged. The next start of a loader fails, and the error contains both lengths."""
    store = MemoryStore()
    mine = manifest()
    store.put(mine.path, mine.to_json())
    store.put(mine.files[0].path, b"ro")
    with pytest.raises(StateRefused, match="with 4 bytes; found 2 there"):
        operations.run(commit.begin(TOPIC), store)


def test_a_missing_manifest_stops_by_name() -> None:
    """If a manifest before the newest one is missing, the next start of a loader fails, and nothing
    is loaded."""
    store = MemoryStore()
    for number in (1, 3):
        store.put(layout.manifest(TOPIC, number), manifest(number).to_json())
    with pytest.raises(StateRefused, match=r"0{19}2\.json is missing although load 3"):
        operations.run(commit.begin(TOPIC), store)


def test_strange_files_are_none_of_ours() -> None:
    """If other programs put files among the manifests and staging directories, the loader does not
    touch these files."""
    store = MemoryStore()
    store.put(f"{layout.state(TOPIC)}/notes.txt", b"")
    store.put(f"{layout.stagings(TOPIC)}/mine/x", b"")
    assert operations.run(commit.begin(TOPIC), store) is None
    assert store.length(f"{layout.stagings(TOPIC)}/mine/x") == 0


def _never_created(operation: operations.Operation, store: MemoryStore) -> object:
    if isinstance(operation, operations.Create):
        return operations.Created.UNCLEAR
    return _perform(operation, store)


_perform = operations.perform


def test_rows_without_any_manifest_are_not_loaded_over() -> None:
    """If an output has rows but no manifest, a first load is refused before it writes anything,
    because it would double these rows."""
    store = MemoryStore()
    store.put(f"{TOPIC}/dt=2026-01-01/hour=00/part-1-0-0.parquet", b"rows")
    with pytest.raises(StateRefused, match="logs has rows, but no manifest"):
        operations.run(commit.begin(TOPIC), store)


def test_what_else_lies_beside_the_rows_is_no_obstacle() -> None:
    """Other files in a topic's folder do not prevent a first load. Only directories of rows prevent
    it."""
    store = MemoryStore()
    store.put(f"{TOPIC}/README", b"")
    assert operations.run(commit.begin(TOPIC), store) is None


@promise("5 reload")
@pytest.mark.parametrize("left", [b"", b"ro"])
def test_files_that_are_given_up_may_be_gone_or_damaged(left: bytes) -> None:
    """If a file of the newest load is gone or damaged, the loader begins only a load that replaces
    this file."""
    store = MemoryStore()
    newest = staged(store, manifest())
    assert operations.run(commit.commit(newest), store)
    path = newest.files[0].path
    store.delete(path)
    if left:
        store.put(path, left)
    before = store.snapshot
    hour = layout.hour_of(path)
    for others in (layout.NO_HOURS, layout.Hours("", hour), layout.Hours(f"{hour}~", "~")):
        with pytest.raises(StateRefused, match="committed"):
            operations.run(commit.begin(TOPIC, others), store)
    own = layout.Hours(hour, f"{hour}~")
    assert operations.run(commit.begin(TOPIC, own), store) == newest
    assert store.snapshot == before


def test_a_staged_file_is_never_given_up() -> None:
    """A load may have to replace a damaged committed file. If a copy of this file is still in a
    staging directory, the load does not begin. An operator has to decide which copy is right."""
    store = MemoryStore()
    newest = staged(store, manifest())
    assert operations.run(commit.commit(newest), store)
    staged(store, newest)
    store.put(newest.files[0].path, b"other rows")
    with pytest.raises(StateRefused, match="found 10"):
        operations.run(commit.begin(TOPIC, layout.Hours("", "~")), store)


@promise("5 reload")
def test_a_directory_that_gets_no_file_comes_first() -> None:
    """A load that replaces files may remove files from a directory into which it moves no new file.
    The load deletes these files before it moves its first file. So as long as any removed file
    still exists, at least one new file is still in the staging directory."""
    store = MemoryStore()
    first = staged(store, manifest())
    assert operations.run(commit.commit(first), store)
    other = DataFile(REJECTS, "a/reject-2-0-0.parquet", f"{manifest(2).staging}/x", 4, 1, 0, 0)
    removed = ("a/reject-1-0-0.parquet", first.files[0].path)
    second = replace(manifest(2), files=(other,), removed=removed)
    store.put(other.staged, b"rows")
    order = performed(commit.commit(second), store)
    assert order.index(Delete(first.files[0].path)) < order.index(Rename(other.staged, other.path))
