"""Tests which files `skidway.table` reads."""

from __future__ import annotations

import pytest

import skidway
from skidway.errors import SkidwayError
from skidway.loader import table
from skidway.loader.store import Store
from skidway.loader.table import files_of
from support.loading import TOPIC
from support.memory_loading import MemoryLoading


@pytest.fixture
def loading() -> MemoryLoading:
    """An output with two loads, each with one file."""
    made = MemoryLoading()
    for _ in range(2):
        made.write(10)
        made.run()
    return made


def files(store: Store) -> list[str]:
    return [path.rpartition("/")[2] for path in files_of(store, TOPIC, lambda _: None)]


def test_the_name_for_analysts_leads_to_the_loaders_function() -> None:
    """`skidway.table` is the loader's function `table`, although the package `skidway` itself does
    not import the loader."""
    assert skidway.table is table.table


def test_only_files_of_the_output_are_read(loading: MemoryLoading) -> None:
    """`skidway.table` reads only the files that the manifests list. It reads neither a copy that
    somebody put into the directory, nor a file that a load removed and that somebody put back."""
    (first, second) = files(loading.store)
    assert (first, second) == ("part-1-0-0.parquet", "part-2-0-10.parquet")
    path = next(each.path for each in loading.manifest(1).files if each.kind == "rows")
    data = loading.store.read(path) or b""
    loading.store.put(path.replace("part-1", "part-9"), data)
    loading.compact()
    loading.store.put(path, data)
    assert files(loading.store) == ["rows-3-0.parquet"]


def test_a_load_that_moves_its_files_is_waited_for(loading: MemoryLoading) -> None:
    """While the newest load moves its files into place, `skidway.table` waits, and then reads all
    files of this load."""
    manifest = loading.manifest(2)
    move = next(each for each in manifest.files if each.kind == "rows")
    loading.store.rename(move.path, move.staged)
    waits = []

    def pause(_seconds: float) -> None:
        waits.append(1)
        loading.store.rename(move.staged, move.path)

    assert len(files_of(loading.store, TOPIC, pause)) == 2
    assert waits == [1]


def test_a_load_that_never_moves_its_files_is_named(loading: MemoryLoading) -> None:
    """If the loader ended after a commit and before it moved the files, the error of
    `skidway.table` names the command that completes the load."""
    move = next(each for each in loading.manifest(2).files if each.kind == "rows")
    loading.store.rename(move.path, move.staged)
    with pytest.raises(SkidwayError, match=r"load 2 of logs is committed.*skidway load run"):
        files(loading.store)


def test_a_topic_without_loads_is_named(loading: MemoryLoading) -> None:
    """A topic that was never loaded is an error, not an empty table, because its name may be
    misspelt."""
    with pytest.raises(SkidwayError, match="no load of the topic others"):
        files_of(loading.store, "others")
