"""Tests one attempt at a load: what the attempt plans and reports, and what happens when it fails.
In the names of the tests, "the batch below" is the last batch before the offset at which the load
begins."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.output import StoreFailed
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka import columns
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.columns import Origins
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.loader.audit_topic.feed import Feed
from skidway.loader.planning.plan import Bounds, Planned, Slice
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.runs.attempt import Attempt, LostRace
from skidway.loader.runs.load_attempt import LoadAttempt
from skidway.loader.runs.outcome import TopicOutcome, note
from skidway.loader.runs.parts import Parts
from skidway.loader.settings import LoaderSettings
from skidway.loader.slices.job import SliceResult, Stop
from skidway.loader.slices.join import PartitionResult
from skidway.loader.spark.runner import Interrupted
from skidway.loader.state import layout
from skidway.loader.state.manifest import BatchMark, Gap, Manifest, PartitionRange
from skidway.loader.state.tables import DELTAS_MAX
from skidway.schemas.client import Registered, RegistryRefused
from support.clock import ManualClock
from support.loading import SOURCE, START_MS, TOPIC, WHOLE, datum
from support.memory_loading import DATA, MemoryLoading
from support.memory_store import MemoryStore
from support.promises import promise

OTHER = "b" * 32
NO_PARTITIONS = SourceTopic("logs", "", SOURCE, ())


class Swept(MemoryStore):
    """A store whose `sync` fails, as if the load's staging directory were gone. If `winner` is not
    empty, the store first gets a manifest of load 1 with the uuid `winner`, as if a loader had
    committed this load."""

    def __init__(self, winner: str) -> None:
        super().__init__()
        self._winner = winner

    def sync(self, paths: Sequence[str]) -> None:
        if self._winner:
            won = replace(WHOLE, number=1, topic="logs", uuid=self._winner)
            self.put(won.path, won.to_json())
        raise StoreFailed(f"cannot sync {paths[0]}: No such file or directory")


class Registry:
    """A fake registry, which returns a schema or raises an exception."""

    def __init__(self, answer: str | Exception) -> None:
        self._answer = answer

    def latest(self, subject: str) -> Registered:
        if isinstance(self._answer, Exception):
            raise self._answer
        return Registered(subject, 4, 9, self._answer)


def attempt(
    store: MemoryStore,
    registry: Any = None,
    topic: SourceTopic = NO_PARTITIONS,
    newest: Manifest | None = None,
) -> LoadAttempt:
    settings = LoaderSettings(
        bootstrap_servers="x:1", schema_registry_url="http://x", topics=["logs"], output_url="/out"
    )
    nothing: Any = None
    parts = Parts(settings, nothing, registry, store, nothing, ManualClock(), Feed(), "c", [])
    return LoadAttempt(parts, topic, newest)


def test_a_commit_that_fails_because_another_won_is_a_lost_race() -> None:
    """If a commit fails because another load has committed first and deleted this load's staging
    directory, the load reports a lost race, not an error of the output."""
    load = Attempt(Swept(winner=OTHER), ManualClock(), "web1", "logs", None)
    mine = replace(WHOLE, number=1, topic="logs", files=(), uuid="c" * 32)
    with pytest.raises(LostRace):
        load.make(lambda: (mine, None))


@pytest.mark.parametrize("winner", ["", "c" * 32], ids=["not there", "there"])
def test_a_commit_that_fails_otherwise_says_why_and_deletes_nothing(winner: str) -> None:
    """If a commit fails for another reason than a lost race, the load reports that reason. Nobody
    knows then whether the load is committed. So the files that its tasks have written stay in the
    staging directory, until the next start of a loader."""
    store = Swept(winner=winner)
    mine = replace(WHOLE, number=1, topic="logs", files=(), uuid="c" * 32)
    store.put(f"{layout.staging('logs', 1, mine.uuid)}/rows", b"rows")
    with pytest.raises(StoreFailed, match="cannot sync"):
        Attempt(store, ManualClock(), "web1", "logs", None).make(lambda: (mine, None))
    assert list(store.files(layout.stagings("logs")))


RESERVED = '{"type": "record", "name": "L", "fields": [{"name": "_host", "type": "string"}]}'


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RegistryRefused(404, 40401, "no subject"), "no schema is registered under logs-value"),
        (RegistryRefused(404, 0, "The registry answers with status 404."), "with status 404"),
        (RegistryRefused(500, 50001, "it is tired"), "it is tired"),
        (RESERVED, "cannot be loaded with version 4 of logs-value: its field _host"),
        (Interrupted("asked to end"), "asked to end"),
    ],
)
def test_a_load_that_cannot_begin_says_why_and_leaves_nothing(
    answer: str | SkidwayError, words: str
) -> None:
    """If a load fails before its tasks begin, it reports the reason, and deletes its staging
    directory."""
    store = MemoryStore()
    with pytest.raises(SkidwayError, match=words) as raised:
        attempt(store, Registry(answer)).make([], lambda _done, _total: None)
    assert not isinstance(raised.value, LostRace)
    assert not list(store.files(layout.stagings("logs")))


def test_a_load_that_fails_behind_a_winner_is_a_lost_race() -> None:
    """If another load has committed first and this load then fails, this load reports only a lost
    race. The other loader may have caused the failure: it may have deleted files that this load
    read or wrote."""
    store = MemoryStore()
    won = replace(WHOLE, number=1, topic="logs", uuid=OTHER)
    store.put(won.path, won.to_json())
    with pytest.raises(LostRace):
        attempt(store, Registry(SkidwayError("gone"))).make([], lambda _done, _total: None)


class Broken(MemoryLoading):
    """A topic in which the last batch before the load cannot be read."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def _header_at(self, *_: object) -> Any:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        CorruptBatch("magic 7"),
        KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "no leader"),
        Unreachable("nobody answers"),
    ],
)
def test_a_partition_whose_batch_below_cannot_be_read_is_kept_back(error: Exception) -> None:
    """If the last batch before the load cannot be read from the log, nothing of the partition is
    loaded, because the log may have been replaced by another one."""
    loading = Broken(error)
    loading.write(50)
    assert loading.run().rows == 50
    loading.write(50)
    outcome = loading.run()
    (problem,) = outcome.problems
    assert f"kept back at offset 50, because the batch below cannot be read: {error}" in str(
        problem
    )
    assert outcome.rows == 0


def test_a_log_that_is_another_one_is_not_loaded() -> None:
    """The last batch before a load may now have other bytes in the log than when it was loaded.
    Then nothing more is loaded from this log, because its later records may have changed as
    well."""
    loading = MemoryLoading()
    loading.write(50)
    loading.run()
    loading.cluster.log(DATA).batches.clear()
    loading.lines = 1_000
    loading.write(100)
    outcome = loading.run()
    assert "has diverged" in str(outcome.problems[0])
    assert outcome.rows == 0


@pytest.mark.parametrize(("start", "is_compared"), [(49, True), (50, False)])
def test_a_batch_below_is_compared_as_long_as_a_record_of_it_is_there(
    start: int, is_compared: bool
) -> None:
    """The last batch before the load is compared with the log as long as the log has one of the
    batch's records. After all its records have expired, the manifest has an empty gap (a range
    without offsets) as a sign that nothing was compared."""
    loading = MemoryLoading()
    loading.write(100)
    loading.run(until=50)
    loading.cluster.log(DATA).start = start
    loading.run()
    assert [(each.first, each.end) for each in _range(loading, 2).gaps] == (
        [] if is_compared else [(50, 50)]
    )


def _range(loading: MemoryLoading, number: int) -> PartitionRange:
    path = layout.manifest(TOPIC, number)
    data = loading.store.read(path)
    assert data is not None
    (found,) = Manifest.from_json(data, path).partitions
    return found


def test_gaps_that_were_named_are_kept_until_they_are_passed() -> None:
    """If the mirror or the operator has listed a gap (a range of missing offsets), the manifests
    keep the gap until a load has skipped it."""
    loading = MemoryLoading()
    loading.write(100)
    names = [f"{TOPIC}/0/20-50", f"{TOPIC}/0/60-70", f"{TOPIC}/0/200-300"]
    loading.run(until=50, gaps_accepted=names)
    ahead = [(each.first, each.end) for each in _range(loading, 1).ahead]
    assert ahead == [(60, 70), (200, 300)]


def test_a_load_that_passes_nothing_but_a_gap_keeps_the_batch_below() -> None:
    """A load that only skips a gap (a range of missing offsets) reads no batch. Its manifest keeps
    the last batch before the gap, so that the next load can compare this batch with the log."""
    loading = MemoryLoading()
    loading.write(50)
    loading.run()
    below = _range(loading, 1).below
    assert below is not None
    assert (below.base_offset, below.last_offset) == (0, 49)
    loading.cluster.log(DATA).start = loading.cluster.log(DATA).end = 60  # all records have expired
    loading.run(gaps_accepted=[f"{TOPIC}/0/50-60"])
    found = _range(loading, 2)
    assert (found.first, found.end, found.below) == (50, 60, below)
    loading.write(50)
    loading.run()
    newest = _range(loading, 3).below
    assert newest is not None
    assert newest.base_offset == 60


@promise("4 readers compare")
def test_a_load_that_ends_in_a_gap_keeps_the_batch_below() -> None:
    """A load whose slices all lie in a gap (a range of missing offsets) reads no batch. Its
    manifest keeps the last batch before the gap, so that the next load can compare this batch with
    the log."""
    loading = MemoryLoading()
    loading.write(50)
    loading.run()
    log = loading.cluster.log(DATA)
    log.end = 70
    loading.write(50)
    loading.run(until=60, gaps_accepted=[f"{TOPIC}/0/50-70"])
    before, found = _range(loading, 1), _range(loading, 2)
    assert (found.first, found.end, found.below) == (50, 60, before.below)
    assert found.below is not None
    log.batches.clear()
    log.end, loading.lines = 0, 1_000
    loading.write(120, batch_records=60)
    outcome = loading.run()
    assert "has diverged" in str(outcome.problems[0])
    assert outcome.rows == 0


@promise("4 readers compare")
def test_a_partition_that_is_kept_back_passes_no_gap() -> None:
    """If the last batch before the load cannot be compared with the log, nothing of the partition
    is loaded. A listed gap (a range of missing offsets) at the beginning of the load is not
    skipped, either. The next load begins at the same offset."""
    below = BatchMark(0, 99, 1, 0)  # the previous load loaded a part of this batch
    newest = replace(WHOLE, topic="logs", partitions=(PartitionRange(0, 0, 30, below=below),))
    named = {0: (Gap(30, 40, "named by the mirror"),)}
    topic = SourceTopic("logs", "", WHOLE.source, (Bounds(0, 40, 200),), named)
    load = attempt(MemoryStore(), topic=topic, newest=newest)
    with patch(
        "skidway.loader.planning.batch_below.header_at", side_effect=Unreachable("nobody answers")
    ):
        (planned,) = load.plan()
    assert "kept back at offset 30" in planned.refused
    assert replace(planned, refused="") == Planned(0, 30, 30, 30, None, below)


@pytest.mark.parametrize(("wait_ms", "rejects", "waiting"), [(0, 50, 0), (5000, 0, 1)])
def test_announcements_are_waited_for_as_long_as_is_set(
    wait_ms: int, rejects: int, waiting: int
) -> None:
    """As long as the announcement of a log file (an agent's message with host and path) is missing,
    the file's records are not loaded. If `announce.wait.ms` is zero, a load rejects these records
    at once. If it is larger, the records wait for this time, and the next load then rejects
    them."""
    loading = MemoryLoading()
    full = np.ones(50, np.int64)
    values = pa.array([datum("line")] * 50, pa.binary())
    origins = Origins(full * 8, full, np.arange(50) * 10, full * 10)
    times = np.full(50, START_MS, np.int64)
    loading.cluster.log(DATA).append(columns.encode(values, times, origins=origins))
    outcome = loading.run(announce_wait_ms=wait_ms)
    assert (outcome.rejects, len(outcome.waiting)) == (rejects, waiting)
    assert outcome.loads == ([1] if rejects else [])  # a load without records is not committed
    assert not list(loading.store.files(layout.stagings(TOPIC)))
    if waiting:
        for passed_ms, rejects in ((wait_ms - 1, 0), (1, 50)):
            loading.clock.advance(passed_ms / 1000)
            outcome = loading.run(announce_wait_ms=wait_ms)
            assert (outcome.rejects, len(outcome.waiting)) == (rejects, 0 if rejects else 1)


def test_the_columns_beside_the_rows_are_always_those_of_the_newest_load() -> None:
    """Each topic has a Parquet file without rows that has the columns of the newest load. If this
    file is gone, or has other bytes than the next load would write, the next load writes the file
    again. If the file already has the right bytes, the next load does not write it."""
    loading = MemoryLoading()
    path, store = layout.columns(TOPIC), loading.store

    def load() -> bool:
        loading.write(1)
        (number,) = loading.run().loads
        data = store.read(layout.manifest(TOPIC, number))
        assert data is not None
        return Manifest.from_json(data, "").columns is not None

    assert load()
    whole = store.read(path)
    assert whole
    assert not load()
    for damaged in (b"", whole[:-1]):
        store.put(path, damaged)
        assert load()
        assert store.read(path) == whole
    store.delete(path)
    assert load()
    assert store.read(path) == whole


def _result(partition: int, stop: Stop | None, **changes: Any) -> PartitionResult:
    piece = SliceResult(Slice(partition, 0, 5), 5, **changes)
    return PartitionResult(partition, (piece, piece), 5, {}, (), None, stop)


def test_what_is_told_of_a_topic_are_its_loads_together() -> None:
    """The outcome of a topic's run has the sums of rows, rejects (by reason) and repeats over all
    loads of the run. The outcome names the log files for whose announcement the last load waits.
    Its offset ranges go from the start of the first load to the end of the last load."""
    waiting = Stop(3, "not announced", (8, 1), frozenset({(8, 1)}))
    outcome = TopicOutcome("logs", waiting=[waiting])
    results = [
        _result(0, waiting, repeats=2, reasons=Counter(straddle=1)),
        _result(1, Stop(4, "it is damaged")),
        _result(2, None, repeats=1),
    ]
    note(outcome, None, results)
    assert (outcome.waiting, [str(x) for x in outcome.problems]) == ([waiting], ["it is damaged"])
    assert (outcome.repeats, outcome.reasons, outcome.loads) == (0, {}, [])
    note(outcome, WHOLE, results)
    assert (outcome.repeats, outcome.reasons) == (6, {"straddle": 2})
    rows = tuple(each for each in WHOLE.files if each.kind == "rows")
    later = replace(WHOLE, number=8, partitions=(PartitionRange(0, 20, 30),), files=rows)
    note(outcome, later, [])
    assert outcome.waiting == []
    assert outcome.loads == [7, 8]
    assert (outcome.rows, outcome.rejects) == (2 * WHOLE.rows(), WHOLE.rejects())
    assert outcome.files == 2 * len(rows)
    assert [(each.first, each.end) for each in outcome.ranges] == [(10, 30)]


def test_a_load_says_whose_its_staging_directory_is() -> None:
    """Before its tasks begin, a load writes into its staging directory which process runs the load.
    So other loads can check whether this process is still alive."""
    loading, seen = MemoryLoading(), []
    loading.write(5)

    def look() -> None:
        (owner,) = loading.store.files(layout.stagings(TOPIC))
        seen.append(loading.store.read(owner.path))

    loading.run_beside(look)
    (found,) = seen
    since = datetime.fromtimestamp(loading.clock.time_ms() / 1000, UTC)
    assert found is not None
    assert found.decode().startswith(f"process {os.getpid()} on ")
    assert found.decode().endswith(f" since {since:%Y-%m-%dT%H:%M:%SZ}\n")


def test_an_output_is_of_one_topic_and_one_size_of_buckets() -> None:
    """The loader refuses to load another topic of the same name into an output, and to load with
    another bucket size than before."""
    loading = MemoryLoading()
    loading.write(5)
    loading.run()
    loading.write(5)
    other = loading.run(bucket_ms=30_000)
    with patch("support.memory_loading.SOURCE", replace(SOURCE, topic_id="f" * 32)):
        again = loading.run()
    for outcome in (other, again):
        assert (len(outcome.problems), outcome.rows) == (1, 0)
    assert loading.run().rows == 5


class Away(MemoryLoading):
    """A topic whose partitions 1 and 2 have a leader that does not answer."""

    def _topic(self, until: int | None) -> SourceTopic:
        return replace(super()._topic(until), away=dict.fromkeys((1, 2), "dead:9092 is silent"))


def test_a_partition_that_is_away_keeps_its_place_and_holds_no_other_back() -> None:
    """If the leader of a partition cannot be reached, the manifest keeps the partition's position,
    and the other partitions are loaded and committed."""
    loading = Away()
    loading.write(5)
    with patch.object(Away, "_topic", MemoryLoading._topic):
        loading.run()
    path = layout.manifest(TOPIC, 1)
    first = Manifest.from_json(loading.store.read(path) or b"", path)
    others = PartitionRange(1, 0, 9), PartitionRange(3, 0, 9)
    loading.store.put(path, replace(first, partitions=(first.partitions[0], *others)).to_json())
    loading.write(5)
    assert loading.run().rows == 5
    path = layout.manifest(TOPIC, 2)
    newest = Manifest.from_json(loading.store.read(path) or b"", path)
    assert [(each.partition, each.first, each.end) for each in newest.partitions] == [
        (0, 5, 10),
        (1, 9, 9),
        (2, 0, 0),
        (3, 9, 9),
    ]


def test_marks_hold_however_many_loads_there_were() -> None:
    """If a record of the first load comes again, each later load recognizes it as a repeat by the
    marks (for each log file, how far it is loaded). This also holds after a load has written a
    snapshot (one file with all marks)."""
    loading = MemoryLoading()
    for _ in range(DELTAS_MAX + 1):  # the last of these loads writes a snapshot
        loading.write(1)
        assert loading.run().rows == 1
    loading.lines = 0
    loading.write(DELTAS_MAX + 1)
    outcome = loading.run()
    assert (outcome.rows, outcome.repeats) == (0, DELTAS_MAX + 1)


def test_gaps_inside_of_a_range_stand_in_its_manifest() -> None:
    """A manifest lists the gaps (ranges of missing offsets) inside the offset ranges that its load
    has read."""
    loading = MemoryLoading()
    loading.write(5)
    loading.cluster.log(DATA).end = 10
    loading.write(5)
    assert loading.run(gaps_accepted=[f"{TOPIC}/0/5-10"]).rows == 10
    assert [(each.first, each.end) for each in _range(loading, 1).gaps] == [(5, 10)]


def test_a_load_names_the_delta_of_before_that_touched_its_buckets() -> None:
    """A load publishes its counts in a delta (an audit message). Deltas are numbered across all
    loads of the output. For each bucket, a delta contains the number of the previous delta that
    counted the bucket, even if an earlier load sent that delta."""
    loading = MemoryLoading()
    for _ in range(2):
        loading.write(5)
        loading.run()
    first, second = loading.deltas()
    assert (first.number, first.counts[0].previous) == (1, 0)
    assert (second.number, second.counts[0].previous) == (2, 1)
    assert second.sender == first.sender


class Renamed(MemoryStore):
    """A store that reaches the same output under another name, such as the name of a mount or
    another address of the store's cluster."""

    @property
    def url(self) -> str:
        return "memory:/elsewhere"


@promise("6 numbers")
def test_an_output_that_is_reached_by_another_name_goes_on_under_its_first() -> None:
    """If an output is reached under another name, it keeps its first name in the audit. Otherwise
    the audit would count it as another output, which lacks the earlier loads."""
    loading = MemoryLoading()
    loading.write(5)
    loading.run()
    loading.store = Renamed(loading.store.snapshot)
    loading.write(5)
    assert loading.run().rows == 5
    first, second = loading.deltas()
    assert second.sender == first.sender
    assert (first.number, second.number) == (1, 2)
