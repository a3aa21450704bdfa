"""Tests `skidway load reload`, which reads the records of some hours from the log again, and
replaces the files of these hours."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import Mock, patch

import pyarrow.parquet as pq
import pytest

from skidway.audit.counts.counts import Counts, Sums
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.recount import manifests as named
from skidway.audit.recount import recount
from skidway.audit.topic.messages import Announcement, Delta, Seal, Sender, Tier, encode
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.loader.complete_hours.collector import Answer
from skidway.loader.runs.attempt import LostRace
from skidway.loader.runs.reload import Wish
from skidway.loader.runs.topic_loads import RACES_MAX
from skidway.loader.slices.join import run_all
from skidway.loader.state import folding, layout
from skidway.loader.state.closures import GRACE_MS, SETTLED_MS
from skidway.loader.state.tables import read_tables
from skidway.schemas.wire import prefix
from support.fold import Fold, judge
from support.loading import (
    CHOICE,
    GROWN,
    SCHEMA,
    SCHEMA_ID,
    SOURCE,
    START_MS,
    TOPIC,
    Record,
    datum,
    once,
)
from support.memory_loading import AGENT, DATA, LENGTH, MemoryLoading
from support.promises import promise

HOUR_MS = layout.HOUR_MS
FIRST = START_MS // HOUR_MS


def wish(first: int = 0, count: int = 1, **more: bool) -> Wish:
    """Returns a request to reload `count` hours. `first` is the index of the first of these hours;
    the hour of the topic's first lines has the index 0."""
    begin, end = (layout.hour_text(FIRST + at) for at in (first, first + count))
    return Wish(TOPIC, layout.Hours(begin, end), **more)


@pytest.fixture
def loading() -> MemoryLoading:
    """A topic with three loads. The first and the third load have rows of one hour, the second has
    rows of the next hour."""
    made = MemoryLoading()
    for hour in (0, 1, 0):
        made.write(20, time_ms=START_MS + hour * HOUR_MS)
        made.run()
    return made


def paths(loading: MemoryLoading, load: int, kind: str = "rows") -> list[str]:
    return [each.path for each in loading.manifest(load).files if each.kind == kind]


def lines(loading: MemoryLoading) -> list[object]:
    return [row["line"] for row in loading.rows()]


def all_lines(count: int) -> list[str]:
    return [f"line {at}" for at in range(count)]


def faults(loading: MemoryLoading) -> list[str]:
    """Returns the errors that a recount of the output finds, including differences from the counts
    that the loads have published to the audit."""
    result = recount.recount(loading.store, named.head(loading.store, TOPIC))
    differences = recount.compare(result, evidence(loading), [Tier.HDFS])
    return [each.sentence for each in result.faults.kept] + [each.reason for each in differences]


def evidence(loading: MemoryLoading) -> Evidence:
    return Fold(loading.said()).evidence()


def rejects(loading: MemoryLoading) -> Counter[tuple[int, int]]:
    """Returns the number of the loader's rejects for each (agent, bucket), according to the
    loader's audit messages."""
    found = Counter[tuple[int, int]]()
    for (start, _), by_agent in evidence(loading).topic(SOURCE).tallies.items():
        for agent, tallies in by_agent.items():
            found[agent, start] += sum(each.sums.rejects for each in tallies.values())
    return found


@promise("5 reload")
@pytest.mark.parametrize("load", [1, 3])
def test_a_file_that_is_gone_comes_back(loading: MemoryLoading, load: int) -> None:
    """A reload restores the rows of a deleted file, even if the newest load wrote the file. Files
    of other hours stay as they are, and no new counts are published to the audit."""
    said = loading.said()
    (path,) = paths(loading, load)
    loading.store.delete(path)
    assert len(faults(loading)) == 2
    done = loading.reload(wish())
    assert (done.problems, done.notes) == ([], [])
    assert (done.loads, done.files_before, done.records) == ([4], 2, 40)
    assert lines(loading) == all_lines(60)
    assert faults(loading) == []
    assert loading.said() == said
    assert sorted(loading.manifest(4).removed) == sorted(paths(loading, 1) + paths(loading, 3))
    assert loading.store.length(paths(loading, 2)[0]) is not None
    loading.write(5)
    assert (loading.run().repeats, lines(loading)) == (0, all_lines(65))


@promise("5 reload")
@pytest.mark.parametrize("load", [1, 3])
@pytest.mark.parametrize("cut", [0, 10])
def test_a_damaged_file_is_replaced(loading: MemoryLoading, load: int, cut: int) -> None:
    """A reload replaces a damaged or truncated file."""
    (path,) = paths(loading, load)
    data = loading.store.read(path) or b""
    loading.store.put(path, b"PAR1" + bytes(len(data) - 4 - cut))
    done = loading.reload(wish())
    assert (done.problems, done.loads) == ([], [4])
    assert (lines(loading), faults(loading)) == (all_lines(60), [])


def unannounced(loading: MemoryLoading, time_ms: int = START_MS) -> None:
    """Appends three records of a log file whose announcement is missing, and loads them as
    rejects."""
    records = (Record(AGENT, 9, at * 10, 10, time_ms + at * 60_000) for at in range(3))
    loading.append(*records)
    assert loading.run(announce_wait_ms=0).rejects == 3


@promise("5 reload")
def test_rejects_become_rows(loading: MemoryLoading) -> None:
    """Records that were rejects because their log file was not announced become rows if a reload
    runs after the announcement. For each bucket, the loader then publishes counts with fewer
    rejects and as many records as before."""
    unannounced(loading)
    assert sorted(rejects(loading).values()) == [0, 1, 1, 1]
    before = [(x.counts, x.number) for x in loading.deltas()]
    loading.say(Announcement(0, AGENT, 9, "host", "/log/9", 1, 9, b"", 0, SOURCE))
    done = loading.reload(wish())
    assert (done.problems, done.notes) == ([], [])
    assert (done.loads, done.rejects_before, done.rejects_after) == ([5], 3, 0)
    assert len(loading.rows()) == 63
    assert faults(loading) == []
    assert set(rejects(loading).values()) == {0}
    *old, new = loading.deltas()
    assert [(x.counts, x.number) for x in old] == before
    assert {(x.count, x.bytes, x.checksum, x.rejects) for x in new.counts} == {(0, 0, 0, -1)}
    assert new.ranges == ()
    ledger = Ledger()
    ledger.take(encode(each) for each in loading.said())
    assert ledger.evidence().topic(SOURCE).tallies == evidence(loading).topic(SOURCE).tallies
    loading.write(5)
    assert loading.run().rows == 5
    assert len(loading.rows()) == 68


@promise("5 reload")
def test_rejects_of_a_lost_file_become_rows(loading: MemoryLoading) -> None:
    """If a file of rejects is lost, a reload still turns its records into rows. Nobody knows any
    more how many rejects each bucket had, so the audit's number stays, and a note says so."""
    unannounced(loading)
    loading.store.delete(paths(loading, 4, "rejects")[0])
    before = rejects(loading)
    loading.say(Announcement(0, AGENT, 9, "host", "/log/9", 1, 9, b"", 0, SOURCE))
    done = loading.reload(wish())
    assert (done.problems, done.rejects_after, len(loading.rows())) == ([], 0, 63)
    assert "the audit's number of rejects of these hours stays as it was" in done.notes[0]
    assert rejects(loading) == before


@contextmanager
def folded_often() -> Iterator[None]:
    """During the `with` block each load writes a checkpoint (a summary of older manifests)."""
    with patch("skidway.loader.runs.old_manifests.folding.fold", partial(folding.fold, every=1)):
        yield


def closed(loading: MemoryLoading) -> None:
    """Makes two loads after the agent has closed the first log file. The loads drop the marks and
    the name of this file, and load two lines of another file."""
    known = ("host", "/log/1", 1, 1, b"", 0, SOURCE)
    loading.say(Announcement(0, AGENT, 1, *known, length=60 * LENGTH))
    loading.say(Announcement(0, AGENT, 2, "host", "/log/2", 1, 2, b"", 0, SOURCE))
    other_hour = START_MS + 5 * HOUR_MS
    loading.append(Record(AGENT, 2, 0, LENGTH, other_hour))
    loading.run()
    agent = Sender(Tier.AGENT, "dc1", str(AGENT), "host", 1)
    loading.say(Seal(agent, 9, GRACE_MS, (SealedTopic(SOURCE, GRACE_MS, 1, ((0, 60),)),)))
    loading.clock.advance(SETTLED_MS / 1000)
    loading.append(Record(AGENT, 2, LENGTH, LENGTH, other_hour))
    loading.run()
    assert read_tables(loading.store, loading.manifest(5)).locations.keys() == {(AGENT, 2)}


@promise("5 reload")
@pytest.mark.parametrize("hour", [0, 1])
def test_files_that_were_closed_since_have_their_names(loading: MemoryLoading, hour: int) -> None:
    """After a log file was closed, the loader drops the file's name (host and path). If a reload
    then reads the file's records again, the records still become rows with host and path, not
    rejects."""
    closed(loading)
    before = loading.rows()
    loading.store.delete(paths(loading, 1 + hour)[0])
    done = loading.reload(wish(hour), announce_wait_ms=0)
    assert (done.problems, done.notes, done.rejects_after) == ([], [], 0)
    assert [(row["line"], row["_host"], row["_file"]) for row in loading.rows()] == [
        (row["line"], row["_host"], row["_file"]) for row in before
    ]
    assert faults(loading) == []
    assert read_tables(loading.store, loading.manifest(6)).locations.keys() == {(AGENT, 2)}


@promise("5 reload")
def test_hours_of_manifests_that_are_deleted_are_refused(loading: MemoryLoading) -> None:
    """If the manifest before the first load of an hour has been deleted, the hour cannot be
    reloaded and stays as it is. The error names the setting that decides how many manifests are
    kept. Later hours can be reloaded."""
    with folded_often():
        for hour in (2, 3, 4):
            loading.write(20, time_ms=START_MS + hour * HOUR_MS)
            loading.run(manifests_keep=2)
        assert loading.store.read(layout.manifest(TOPIC, 4)) is None
        before = loading.store.snapshot
        for hour in (0, 2, 3):
            (problem,) = loading.reload(wish(hour)).problems
            assert "manifests.keep" in str(problem)
            assert loading.store.snapshot == before
        loading.store.delete(paths(loading, 6)[0])
        assert loading.reload(wish(4), manifests_keep=2).problems == []
    assert (lines(loading), faults(loading)) == (all_lines(120), [])


@promise("5 reload")
def test_checkpoints_know_files_of_rejects_that_were_replaced(loading: MemoryLoading) -> None:
    """A checkpoint (a summary of older manifests) lists the output's files. If a reload replaces
    some of them, the next checkpoint lists the new files."""
    with folded_often():
        unannounced(loading)
        loading.say(Announcement(0, AGENT, 9, "host", "/log/9", 1, 9, b"", 0, SOURCE))
        done = loading.reload(wish())
        assert (done.problems, done.loads) == ([], [5])
        assert faults(loading) == []
        loading.write(5)
        loading.run()
    assert (len(loading.rows()), faults(loading)) == (68, [])
    assert loading.reload(wish()).problems == []
    assert (len(loading.rows()), faults(loading)) == (68, [])


def test_a_reload_shows_its_progress_and_its_time(loading: MemoryLoading) -> None:
    """A running reload shows its progress in slices. The manifest of the reload has the reload's
    duration. The manifest counts no rows, because a reload does not add new rows."""
    loading.shown.clear()
    loading.slice_s = 2.0
    loading.reload(wish())
    assert {(each.step, each.slices_total) for each in loading.shown} == {("reload", 1)}
    made = loading.manifest(4)
    assert (made.seconds, made.rows()) == (2.0, 0)


@promise("5 reload")
def test_the_verdict_stays_complete_and_the_warnings_go(loading: MemoryLoading) -> None:
    """If a bucket has rejects, and the agents have counted the same records, the audit calls the
    bucket complete, with a warning. After a reload has turned the rejects into rows, the bucket is
    complete without a warning."""
    unannounced(loading)
    before = verdicts(loading)
    assert {each.status for each in before} == {Status.COMPLETE}
    assert [each.rejects for each in before if each.warnings] == [1, 1, 1]
    loading.say(Announcement(0, AGENT, 9, "host", "/log/9", 1, 9, b"", 0, SOURCE))
    loading.reload(wish())
    after = verdicts(loading)
    assert [each.status for each in after] == [each.status for each in before]
    assert not any(each.warnings or each.rejects for each in after)


def verdicts(loading: MemoryLoading) -> list[BucketVerdict]:
    """Returns the audit's verdicts if an agent has counted the same records as the loads, and has
    confirmed (sealed) that these are all records."""
    now_ms = START_MS + 5 * HOUR_MS
    agent = Sender(Tier.AGENT, "dc1", str(AGENT), "host", 1)
    sums = Counts()
    for each in (count for delta in loading.deltas() for count in delta.counts):
        key = (each.source, each.agent, each.bucket)
        sums.put(key, Sums(each.count, each.bytes, each.checksum))
    delta = Delta(agent, 1, now_ms, counts=sums.to_messages({}))
    seal = Seal(agent, 2, now_ms, (SealedTopic(SOURCE, now_ms, 1),))
    policy = Policy(tiers=(Tier.AGENT, Tier.HDFS))
    return judge([*loading.said(), delta, seal], policy, now_ms)


@promise("5 reload")
def test_rejects_become_rows_after_their_schema_is_registered(loading: MemoryLoading) -> None:
    """Records become rejects if the registry lacks their schema. After the schema is registered, a
    reload turns these rejects into rows with the columns of the newest schema."""
    value = datum("late", SCHEMA, SCHEMA_ID + 1)
    loading.append(Record(AGENT, 1, 60 * LENGTH, LENGTH, value=value))
    assert loading.run().rejects == 1
    loading.versions.append(SCHEMA)
    loading.versions.append(GROWN)
    assert loading.reload(wish()).problems == []
    assert lines(loading)[-1] == "late"
    assert faults(loading) == []
    assert set(rejects(loading).values()) == {0}
    file = loading.store.read(paths(loading, 5)[0]) or b""
    assert "level" in pq.read_schema(io.BytesIO(file)).names


@promise("5 reload")
def test_rows_become_rejects_only_if_the_operator_says_so(loading: MemoryLoading) -> None:
    """If a reload would turn rows into rejects, it needs the operator's permission. Without the
    permission it changes nothing. With the permission, the loader publishes the new number of
    rejects to the audit."""
    loading.versions = ["", json.dumps({**json.loads(SCHEMA), "name": "Other"})]
    before = loading.store.snapshot
    (problem,) = loading.reload(wish()).problems
    assert "40 of 40 records that are rows would become rejects" in str(problem)
    assert loading.store.snapshot == before
    done = loading.reload(wish(may_reject=True))
    assert (done.problems, done.rejects_after) == ([], 40)
    assert (lines(loading), faults(loading)) == (all_lines(40)[20:], [])
    assert rejects(loading)[AGENT, START_MS - START_MS % 60_000] == 40


@promise("5 reload")
def test_values_are_dropped_only_if_the_operator_says_so(loading: MemoryLoading) -> None:
    """If the newest schema lacks a field whose values the files of an hour have, a reload of the
    hour would drop these values, so it needs the operator's permission. Without the permission it
    changes nothing."""
    loading.versions.append(GROWN)
    value = prefix(SCHEMA_ID + 1) + b"\x02x\x0e"  # {"line": "x", "level": 7}
    loading.append(Record(AGENT, 1, 60 * LENGTH, LENGTH, START_MS + 2 * HOUR_MS, value=value))
    loading.run()
    loading.versions.append(SCHEMA)
    before = loading.store.snapshot
    (problem,) = loading.reload(wish(2)).problems
    assert "the values of the field level would not be in their column" in str(problem)
    assert loading.store.snapshot == before
    assert loading.reload(wish(0)).problems == []
    assert loading.reload(wish(2, may_drop=True)).problems == []
    assert faults(loading) == []


@promise("5 reload")
def test_values_under_a_new_name_are_not_dropped_either(loading: MemoryLoading) -> None:
    """Rewritten files have the values of a field under the name that a version gave it with an
    alias. If the newest version has this name without the alias, it could not read the records any
    more, so a reload needs the operator's permission, too."""
    renamed = {"name": "text", "type": "string", "default": ""}
    for field in ({**renamed, "aliases": ["line"]}, renamed):
        loading.versions.append(json.dumps({**json.loads(SCHEMA), "fields": [field]}))
        value = prefix(len(loading.versions) - 1) + b"\x02x"
        at = loading.cluster.log(DATA).end
        loading.append(Record(AGENT, 1, at * LENGTH, LENGTH, START_MS + 2 * HOUR_MS, value=value))
        assert loading.run().problems == []
    assert [row["text"] for row in loading.rows()] == [*all_lines(60), "x", "x"]
    before = loading.store.snapshot
    (problem,) = loading.reload(wish()).problems
    assert "the values of the field line would not be in their column" in str(problem)
    assert loading.store.snapshot == before


@promise("5 reload")
def test_repeats_stay_repeats(loading: MemoryLoading) -> None:
    """A reload drops the same repeated records as the original loads. This includes repeats of
    records that earlier loads have loaded into other hours."""
    later = START_MS + 3 * HOUR_MS
    repeated = (Record(AGENT, 1, at * LENGTH, LENGTH, later) for at in range(40))
    loading.append(*repeated, Record(AGENT, 1, 60 * LENGTH, LENGTH, later))
    assert loading.run().repeats == 40
    done = loading.reload(wish(3))
    assert (done.problems, done.records) == ([], 1)
    assert (len(loading.rows()), faults(loading)) == (61, [])


@promise("5 reload")
def test_other_records_than_were_committed_are_refused(loading: MemoryLoading) -> None:
    """The log may no longer have exactly those records that were loaded. Then all files stay as
    they are, and the error gives the numbers of loaded and of found records."""
    log = loading.cluster.log(DATA)
    good, end = list(log.batches), log.end
    del log.batches[2:]
    log.end = 40
    loading.append(*(Record(AGENT, 1, at * LENGTH, LENGTH) for at in range(41, 61)))
    before = loading.store.snapshot
    with patch("skidway.loader.runs.reload_attempt.compared", lambda *given: given[-1]):
        done = loading.reload(wish(0, 2))
    assert [str(each) for each in done.problems] == [
        f"{TOPIC}: nothing is changed: in these hours the log has 60 records, but they are not the "
        "60 that were committed"
    ]
    assert (done.loads, done.exit_code, loading.store.snapshot) == ([], 1, before)
    (problem,) = loading.reload(wish()).problems
    assert "diverged" in str(problem)
    log.batches, log.end = good, end
    assert loading.reload(wish()).problems == []


@promise("5 reload")
def test_offsets_that_are_gone_are_refused(loading: MemoryLoading) -> None:
    """If the log no longer has all offsets that the loads of the hours have read, the hours stay as
    they are, and the error names the partition and the missing offsets. Hours of later loads can be
    reloaded nevertheless."""
    loading.store.delete(paths(loading, 1)[0])
    loading.cluster.log(DATA).expire(20)
    before = loading.store.snapshot
    for count in (1, 2):
        assert [str(each) for each in loading.reload(wish(0, count)).problems] == [
            f"{TOPIC} partition 0: offsets 0 to 19 are gone from the log, so the records from "
            "offset 0 on cannot be loaded again; nothing is changed"
        ]
        assert loading.store.snapshot == before
    assert loading.reload(wish(1)).problems == []


def test_gaps_that_the_loads_passed_over_are_no_obstacle() -> None:
    """A reload skips offsets that were already gone when the hour was first loaded."""
    loading = MemoryLoading()
    loading.write(40, batch_records=10)
    loading.cluster.log(DATA).expire(20)
    assert loading.run(gaps_accepted=[f"{TOPIC}/0/0-20"]).rows == 20
    loading.store.delete(paths(loading, 1)[0])
    assert loading.reload(wish()).problems == []
    assert (lines(loading), faults(loading)) == (all_lines(40)[20:], [])


@promise("5 reload")
def test_files_that_were_put_together_are_reloaded(loading: MemoryLoading) -> None:
    """A reload can restore the rows of a file that a compaction (a load that combines small files)
    has written, and of a file that an earlier reload has written."""
    loading.compact()
    for load in (4, 5):
        for path in paths(loading, load):
            loading.store.delete(path)
        done = loading.reload(wish())
        assert (done.problems, done.loads) == ([], [load + 1])
        assert (lines(loading), faults(loading)) == (all_lines(60), [])


@promise("5 reload")
def test_a_load_during_the_reload_wins(loading: MemoryLoading) -> None:
    """If a load commits rows of an hour while the hour is reloaded, the reload begins again with
    the files that the output then has."""

    def load() -> None:
        loading.write(7)
        loading.run()

    done = loading.reload(wish(), once(load))
    assert (done.problems, done.loads, done.records) == ([], [5], 47)
    assert (lines(loading), faults(loading)) == (all_lines(67), [])


def test_a_reload_that_loses_every_race_gives_up(loading: MemoryLoading) -> None:
    """If another loader commits first at every attempt of a reload, the reload fails and changes
    nothing."""

    def load() -> None:
        loading.write(1)
        loading.run()

    (problem,) = loading.reload(wish(), load).problems
    assert "try again later" in str(problem)
    assert problem.exit_code == LostRace.exit_code
    assert (lines(loading), faults(loading)) == (all_lines(60 + RACES_MAX), [])


@promise("5 reload")
def test_messages_of_a_load_that_ended_early_are_published_first(
    loading: MemoryLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a load was interrupted after its commit and before its counts were published to the audit,
    the reload publishes these counts before its own."""
    with monkeypatch.context() as patched:
        patched.setattr("skidway.loader.runs.topic_loads.publish", lambda *_: None)
        unannounced(loading)
    assert [each.number for each in loading.deltas()] == [1, 2, 3]
    loading.say(Announcement(0, AGENT, 9, "host", "/log/9", 1, 9, b"", 0, SOURCE))
    assert loading.reload(wish()).problems == []
    assert [each.number for each in loading.deltas()] == [1, 2, 3, 4, 5]
    assert faults(loading) == []


@promise("5 success file")
def test_a_mark_stays_unless_rows_change(loading: MemoryLoading) -> None:
    """If an hour has the same rows after a reload, the hour keeps its `_SUCCESS` file, which says
    that the hour is complete. If rejects became rows, the reload deletes this file. The next run
    writes it again with the new number of rows, if the audit calls the hour complete."""
    unannounced(loading)
    for at in (0, 1):
        loading.store.put(layout.success(TOPIC, layout.hour_text(FIRST + at)), b"{}")
    assert loading.reload(wish(0, 2)).problems == []
    for at in (0, 1):
        assert loading.store.read(layout.success(TOPIC, layout.hour_text(FIRST + at))) == b"{}"
    loading.say(Announcement(0, AGENT, 9, "host", "/log/9", 1, 9, b"", 0, SOURCE))
    assert loading.reload(wish(0, 2)).problems == []
    assert loading.store.read(layout.success(TOPIC, layout.hour_text(FIRST))) is None
    assert loading.store.read(layout.success(TOPIC, layout.hour_text(FIRST + 1))) == b"{}"
    loading.clock.set_time_ms(START_MS + 50 * HOUR_MS)
    newest = max((each.sender.epoch, each.number) for each in loading.deltas())
    loading.collector = Mock(**{
        "judged.return_value": {}, "complete.return_value": Answer(True, 1000, newest),
    })  # fmt: skip
    assert loading.run().problems == []
    mark = json.loads(loading.store.read(layout.success(TOPIC, layout.hour_text(FIRST))) or b"")
    assert mark["rows"] == 43


@pytest.mark.parametrize("offsets", [60, 25])
def test_many_offsets_are_read_in_portions(loading: MemoryLoading, offsets: int) -> None:
    """One load reloads all hours. Its tasks run in portions, and each portion reads at most
    `max.offsets.per.load` offsets."""
    with patch("skidway.loader.runs.reload_attempt.run_all", wraps=run_all) as portions:
        done = loading.reload(wish(0, 2), max_offsets_per_load=offsets)
    assert (done.problems, done.loads) == ([], [4])
    assert (lines(loading), faults(loading)) == (all_lines(60), [])
    read = [sum(each.end - each.first for each in call.args[0]) for call in portions.mock_calls]
    assert max(read) <= offsets, read


def test_a_dry_run_changes_nothing(loading: MemoryLoading) -> None:
    """A dry run of a reload reports the offsets and records that a real run would read and replace,
    and changes nothing."""
    before = loading.store.snapshot
    done = loading.reload(wish(1, 5, dry=True))
    assert (done.problems, done.loads, done.records, done.offsets) == ([], [], 20, 20)
    assert loading.store.snapshot == before


def test_hours_without_files(loading: MemoryLoading) -> None:
    """If the output has no files of the hours to reload, the reload's outcome says so in a note."""
    done = loading.reload(wish(7))
    assert (done.loads, done.notes) == ([], [f"{TOPIC} has no files in these hours"])


@promise("5 columns")
def test_a_damaged_file_of_an_older_schema_is_no_obstacle(loading: MemoryLoading) -> None:
    """If a new schema makes it necessary to rewrite old files, the reload does this first. If a
    damaged file of the reloaded hour cannot be rewritten, the reload does not fail, because
    afterwards it replaces this file."""
    (path,) = paths(loading, 1)
    loading.store.put(path, bytes(10))
    loading.versions.append(CHOICE)
    done = loading.reload(wish())
    assert (done.problems, done.loads) == ([], [5])
    assert [each.id for each in loading.manifest(5).schemas] == [SCHEMA_ID + 1]
    assert [row["line"]["member0"] for row in loading.rows()] == all_lines(60)
    assert faults(loading) == []
