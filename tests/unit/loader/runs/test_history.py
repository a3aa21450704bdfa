"""The history of a topic's loads shows what each load committed."""

from __future__ import annotations

from skidway.loader.runs.history import COLUMNS, topic_history
from skidway.loader.runs.status import newest_rate
from support.loading import TOPIC
from support.memory_loading import MemoryLoading


def test_the_history_has_what_each_load_committed() -> None:
    """The history lists the newest loads, oldest first, with their offsets, rows and files. For a
    load that rewrote files, it shows the number of replaced files instead of the rows."""
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


def test_the_history_tells_how_fast_each_load_was() -> None:
    """The history shows each load's duration (the start of Spark does not count) and its rows per
    second. For a load that rewrites files, the history shows the duration, but no rate."""
    loading = MemoryLoading()
    loading.slice_s = 4.0
    for count in (20, 80):
        loading.write(count)
        loading.run()
    loading.compact()
    found = topic_history(loading.store, TOPIC, 3)
    assert [(row["seconds"], row["rows_per_second"]) for row in found] == [
        (4.0, 5), (4.0, 20), (0.0, None),
    ]  # fmt: skip


def test_a_plan_tells_time_by_the_largest_of_the_newest_loads() -> None:
    """`load plan` estimates a load's duration from the rate (rows per second) of one of the newest
    loads: the one with the most rows. The rate of a load with few rows says little about large
    loads. If no load has a rate, there is no estimate."""
    loading = MemoryLoading()
    assert newest_rate(loading.store, TOPIC) is None
    loading.slice_s = 4.0
    for count in (20, 100, 2):
        loading.write(count)
        loading.run()
    loading.compact()
    assert newest_rate(loading.store, TOPIC) == 25.0
