"""Tests how the recount finds out, from checkpoints and manifests, which files belong to an output.
A "checkpoint" here is a file that the loader writes in place of older manifests. The loader then
deletes these manifests. This is called folding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from skidway.audit.recount import committed_files, manifests
from skidway.audit.recount.faults import Kind
from skidway.audit.recount.manifests import ManifestUnreadable
from skidway.audit.recount.named_files import NamedFiles
from skidway.loader.state import layout
from support import folded_output
from support.folded_output import TOPIC, load, loaded, loads
from support.memory_store import MemoryStore
from support.promises import promise

LAST = 11
REMOVED = f"{TOPIC}/rows-4"


@pytest.fixture
def named() -> Iterator[NamedFiles]:
    with closing(NamedFiles()) as files:
        yield files


@pytest.fixture
def folded() -> MemoryStore:
    """An output whose manifests 1 to 6 were replaced by a checkpoint (a file with the content of
    these manifests), and then deleted."""
    store = MemoryStore()
    loads(store, LAST)
    return store


def unfolded() -> MemoryStore:
    store = MemoryStore()
    for number in range(1, LAST + 1):
        loaded(store, load(number, [REMOVED] if number == 5 else ()), keep=100)
    return store


@promise("5 checkpoint")
def test_the_recount_finds_the_same_files_after_folding(
    folded: MemoryStore, named: NamedFiles
) -> None:
    """A recount of an output counts the same files whether a checkpoint (one file) has replaced the
    old manifests or all manifests are still there."""
    found = committed_files.read(folded, TOPIC, named)
    with closing(NamedFiles()) as whole:
        assert committed_files.read(unfolded(), TOPIC, whole) == found == (LAST, [])
        expected = {file for file in whole.all() if file.kind != "marks"}
        assert {file for file in named.all() if file.kind != "marks"} == expected
        assert named.count() == whole.count() == 2 * LAST - 1


def test_a_manifest_that_was_created_again_does_not_count(
    folded: MemoryStore, named: NamedFiles
) -> None:
    """A loader may continue after a long pause and create a manifest. If a checkpoint (a file that
    replaces older manifests) has already replaced a manifest with the same number, the recount
    ignores the later manifest."""
    late = load(2)
    folded.put(late.path, late.to_json())
    assert manifests.loads(folded, TOPIC) == list(range(7, LAST + 1))
    assert committed_files.read(folded, TOPIC, named) == (LAST, [])


def test_a_missing_manifest_is_named(folded: MemoryStore, named: NamedFiles) -> None:
    """A missing manifest is a fault, unless a checkpoint (a file that replaces older manifests) has
    replaced it."""
    folded.delete(layout.manifest(TOPIC, 9))
    _, [fault, *_] = committed_files.read(folded, TOPIC, named)
    assert (fault.kind, fault.what) == (Kind.NO_MANIFEST, f"manifest 9 of {TOPIC} is missing")


@promise("5 checkpoint")
def test_a_checkpoint_that_names_other_files_is_named(
    folded: MemoryStore, named: NamedFiles
) -> None:
    """The loader continues from the newest checkpoint (a file that replaces older manifests), so
    the recount compares this checkpoint with the manifests before it. Any difference is a fault."""
    newest = folded_output.checkpoints(folded)[-1]
    path = layout.checkpoint(TOPIC, *newest)
    first, *lines = (folded.read(path) or b"").splitlines(keepends=True)
    fewer = first.replace(b'"files":19', b'"files":18')
    assert fewer != first
    folded.put(path, fewer + b"".join(lines[1:]))
    _, [fault] = committed_files.read(folded, TOPIC, named)
    assert (fault.kind, fault.path) == (Kind.CHECKPOINT, path)
    assert "names 18 files; the manifests name 19" in fault.what
    folded.put(path, first + b"".join([lines[0].replace(b'"rows":1,', b'"rows":2,'), *lines[1:]]))
    _, [fault] = committed_files.read(folded, TOPIC, named)
    assert "the manifests name it otherwise" in fault.what


def test_a_checkpoint_that_cannot_be_read_stops(folded: MemoryStore, named: NamedFiles) -> None:
    """If the checkpoint that replaces deleted manifests cannot be read, the recount stops, because
    nothing else says which files belong to the output."""
    oldest = folded_output.checkpoints(folded)[0]
    folded.put(layout.checkpoint(TOPIC, *oldest), b"{}\n")
    with pytest.raises(ManifestUnreadable, match="is no checkpoint"):
        committed_files.read(folded, TOPIC, named)


def test_loads_during_the_recount_that_are_folded_already(folded: MemoryStore) -> None:
    """If loads add manifests while the recount runs, and a checkpoint (one file) replaces these
    manifests before the recount reads them, the recount ends with an error. It does not guess which
    files these manifests removed."""
    assert manifests.loads_after(folded, TOPIC, 8) == [9, 10, 11]
    with pytest.raises(ManifestUnreadable, match="recount a shorter time"):
        manifests.loads_after(folded, TOPIC, 3)
