"""The loader folds old manifests: it combines them into one file, a checkpoint, and then deletes
them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from skidway.errors import StateRefused
from skidway.loader.state import chain, commit, folding, layout, operations
from skidway.loader.state.folding import fold
from skidway.loader.state.live import KINDS, live
from skidway.loader.state.manifest import ROWS
from support.folded_output import EVERY, KEEP, TOPIC, checkpoints, load, loaded, loads, manifests
from support.memory_store import MemoryStore
from support.promises import promise


@promise("5 checkpoint")
def test_a_checkpoint_stands_for_the_manifests_before_it() -> None:
    """After old manifests were folded (replaced by a checkpoint), an output has the same files as
    before, although most manifests are gone."""
    folded, whole = MemoryStore(), MemoryStore()
    newest = loads(folded, 11)
    for number in range(1, 12):
        loaded(whole, load(number, [f"{TOPIC}/rows-4"] if number == 5 else ()), keep=100)
    assert manifests(whole) == list(range(1, 12))
    assert manifests(folded) == list(range(7, 12))
    for kinds in (KINDS, (ROWS,)):
        assert operations.run(live(newest, kinds), folded) == operations.run(
            live(newest, kinds), whole
        )
    assert f"{TOPIC}/rows-4" not in operations.run(live(newest), folded)


@promise("5 checkpoint")
@pytest.mark.parametrize(("keep", "every"), [(4, 2), (5, 3), (4, 7), (1, 1)])
def test_every_kept_manifest_has_its_files_and_its_tables(keep: int, every: int) -> None:
    """For each load whose manifest is kept, the output's files and the tables can still be read as
    they were after this load. The table files that only older loads need are deleted."""
    store = MemoryStore()
    for number in range(1, 31):
        loaded(store, load(number, [f"{TOPIC}/rows-4"] if number == 5 else ()), keep, every)
    found = operations.run(chain.chain(TOPIC), store)
    assert found.newest == 30
    assert 30 - 2 * every - keep < found.oldest <= 30 - keep + 1
    for manifest in operations.run(chain.read_all(TOPIC, found.oldest, 31), store):
        rows = operations.run(live(manifest), store)
        assert {each.load for each in rows.values()} == {*range(1, manifest.number + 1)} - {4}
        assert all(store.length(path) for path in manifest.side["marks"])
    names = store.names(layout.tables(TOPIC, "marks"))
    oldest = operations.run(chain.read(TOPIC, found.oldest), store)
    first = int(oldest.side["marks"][0][-28:-8])
    assert names == [f"{number:020}.parquet" for number in range(first, 31)]
    assert len(checkpoints(store)) <= keep // every + 2


def test_objects_stay_few() -> None:
    """The number of manifests, of checkpoints (files that replace old manifests) and of files of
    tables does not grow with the number of loads."""
    store = MemoryStore()
    counts = []
    for number in range(1, 61):
        loaded(store, load(number))
        counts.append(sum(1 for _ in store.files(layout.state(TOPIC))))
    assert max(counts[40:]) == max(counts[20:40])


@promise("5 checkpoint")
def test_a_late_loader_does_not_take_a_folded_number() -> None:
    """A loader may pause before its commit. Meanwhile another load may commit under the same
    number, and its manifest may be folded (replaced by a checkpoint) and deleted. When the paused
    loader continues, it can create a manifest with this number, but it finds out that it has lost
    the race."""
    store = MemoryStore()
    late = replace(load(2), uuid="b" * 32)
    loads(store, 11)
    for file in late.files:
        store.put(file.staged, b"x")
    assert operations.run(commit.commit(late), store) is False
    assert operations.run(chain.newest_manifest(TOPIC), store) == load(11)
    assert store.length(late.files[0].path) is not None  # the file of the other load is still there
    loaded(store, load(12))
    assert 2 not in manifests(store)


@promise("5 checkpoint")
def test_a_late_loader_whose_staged_files_were_deleted_has_lost() -> None:
    """A loader may pause before its commit. Meanwhile another load may commit under the same
    number, and its manifest may be folded (replaced by a checkpoint). Then another loader may
    delete the paused load's staged files when it starts. When the paused loader continues, it
    reports a lost race, and no damage."""
    store = MemoryStore()
    loads(store, 11)
    late = replace(load(2), uuid="b" * 32)
    assert operations.run(commit.commit(late), store) is False
    assert operations.run(commit.is_lost(late), store)


@promise("5 checkpoint")
def test_a_reader_does_not_take_a_folded_manifest() -> None:
    """If a late loader writes a manifest with a number whose manifest was already replaced by a
    checkpoint, a reader does not use the late manifest."""
    store = MemoryStore()
    newest = loads(store, 11)
    late = replace(load(2), uuid="b" * 32)
    store.put(late.path, late.to_json())
    with pytest.raises(chain.Folded):
        operations.run(chain.read(TOPIC, 2), store)
    with pytest.raises(chain.Folded):
        operations.run(chain.read_all(TOPIC, 2, 9), store)
    with pytest.raises(chain.Folded):
        operations.run(live(load(3)), store)
    assert operations.run(live(newest), store)


@promise("5 checkpoint")
def test_a_staging_directory_of_a_folded_load_is_deleted() -> None:
    """When a load's manifest is folded (replaced by a checkpoint), all files of the load are at
    their final paths. So the next start of a loader deletes every staging directory that has this
    load's number."""
    store = MemoryStore()
    store.put(f"{layout.staging(TOPIC, 2, 'b' * 32)}/owner", b"x")
    newest = loads(store, 11)
    for file in newest.files:
        store.put(file.path, b"x")
    assert operations.run(commit.begin(TOPIC), store) == newest
    assert store.names(layout.stagings(TOPIC)) == []


@promise("5 checkpoint")
def test_a_late_end_of_a_folded_load_changes_nothing() -> None:
    """A loader may pause while it moves files. Meanwhile its manifest may be folded (replaced by a
    checkpoint), and a later load may remove one of its files. When the paused loader continues, it
    ends without an error and changes nothing."""
    store = MemoryStore()
    loads(store, 11)
    before = store.snapshot
    store.delete(f"{TOPIC}/rows-2")  # as if a later load had removed this file
    operations.run(commit.finish(load(2)), store)
    assert store.snapshot == before - {(f"{TOPIC}/rows-2", b"x")}


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda data: data.replace(b'"rows":1,', b'"rows":2,'), "CRC-32C"),
        (lambda data: data[:-20], "CRC-32C"),
        (lambda data: data.replace(b'"load":10,"files"', b'"load":11,"files"'), "load 10"),
        (lambda data: b"", "damaged"),
    ],
)
def test_a_damaged_checkpoint_is_not_used(spoil: Callable[[bytes], bytes], words: str) -> None:
    """If the newest checkpoint (a file that replaces old manifests) is damaged, the loader uses an
    older checkpoint, and the manifests that were written after this older checkpoint. If no older
    checkpoint can be used, the loader stops with an error that names the damage."""
    store = MemoryStore()
    newest = loads(store, 11)
    found = operations.run(live(newest), store)
    path = layout.checkpoint(TOPIC, *checkpoints(store)[-1])
    store.put(path, spoil(store.read(path) or b""))
    assert operations.run(live(newest), store) == found
    assert operations.run(fold(loaded(store, load(12)), KEEP, EVERY), store) is False
    assert checkpoints(store)[-1].load == 12, "folding goes on"
    for each in checkpoints(store)[:-2]:
        store.delete(layout.checkpoint(TOPIC, *each))
    with pytest.raises(StateRefused, match=words):
        operations.run(live(newest), store)


def test_without_a_usable_checkpoint_the_first_manifests_serve() -> None:
    """If the only checkpoint (a file that replaces old manifests) is damaged, but all manifests
    exist, the loader finds the output's files from the manifests."""
    store = MemoryStore()
    newest = loads(store, 3)
    found = operations.run(live(newest), store)
    store.put(layout.checkpoint(TOPIC, *checkpoints(store)[0]), b"")
    assert operations.run(live(newest), store) == found


@pytest.mark.parametrize("gone", [7, 9, 11])
def test_a_missing_manifest_stops(gone: int) -> None:
    """If a manifest other than the newest one is missing, and no checkpoint (a file that replaces
    old manifests) has replaced it, the loader stops and names the first missing manifest. If the
    newest manifest is missing, the loader does not stop, because the other manifests do not show
    that it ever existed."""
    store = MemoryStore()
    loads(store, 11)
    store.delete(layout.manifest(TOPIC, gone))
    if gone == 11:  # the newest manifest; only the audit topic can show that it is missing
        assert operations.run(chain.newest_manifest(TOPIC), store) == load(10)
        return
    with pytest.raises(StateRefused, match=f"{gone:020}.json is missing"):
        operations.run(chain.newest_manifest(TOPIC), store)


def test_checkpoints_without_manifests_stop() -> None:
    """If all manifests are gone, but a checkpoint (a file that replaces old manifests) exists, the
    topic was loaded before. The loader stops, because another first load would double the rows."""
    store = MemoryStore()
    loads(store, 11)
    for number in manifests(store):
        store.delete(layout.manifest(TOPIC, number))
    with pytest.raises(StateRefused, match="is missing"):
        operations.run(commit.begin(TOPIC), store)


def test_few_loads_have_no_checkpoint() -> None:
    """As long as an output has only a few loads, the loader writes no checkpoint (a file that
    replaces old manifests)."""
    store = MemoryStore()
    operations.run(fold(loaded(store, load(1)), KEEP, EVERY), store)
    assert not checkpoints(store)
    assert manifests(store) == [1]


@pytest.mark.parametrize(("keep", "every"), [(1, 10), (40, 40), (1000, 100)])
def test_who_keeps_few_manifests_folds_them_early(keep: int, every: int) -> None:
    """The loader writes a checkpoint (a file that replaces old manifests) after every hundred
    loads. If it keeps fewer than a hundred manifests (`keep`), it writes a checkpoint after every
    `keep` loads. If it keeps fewer than ten, it writes one after every ten loads."""
    store = MemoryStore()
    for number in range(1, 2 * every + 1):
        newest = loaded(store, load(number), keep=10_000, every=10_000)
        assert operations.run(fold(newest, keep), store) == (number % every == 0)


def test_the_first_checkpoint_of_an_old_output(monkeypatch: pytest.MonkeyPatch) -> None:
    """If an output has very many manifests, each load deletes only a limited number of those that a
    checkpoint (a file that replaces old manifests) has replaced."""
    monkeypatch.setattr(folding, "DELETIONS_MAX", 3)
    store = MemoryStore()
    for number in range(1, 21):
        each = load(number)
        for file in each.files:
            store.put(file.path, b"x")
        store.put(each.path, each.to_json())
    left = []
    for number in range(21, 81):
        loaded(store, load(number))
        left.append(len(manifests(store)))
        assert len(operations.run(live(load(number)), store)) == number
    assert max(before - after for before, after in pairwise(left)) <= 3
    assert left[-1] <= KEEP + EVERY + 1
