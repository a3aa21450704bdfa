"""Two kinds of loads rewrite files. `load compact` combines small files. Before the first rows of a
new schema are written, a special load gives older files the columns of this schema."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest

from skidway.loader.reading.columns import OWN
from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.compaction import RACES_MAX
from skidway.loader.runs.reload import Wish
from skidway.loader.state import layout
from skidway.loader.state.layout import Hours
from skidway.loader.state.manifest import ROWS
from skidway.schemas.wire import prefix
from support.loading import CHOICE, GROWN, SCHEMA, SCHEMA_ID, TOPIC, Record, once
from support.memory_loading import MemoryLoading
from support.promises import promise


def with_level(kind: str, default: object) -> str:
    """Returns the schema CHOICE with an additional field `level`."""
    record = json.loads(CHOICE)
    record["fields"].append({"name": "level", "type": kind, "default": default})
    return json.dumps(record)


@pytest.fixture
def loading() -> MemoryLoading:
    """An output with three small files of one hour."""
    made = MemoryLoading()
    for _ in range(3):
        made.write(20)
        made.run()
    return made


def lines(loading: MemoryLoading) -> list[object]:
    return [row["line"] for row in loading.rows()]


@promise("5 removed")
def test_small_files_are_put_together(loading: MemoryLoading) -> None:
    """Compaction replaces the small files of an hour by one file with the same rows. Later loads
    continue as usual."""
    before, said = loading.rows(), loading.said()
    done = loading.compact()
    assert (done.loads, done.files_before, done.files_after, done.rows) == ([4], 3, 1, 60)
    assert done.problems == []
    assert loading.rows() == before
    assert len(list(loading.store.files(TOPIC))) == 2, "one file of rows, and that of the columns"
    assert loading.said() == said, "a compaction counts nothing"
    loading.write(5)
    outcome = loading.run()
    assert (outcome.loads, outcome.rows, outcome.repeats) == ([5], 5, 0)
    assert lines(loading) == [f"line {at}" for at in range(65)]
    assert sum(count.count for delta in loading.deltas() for count in delta.counts) == 65


@promise("5 removed")
def test_a_compaction_has_its_files_in_place_and_the_old_ones_gone(loading: MemoryLoading) -> None:
    """In the manifest of a compaction (a load that combines small files), the removed files are
    exactly those whose rows are in the new file. No file is left in the staging directory."""
    old = [file.path for at in (1, 2, 3) for file in loading.manifest(at).files]
    loading.compact()
    manifest = loading.manifest(4)
    assert list(manifest.removed) == [path for path in old if path.startswith(TOPIC)]
    assert [file.path for file in manifest.files] == [
        f"{TOPIC}/dt=2023-11-14/hour=22/rows-4-0.parquet"
    ]
    assert not list(loading.store.files(layout.stagings(TOPIC)))
    assert (manifest.rows(), manifest.partitions[0].first, manifest.partitions[0].end) == (
        0,
        60,
        60,
    )


def test_records_without_fields_are_rows_in_every_version() -> None:
    """Records of a schema without fields are loaded as rows with the loader's own columns. With a
    later version they have null in the new field, or the default once their file is rewritten."""
    nothing = json.dumps({"type": "record", "name": "Tick", "fields": []})
    field = {"name": "x", "type": "int", "default": 7}
    grown = json.dumps({"type": "record", "name": "Tick", "fields": [field]})
    loading = MemoryLoading()
    loading.versions = [nothing]
    empty = prefix(SCHEMA_ID)
    for at in range(2):
        loading.append(Record(first=at * 20, value=empty), Record(first=at * 20 + 10, value=empty))
        outcome = loading.run()
        assert (outcome.rows, outcome.rejects, outcome.problems) == (2, 0, [])
    assert set(loading.rows()[0]) == set(OWN.names)
    loading.compact()
    loading.versions = [nothing, grown]
    newer = prefix(SCHEMA_ID + 1) + b"\x0a"
    loading.append(Record(first=40, value=newer), Record(first=50, value=empty))
    outcome = loading.run()
    assert (outcome.rows, outcome.rejects, outcome.problems) == (2, 0, [])
    assert [row["x"] for row in loading.rows()] == [None, None, None, None, 5, 7]
    loading.reload(Wish(TOPIC, Hours("2023-11-14T22", "2023-11-14T23")))
    assert [row["x"] for row in loading.rows()] == [7, 7, 7, 7, 5, 7]


def test_nothing_is_left_to_compact(loading: MemoryLoading) -> None:
    """A second compaction (`load compact`) finds nothing to do, and commits nothing."""
    loading.compact()
    assert loading.compact().loads == []
    assert loading.store.length(layout.manifest(TOPIC, 5)) is None


@pytest.mark.parametrize(("offsets", "loads"), [(80, [5]), (79, [5, 6]), (1, [5, 6])])
def test_a_compaction_limits_the_rows_of_a_load(
    loading: MemoryLoading, offsets: int, loads: list[int]
) -> None:
    """One load of a compaction (`load compact`) combines groups of files with at most
    `max.offsets.per.load` rows together. A group with more rows gets a load of its own."""
    loading.write(20)
    loading.run()
    size = max(file.length for file in loading.manifest(1).files)
    done = loading.compact(max_offsets_per_load=offsets, compact_target_bytes=int(size * 2.5))
    assert (done.loads, done.files_before, done.files_after, done.rows) == (loads, 4, 2, 80)
    assert lines(loading) == [f"line {at}" for at in range(80)]


@promise("5 removed")
def test_a_load_during_the_compaction_wins(loading: MemoryLoading) -> None:
    """If another load commits while a compaction (`load compact`) combines files, the compaction
    begins again with the files that the output has then."""

    def load() -> None:
        loading.write(7)
        loading.run()

    done = loading.compact(once(load))
    assert (done.loads, done.files_before, done.rows) == ([5], 4, 67)
    assert lines(loading) == [f"line {at}" for at in range(67)]


def test_a_compaction_that_loses_every_race_gives_up(loading: MemoryLoading) -> None:
    """If another loader commits first at every attempt of a compaction (`load compact`), the
    compaction fails, and each row is still there exactly once."""

    def load() -> None:
        loading.write(1)
        loading.run()

    done = loading.compact(load)
    (problem,) = done.problems
    assert isinstance(problem, LostRace)
    assert lines(loading) == [f"line {at}" for at in range(60 + RACES_MAX)]


@promise("5 removed")
def test_messages_of_a_load_that_ended_early_are_published_after_a_compaction(
    loading: MemoryLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load may be interrupted after its commit and before its counts are published to the audit.
    Even if a compaction (`load compact`) follows, the load after the compaction publishes these
    counts."""
    loading.write(10)
    with monkeypatch.context() as patched:
        patched.setattr("skidway.loader.runs.topic_loads.publish", lambda *_: None)
        loading.run()
    counted = sum(count.count for delta in loading.deltas() for count in delta.counts)
    assert counted == 60
    loading.compact()
    loading.write(1)
    loading.run()
    counted = sum(count.count for delta in loading.deltas() for count in delta.counts)
    assert counted == 71


@promise("5 columns")
def test_files_get_the_columns_of_a_new_schema_before_its_first_row(loading: MemoryLoading) -> None:
    """If plain Spark could not read old files together with files of a new schema, the loader
    rewrites the old files before it writes the first file of the new schema. Afterwards all files
    have the same columns."""
    loading.versions.append(CHOICE)
    loading.write(5)
    outcome = loading.run()
    assert (outcome.loads, outcome.rows, outcome.problems) == ([4, 5], 5, [])
    assert lines(loading) == [{"member0": f"line {at}", "member1": None} for at in range(65)]
    manifest = loading.manifest(4)
    assert len(manifest.removed) == 3
    assert manifest.schema is not None
    assert manifest.schema.id == 2
    assert manifest.columns is not None
    assert loading.manifest(5).columns is None, "the rewriting load has put it there already"


def with_dropped_level(loading: MemoryLoading) -> None:
    """Loads a row with the field `level`, and then a row of a version that lacks this field, and
    for which the older files must be rewritten."""
    loading.versions.append(GROWN)
    loading.write(1)
    loading.run()
    loading.versions.append(CHOICE)
    loading.write(1)
    assert loading.run().loads == [5, 6]
    loading.compact()


@promise("5 columns")
def test_a_dropped_field_comes_back(loading: MemoryLoading) -> None:
    """Rewritten files keep the values of a field that the new schema lacks, in the column of its
    name. If a third version has the field again, older rows have their old values."""
    with_dropped_level(loading)
    loading.versions.append(with_level("int", 5))
    loading.write(1)
    outcome = loading.run()
    assert (outcome.loads, outcome.problems) == ([8], [])
    assert [row["level"] for row in loading.rows()[59:]] == [None, 3, None, 5]


@promise("5 columns")
def test_a_dropped_field_comes_back_with_another_type(loading: MemoryLoading) -> None:
    """If a version has the name of a dropped field, but another type, older files keep their
    values and stay as they are. Loads go on, and each run names the field and the versions."""
    with_dropped_level(loading)
    loading.versions.append(with_level("string", "x"))
    for load in (8, 9):
        loading.write(1)
        outcome = loading.run()
        assert outcome.loads == [load]
        (problem,) = outcome.problems
        assert "columns of version 2 of " in str(problem)
        assert "beside version 4: level is another column there" in str(problem)
        assert loading.manifest(load).removed == ()
    files = (file for at in (7, 8, 9) for file in loading.manifest(at).files if file.kind == ROWS)
    tables = [pq.read_table(io.BytesIO(loading.store.read(x.path) or b"")) for x in files]
    found = [each["level"].drop_null().to_pylist() for each in tables]
    assert found == [[3], ["x"], ["x"]]


@promise("5 columns")
def test_a_version_whose_files_cannot_follow(loading: MemoryLoading) -> None:
    """If no row of an older version can have the columns of the newest one, the files stay as they
    are, loads go on, and each run names the field and the versions once."""
    loading.versions.append(GROWN)
    loading.write(1)
    loading.run()
    loading.versions += [SCHEMA, with_level("bytes", "x")]
    for loads in ([5, 6], [7]):
        loading.write(1)
        outcome = loading.run()
        assert outcome.loads == loads
        (problem,) = outcome.problems
        assert "columns of version 2 of " in str(problem)
        assert "beside version 4: field level was written as int32 and is binary now" in str(
            problem
        )


@promise("5 columns")
def test_values_of_nested_fields_are_never_dropped(loading: MemoryLoading) -> None:
    """If a new version lacks a nested field, and also needs older files to be rewritten, the files
    stay as they are, because the new files would lack the values. Each run names the field."""

    def place(*names: str) -> dict[str, object]:
        fields = [{"name": each, "type": "string", "default": ""} for each in names]
        inner = {"type": "record", "name": "Place", "fields": fields}
        return {"name": "place", "type": inner, "default": dict.fromkeys(names, "x")}

    versions = [json.loads(SCHEMA), json.loads(CHOICE)]
    versions[0]["fields"].append(place("room", "city"))
    versions[1]["fields"].append(place("city"))
    loading.versions.append(json.dumps(versions[0]))
    loading.write(1)
    loading.run()
    loading.versions.append(json.dumps(versions[1]))
    loading.write(1)
    (problem,) = loading.run().problems
    assert "version 3: it has no field place.room, whose values would be gone" in str(problem)
    (file,) = (each for each in loading.manifest(4).files if each.kind == ROWS)
    assert loading.store.read(file.path) is not None


def test_who_lost_a_race_looks_again_which_files_must_be_rewritten(
    loading: MemoryLoading,
) -> None:
    """If another loader commits rows of an older schema first, the loader that lost the race does
    not add its own rows at once. It first checks again which files must be rewritten."""
    renamed = json.loads(GROWN)
    renamed["fields"][1] |= {"name": "severity", "aliases": ["level"], "default": 9}
    loading.versions += [GROWN, json.dumps(renamed)]

    def load() -> None:
        newest = loading.versions.pop()  # this loader does not know the newest version
        loading.run(until=61)
        loading.versions.append(newest)

    loading.write(2)
    outcome = loading.run_beside(once(load))
    assert (outcome.problems, outcome.loads) == ([], [5, 6])
    assert [row["severity"] for row in loading.rows()[60:]] == [3, 9]


def test_a_subject_that_was_made_again(loading: MemoryLoading) -> None:
    """If a subject in the registry was permanently deleted and created again, its version numbers
    begin again at 1. Files of the deleted versions are rewritten nevertheless, although their
    numbers may be higher."""
    loading.versions.append(GROWN)
    loading.write(1)
    loading.run()
    loading.versions.append(CHOICE)
    loading.deleted = 2
    loading.write(1)
    assert loading.run().problems == []
    assert len(lines(loading)) == 62


def test_files_stay_if_only_a_field_was_added(loading: MemoryLoading) -> None:
    """If a new schema only adds a field, older files are not rewritten."""
    loading.versions.append(GROWN)
    loading.write(5)
    assert loading.run().loads == [4]
    assert loading.manifest(4).removed == ()


@promise("5 columns")
def test_a_file_that_cannot_be_rewritten_is_a_problem_and_no_obstacle(
    loading: MemoryLoading,
) -> None:
    """If an old file that must be rewritten is damaged, each run reports the file and fails until
    the file is repaired. The runs nevertheless rewrite the other files and load new rows, because
    readers wait for these rows."""
    loading.versions.append(CHOICE)
    path = next(file.path for file in loading.manifest(1).files if file.kind == "rows")
    whole = loading.store.read(path) or b""
    loading.store.put(path, bytes([*whole[:-20], whole[-20] ^ 1, *whole[-19:]]))
    for _ in range(2):
        loading.write(5)
        outcome = loading.run()
        assert outcome.rows == 5
        assert [path in str(problem) for problem in outcome.problems] == [True]
    assert len(loading.manifest(4).removed) == 2
    loading.store.put(path, whole)
    loading.write(5)
    outcome = loading.run()
    assert (outcome.loads, outcome.problems) == ([7, 8], [])
    assert len(lines(loading)) == 75
    loading.write(1)
    assert loading.run().loads == [9]


def test_a_compaction_does_not_hide_files_that_were_not_rewritten(loading: MemoryLoading) -> None:
    """If a compaction (`load compact`) combines files of an older schema, the manifest says that
    the new file has this older schema. So the next load gives the file the columns of the newest
    schema."""
    loading.versions.append(CHOICE)
    paths = [file.path for at in (1, 2) for file in loading.manifest(at).files[:1]]
    whole = {path: loading.store.read(path) or b"" for path in paths}
    for path in paths:
        loading.store.delete(path)
    loading.write(5)
    assert len(loading.run().problems) == 2
    for path, data in whole.items():
        loading.store.put(path, data)
    assert loading.compact().files_before == 4, "two files of each schema"
    loading.write(1)
    assert loading.run().problems == []
    assert lines(loading) == [{"member0": f"line {at}", "member1": None} for at in range(66)]


def test_files_are_never_rewritten_to_an_older_version(loading: MemoryLoading) -> None:
    """If somebody deletes the newest version of a schema from the registry, files of this version
    stay as they are, and each run reports them. When the version is registered again, the loader
    rewrites the files of older versions."""
    loading.versions.append(CHOICE)
    loading.write(5)
    loading.run()
    loading.versions.pop()
    loading.gone.append(CHOICE)
    loading.write(5)
    outcome = loading.run()
    assert (outcome.loads, outcome.rows) == ([6], 5)
    (problem,) = outcome.problems
    assert "files follow version 2" in str(problem)
    loading.versions.append(loading.gone.pop())
    loading.write(5)
    assert loading.run().problems == []
    assert lines(loading) == [{"member0": f"line {at}", "member1": None} for at in range(75)]


def test_a_schema_that_the_registry_lost_is_noted(loading: MemoryLoading) -> None:
    """If the registry no longer has the schema of older files, the loader cannot compare their
    columns with the newest schema. Each run reports the missing schema in a note."""
    loading.versions[:] = ["", GROWN]
    loading.write(5)
    outcome = loading.run()
    assert (outcome.loads, outcome.problems) == ([4], [])
    (note,) = outcome.notes
    assert "no longer has the schema 1" in note


def test_a_loser_of_a_race_may_be_behind_the_winner(loading: MemoryLoading) -> None:
    """A run reads the high watermarks at its start. If another loader then commits first, and has
    loaded beyond these high watermarks, the run ends without a problem."""
    loading.write(10)

    def load() -> None:
        loading.write(10)
        loading.run()

    outcome = loading.run_beside(once(load))
    assert outcome.problems == []
    assert lines(loading) == [f"line {at}" for at in range(80)]


def test_another_load_during_the_conversion(loading: MemoryLoading) -> None:
    """If another load commits while a run rewrites files for a new schema, the run begins the
    rewriting again, with all files that the output then has."""
    loading.versions.append(CHOICE)
    loading.write(5)
    outcome = loading.run_beside(once(loading.run))
    assert outcome.problems == []
    assert lines(loading) == [{"member0": f"line {at}", "member1": None} for at in range(65)]
