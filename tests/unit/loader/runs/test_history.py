"""What each load committed."""

from __future__ import annotations

from skidway.loader.runs.history import COLUMNS, topic_history
from support.loading import TOPIC
from support.memory_loading import MemoryLoading


def test_the_history_has_what_each_load_committed() -> None:
    """The history lists the newest loads, oldest first, with their offsets, rows and files. A load
    that rewrote files has no rows, and the number of files that it replaced."""
    loading = MemoryLoading()
    for count in (20, 30):
        loading.write(count)
        loading.run()
    loading.compact()
    found = topic_history(loading.store, TOPIC, 2)
    assert [tuple(each) for each in found] == [COLUMNS] * 2
    names = ("load", "offsets", "rows", "files", "replaced", "schema")
    assert [[row[name] for name in names] for row in found] == [
        [2, 30, 30, 1, 0, 1],
        [3, 0, 0, 1, 2, 1],
    ]
    assert found[1]["bytes"] == loading.manifest(3).files[0].length
    assert found[0]["at"] == "2023-11-14T22:13:20Z"
    assert topic_history(loading.store, "other", 5) == []
