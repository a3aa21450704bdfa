"""Tests which small files are combined in one group. Each group becomes one file."""

from __future__ import annotations

from skidway.loader.rewriting.groups import to_compact, to_convert
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import ROWS, DataFile


def file(hour: int, load: int, length: int, schema: int = 1) -> LiveFile:
    path = f"t/dt=2026-01-01/hour={hour:02}/part-{load}-0-0.parquet"
    made = DataFile(ROWS, path, "", length, 1, 0, 0)
    return LiveFile(made, load, schema)


def loads(groups: object) -> list[list[int]]:
    return [[each.load for each in group.files] for group in groups]  # type: ignore[attr-defined]


def test_small_files_of_an_hour_are_put_together() -> None:
    """A compaction combines the small files of one hour into one file, in the order of their
    loads."""
    files = [file(1, 10, 10), file(0, 3, 10), file(0, 1, 10), file(1, 2, 10)]
    groups = to_compact(files, 100)
    assert loads(groups) == [[1, 3], [2, 10]]
    assert [group.folder[-7:] for group in groups] == ["hour=00", "hour=01"]


def test_a_group_has_at_most_the_target_size() -> None:
    """A compaction combines small files as long as the new file is not larger than the target
    size."""
    assert loads(to_compact([file(0, at, 40) for at in range(5)], 100)) == [[0, 1], [2, 3]]


def test_large_files_and_files_that_are_alone_stay() -> None:
    """A compaction (a load that combines small files) changes neither a file of at least half the
    target size nor a small file that is alone in its hour."""
    assert loads(to_compact([file(0, 1, 50), file(0, 2, 10), file(1, 3, 10)], 100)) == []
    assert loads(to_compact([file(0, 1, 49), file(0, 2, 10)], 100)) == [[1, 2]]


def test_files_of_different_schemas_stay_apart() -> None:
    """A compaction combines files only if they have the columns of the same schema."""
    files = [file(0, 1, 10), file(0, 2, 10, 2), file(0, 3, 10), file(0, 4, 10, 2)]
    assert loads(to_compact(files, 100)) == [[1, 3], [2, 4]]


def test_every_old_file_is_converted() -> None:
    """Each file of an older schema, whatever its size, is rewritten as a file of its own with the
    columns of the newest schema. Files of the newest schema stay as they are."""
    files = [file(0, 1, 500), file(0, 2, 10), file(0, 3, 10, 2), file(1, 4, 10)]
    assert loads(to_convert(files, {1})) == [[1], [2], [4]]
