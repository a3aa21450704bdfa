"""The live files of an output are the files that a load has added and no later load has removed.
The loader finds them from the output's manifests."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from skidway.errors import StateRefused
from skidway.loader.state import operations
from skidway.loader.state.live import live
from skidway.loader.state.manifest import MARKS, REJECTS, ROWS, DataFile, Manifest, SchemaChoice
from support.loading import WHOLE
from support.memory_store import MemoryStore


def load(number: int, *paths: str, removed: tuple[str, ...] = (), kind: str = ROWS) -> Manifest:
    """Returns the manifest of a load that adds the files `paths`, and removes the files `removed`
    of earlier loads."""
    files = tuple(DataFile(kind, path, f"staged/{path}", 1, 1, 0, 0) for path in paths)
    schema = SchemaChoice("s", number, number)
    return replace(WHOLE, number=number, files=files, removed=removed, schema=schema)


def found(*manifests: Manifest, kinds: Collection[str] = (ROWS,)) -> dict[str, int]:
    """Returns the live files of the given kinds after the last of the given manifests, as a
    dictionary that maps each file's path to its schema id."""
    store = MemoryStore()
    for each in manifests:
        store.put(each.path, each.to_json())
    files = operations.run(live(manifests[-1], kinds), store)
    return {path: each.schema_id or 0 for path, each in files.items()}


def test_an_output_has_what_loads_add_and_no_later_load_removes() -> None:
    """A file is live from the load that adds it to the load that removes it. If the manifest names
    no other schema for a file, the file has the schema of the load that added it."""
    first, second = load(1, "a", "b"), load(2, "c")
    merged = load(3, "d", removed=("a", "c"))
    assert found(first, second) == {"a": 1, "b": 1, "c": 2}
    assert found(first, second, merged) == {"b": 1, "d": 3}
    assert found(first, second, merged, load(4, removed=("d",))) == {"b": 1}


def test_a_file_may_follow_another_schema_than_its_load() -> None:
    """A compaction (a load that combines small files) writes files with the schema of the files
    that they replace, even if the topic now has a newer schema. The manifest's entry for such a
    file then names the older schema."""
    merged = load(2, "b", removed=("a",))
    (file,) = merged.files
    merged = replace(merged, files=(replace(file, schema_id=1),))
    assert found(load(1, "a"), merged) == {"b": 1}


def test_only_files_of_the_kinds_that_are_asked_for() -> None:
    """If only the live files (those that no later load has removed) of rows are requested, files of
    rejects are left out. Files of the loader's tables are always left out."""
    loads = [load(1, "a"), load(2, "r", kind=REJECTS), load(3, "m", kind=MARKS)]
    assert found(*loads) == {"a": 1}
    assert found(*loads, kinds=(ROWS, REJECTS, MARKS)) == {"a": 1, "r": 2}


def test_a_missing_manifest_stops() -> None:
    """If a manifest in the sequence is gone, the loader cannot know which files are live (not
    removed by a later load), so it stops."""
    with pytest.raises(StateRefused, match="vanished"):
        found(load(2, "b"))
