"""Tests the audit's counter. The tests use a cluster in memory and a real database."""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import replace
from pathlib import Path

import google_crc32c
import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.counter.counter import Counter
from skidway.audit.counter.state import CounterState
from skidway.audit.counts import checksum
from skidway.audit.database import DatabaseFailed, failures
from skidway.audit.settings import CounterSettings
from skidway.audit.topic import messages, notes
from skidway.audit.topic.messages import Delta, Heartbeat
from skidway.audit.topic.transactions import Held, Transactions, transactions_of
from skidway.errors import ConfigurationRefused, SkidwayError, StateRefused, Unreachable
from skidway.kafka import columns, gaps
from skidway.kafka.batch import TRANSACTIONAL, emptied, read_header
from skidway.kafka.client import Address
from skidway.kafka.columns import Origins
from skidway.kafka.errors import BrokerUnreachable, ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher, MemoryLog
from support.promises import promise

LOGS = TopicPartition("logs", 0)
OTHER = Address("other", 9092)
MAGIC_AT = 16  # the position of a header's field that the fetcher checks
MIRROR = {
    "mirror.source.cluster": "dc1",
    "mirror.source.cluster.id": "source-id",
    "mirror.source.topic": "logs",
    "mirror.source.topic.id": "0" * 31 + "7",
}


class Site:
    """A cluster, a clock and one counter with its state."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.cluster, self.clock = MemoryCluster("memory-id"), ManualClock()
        self.path = folder / "counter.db"
        self.settings = CounterSettings(
            bootstrap_servers="memory", cluster_name="dc1", state_dir=folder, **settings
        )
        self.state = CounterState(self.path)
        self.counter = self.start()

    def start(self) -> Counter:
        client, self.fetcher = (
            MemoryClient(self.cluster, self.clock),
            MemoryFetcher(self.cluster, clock=self.clock),
        )
        self.counter = Counter(self.settings, client, self.fetcher, self.state, self.clock)
        return self.counter

    def run(self, turns: int = 3) -> None:
        for _ in range(turns):
            self.clock.advance(10)
            self.counter.turn(0)

    def deltas(self) -> list[Delta]:
        found = [messages.decode(message) for _, message in self.state.pending(-1, 1000)]
        return [x for x in found if isinstance(x, Delta)]


def _append(
    site: Site, tp: TopicPartition, first: int, count: int, *, file: int = 3, origin: bool = True
) -> None:
    positions = np.arange(first, first + count, dtype=np.int64) * 10
    origins = Origins(np.full(count, 77), np.full(count, file), positions, np.full(count, 10))
    values = pa.array([b"x"] * count, pa.binary())
    times = 1_000_000 + positions
    encoded = columns.encode(values, times, origins=origins if origin else None)
    site.cluster.log(tp).append(encoded)


def _counted(deltas: list[Delta]) -> int:
    return sum(count.count for delta in deltas for count in delta.counts)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path, topics=[".*"])
    made.cluster.create("logs")
    return made


def test_records_are_counted_by_agent_and_bucket_with_their_checksum(site: Site) -> None:
    """A delta is the counter's message of counts. It contains, for each agent and bucket, the
    count, the bytes and the checksum of exactly the records in the log."""
    _append(site, LOGS, 0, 100)
    site.run()
    [delta] = site.deltas()
    [count] = delta.counts
    positions = np.arange(100, dtype=np.int64) * 10
    hashes = checksum.record_hash(np.full(100, 77), np.full(100, 3), positions, np.full(100, 10))
    assert (count.agent, count.count, count.bytes) == (77, 100, 1000)
    assert (count.bucket, count.bucket_ms) == (960_000, 60_000)
    assert count.checksum == checksum.total(hashes)
    assert count.source.topic_id == site.cluster.topics["logs"].topic_id.hex
    assert (count.source.cluster, count.source.cluster_id) == ("dc1", "memory-id")
    [covered] = delta.ranges
    assert (covered.partition, covered.first, covered.end) == (0, 0, 100)


@promise("6 numbers")
def test_numbers_have_no_holes_and_buckets_are_chained(site: Site) -> None:
    """The numbers of deltas (the counter's messages with counts) follow each other without a
    missing number. If the counter reads no new records in a turn of its loop, it uses no number.
    Each count in a delta contains the number of the previous delta that counted the same bucket."""
    for part in range(3):
        _append(site, LOGS, part * 10, 10)
        site.run(2)
    deltas = site.deltas()
    assert [delta.number for delta in deltas] == [1, 2, 3]
    assert [count.previous for delta in deltas for count in delta.counts] == [0, 1, 2]


@promise("6 numbers")
def test_a_chain_passes_over_deltas_of_other_buckets(site: Site) -> None:
    """A count contains the number of the last delta (message with counts) that counted the same
    bucket, even if later deltas counted other buckets. If the count contained the number of one of
    these later deltas, the audit would conclude that a delta of the bucket is missing."""
    for first, file in ((0, 3), (2_000, 3), (0, 4)):
        _append(site, LOGS, first, 10, file=file)
        site.run(2)
    found = [(x.bucket, x.previous) for delta in site.deltas() for x in delta.counts]
    assert found == [(960_000, 0), (1_020_000, 0), (960_000, 1)]


def test_repeats_are_counted_apart(site: Site) -> None:
    """If records were sent again, the counter counts them as repeats and not as new records."""
    _append(site, LOGS, 0, 10)
    _append(site, LOGS, 5, 10)
    site.run()
    [count] = [count for delta in site.deltas() for count in delta.counts]
    assert (count.count, count.repeats) == (15, 5)


def test_a_restart_goes_on_where_the_last_commit_ended(site: Site) -> None:
    """A restarted counter continues from its last commit with the same marks. The mark of a file is
    the highest end of the records that were counted. So if an agent sends counted records again
    after the restart, the counter recognizes them as repeats."""
    _append(site, LOGS, 0, 10)
    site.run()
    site.state.close()
    site.state = CounterState(site.path)
    site.start()
    _append(site, LOGS, 5, 10)
    site.run()
    assert _counted(site.deltas()) == 15
    assert [delta.number for delta in site.deltas()] == [1, 2]


def test_what_was_not_committed_is_counted_again_and_only_once(site: Site) -> None:
    """If records were counted but not committed before a crash, the counter counts them again after
    the crash. In all, each record is counted exactly once."""
    _append(site, LOGS, 0, 10)
    site.counter.turn(0)  # counts and commits the first ten records
    _append(site, LOGS, 10, 10)
    site.counter.turn(0)  # counts the other ten records without a commit
    site.start()
    site.run()
    assert _counted(site.deltas()) == 20


def test_a_topic_that_was_away_between_two_commits_is_counted_once(tmp_path: Path) -> None:
    """If a topic is missing from the cluster's metadata for a moment, each of its records is
    counted once. This includes records that were counted, but not yet committed, when the topic
    disappeared."""
    site = Site(tmp_path, topics=[".*"], commit_interval_ms=60_000, metadata_max_age_ms=100)
    logs = site.cluster.create("logs")
    site.run(1)
    _append(site, LOGS, 0, 10)
    site.run(1)  # counted, and not committed yet
    del site.cluster.topics["logs"]
    site.run(1)
    site.cluster.topics["logs"] = logs
    _append(site, LOGS, 10, 10)
    site.run(10)
    assert _counted(site.deltas()) == 20


def test_messages_name_the_host_as_the_settings_do(tmp_path: Path) -> None:
    """The counts of a counter name its host by the setting `host.name`."""
    site = Site(tmp_path, host_name="au1.example")
    site.cluster.create("logs")
    _append(site, LOGS, 0, 5)
    site.run()
    assert {x.sender.host for x in site.deltas()} == {"au1.example"}


def test_records_without_origin_are_counted_by_offset(site: Site) -> None:
    """Records without origin are counted by their offsets, under agent 0 and with 0 bytes."""
    _append(site, LOGS, 0, 10, origin=False)
    site.run()
    [count] = [count for delta in site.deltas() for count in delta.counts]
    assert (count.agent, count.count, count.bytes) == (0, 10, 0)


def test_new_topics_and_partitions_are_found(site: Site) -> None:
    """Topics and partitions that are created while the counter runs are counted from their
    beginning."""
    site.run()
    site.cluster.create("mail", 2)
    _append(site, TopicPartition("mail", 1), 0, 7)
    site.run()
    assert _counted(site.deltas()) == 7


def test_a_topic_made_again_is_another_topic(site: Site) -> None:
    """After a topic was deleted and created again, the counter counts the new topic from its
    beginning, under the new topic id. It counts every record of the new topic as new, even if the
    old topic had the same record."""
    _append(site, LOGS, 0, 10)
    site.run()
    old = site.cluster.topics["logs"].topic_id.hex
    site.cluster.create("logs")
    _append(site, LOGS, 0, 10)
    site.run()
    counts = [count for delta in site.deltas() for count in delta.counts]
    new = site.cluster.topics["logs"].topic_id.hex
    assert [(x.source.topic_id, x.count, x.repeats) for x in counts] == [(old, 10, 0), (new, 10, 0)]


def test_expired_records_are_a_named_gap(site: Site) -> None:
    """If records have expired, the counter continues with the first record that is left, and its
    next message reports the expired offsets as a gap."""
    _append(site, LOGS, 0, 10)
    _append(site, LOGS, 10, 10)
    site.cluster.log(LOGS).expire(10)
    site.run()
    [gap] = [gap for delta in site.deltas() for gap in delta.gaps]
    assert (gap.first, gap.end) == (0, 10)
    assert _counted(site.deltas()) == 10


DC1_LOGS = TopicPartition("dc1.logs", 0)


def _mirrored(folder: Path, named: str = "") -> Site:
    """Returns a counter of the tier mirror, and a cluster whose mirrored topic has the offsets 0 to
    9 and 30 to 39, but not 10 to 29. named: the gaps that the mirror has written into the topic's
    config."""
    site = Site(folder, tier="mirror", topics=[".*"])
    log = site.cluster.create("dc1.logs", configs={**MIRROR, gaps.CONFIG: named}).logs[0]
    for part in range(4):
        _append(site, DC1_LOGS, part * 10, 10)
    del log.batches[1:3]
    return site


@promise("4 reason of a gap")
@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("0:10-30:expired", "the mirror named them: expired"),
        ("0:10-20:expired,0:20-30:too old", "the mirror named them: expired; too old"),
        ("0:10-29:expired", "these offsets are not in the log, and no mirror named them"),
        ("1:10-30:expired", "these offsets are not in the log, and no mirror named them"),
    ],
)
def test_a_hole_has_the_reason_that_the_mirror_gave(
    tmp_path: Path, named: str, reason: str
) -> None:
    """The counter reports a gap with the reason that the mirror has written into the topic's
    config. If the config does not list all offsets of the gap, the reason in the report is that no
    mirror named them."""
    site = _mirrored(tmp_path, named)
    site.run()
    [gap] = [gap for delta in site.deltas() for gap in delta.gaps]
    assert (gap.first, gap.end, gap.reason) == (10, 30, reason)
    assert _counted(site.deltas()) == 20


def test_expired_offsets_that_a_mirror_named_have_its_reason(tmp_path: Path) -> None:
    """If a mirrored topic begins after offset 0, because the source's records before this offset
    had expired, the counter reports these offsets as a gap with the mirror's reason."""
    site = _mirrored(tmp_path, "0:0-30:expired")
    site.cluster.log(DC1_LOGS).expire(30)
    site.run()
    [gap] = [gap for delta in site.deltas() for gap in delta.gaps]
    assert (gap.first, gap.end, gap.reason) == (0, 30, "the mirror named them: expired")


def test_a_hole_waits_until_the_mirror_can_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If offsets are missing in a mirrored topic, the counter counts the records after these
    offsets only when it has read the mirror's reason from the topic's config."""

    def failing(*_: object) -> None:
        raise Unreachable("nobody answers")

    monkeypatch.setattr(gaps, "named_by_mirrors", failing)
    site = _mirrored(tmp_path, "0:10-30:expired")
    site.run()
    assert _counted(site.deltas()) == 10
    assert [gap for delta in site.deltas() for gap in delta.gaps] == []
    assert "nobody answers" in str(site.counter.health.detail)
    monkeypatch.undo()
    site.run()
    assert [gap.reason for delta in site.deltas() for gap in delta.gaps] == [
        "the mirror named them: expired"
    ]
    assert _counted(site.deltas()) == 20


@pytest.mark.parametrize(
    "failure",
    [Unreachable("nobody answers"), KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "logs")],
    ids=["unreachable", "refused"],
)
def test_a_question_for_log_bounds_that_fails_is_asked_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, failure: SkidwayError
) -> None:
    """After the error "offset out of range", the counter asks the broker where the log begins and
    ends. If this request fails, the counter repeats it. Otherwise it would never fetch the
    partition again."""
    _append(site, LOGS, 0, 10)
    _append(site, LOGS, 10, 10)
    site.cluster.log(LOGS).expire(10)
    asked = MemoryClient.list_offsets

    def failing(*_: object) -> None:
        monkeypatch.setattr(MemoryClient, "list_offsets", asked)
        raise failure

    monkeypatch.setattr(MemoryClient, "list_offsets", failing)
    with contextlib.suppress(Unreachable):  # the real program would wait and then continue
        site.run(1)
    site.run()
    assert _counted(site.deltas()) == 10


def test_a_topic_that_vanishes_while_it_is_asked_for_is_looked_for_later(site: Site) -> None:
    """If a topic is deleted while the counter asks the brokers for the config of the topic, the
    counter keeps running, and nothing is wrong."""
    site.cluster.create("another")
    site.cluster.secret["another"] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    _append(site, LOGS, 0, 10)
    site.run()
    assert _counted(site.deltas()) == 10
    assert site.counter.health.ok


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_partition_that_cannot_be_fetched_is_named_in_health(
    site: Site, is_damaged: bool
) -> None:
    """While the counter cannot fetch a partition, /health reports the partition. When it can be
    fetched again, the counter counts all of its records."""
    _append(site, LOGS, 0, 10)
    site.run()
    _append(site, LOGS, 10, 5)
    if is_damaged:
        site.cluster.log(LOGS).batches[1][MAGIC_AT] ^= 1
    else:
        site.cluster.fetch_errors[LOGS] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    site.run()
    assert not site.counter.health.ok
    assert "logs-0 cannot be read" in str(site.counter.health.detail)
    if is_damaged:
        site.cluster.log(LOGS).batches[1][MAGIC_AT] ^= 1
    site.cluster.fetch_errors.clear()
    site.run(6)
    assert site.counter.health.ok
    assert _counted(site.deltas()) == 15


def test_a_diverged_log_stops_its_partition_by_name_and_no_other(site: Site) -> None:
    """At each start the counter compares the batch just before its position in a partition with the
    batch that it counted there. If they differ, the log has diverged. Then the counter stops
    counting this partition, but continues with all others, and /health reports the partition."""
    site.cluster.create("mail")
    _append(site, LOGS, 0, 10)
    site.run()
    site.cluster.log(LOGS).batches.clear()
    site.cluster.log(LOGS).end = 0
    _append(site, LOGS, 50, 20)
    site.start()
    _append(site, TopicPartition("mail", 0), 0, 5)
    site.run()
    assert not site.counter.health.ok
    assert "diverged" in site.counter.health.detail["stopped"]["logs-0"]
    assert _counted(site.deltas()) == 15


def test_a_damaged_batch_stops_its_partition_by_name(site: Site) -> None:
    """The counter never skips a damaged batch. It stops counting the batch's partition, and /health
    reports the partition."""
    _append(site, LOGS, 0, 10)
    site.cluster.log(LOGS).batches[0][-1] ^= 0xFF
    site.run()
    assert "damaged" in site.counter.health.detail["stopped"]["logs-0"]


@pytest.mark.parametrize("is_restarted", [False, True])
def test_the_audit_is_told_of_a_stopped_partition(site: Site, is_restarted: bool) -> None:
    """The counter tells the audit at which offset it has stopped a partition and why, in few words,
    and tells it again after a restart. An open transaction in another partition does not hide
    it."""
    site.cluster.create("logs", 2)
    other = TopicPartition("logs", 1)
    _append(site, LOGS, 0, 10)
    _append(site, LOGS, 10, 10)
    site.cluster.log(LOGS).batches[1][-1] ^= 0xFF
    site.fetcher.held = {other: 0}
    site.run()
    if is_restarted:
        site.start()
        site.run()
    held = _told(site)["logs"].held
    assert held is not None
    assert (held.partition, held.offset) == (0, 10)
    assert "a batch is damaged" in held.reason
    assert len(held.reason) <= 500


def test_only_the_batches_before_a_damaged_one_are_counted(site: Site) -> None:
    """If a batch is malformed although its CRC is right, the counter counts the batches before the
    malformed one, and stops counting the partition at that batch."""
    for part in range(4):
        _append(site, LOGS, part * 10, 10)
    batch = site.cluster.log(LOGS).batches[2]
    batch[57:61] = (9).to_bytes(4, "big")
    batch[17:21] = google_crc32c.value(bytes(batch[21:])).to_bytes(4, "big")
    site.run()
    assert "damaged" in site.counter.health.detail["stopped"]["logs-0"]
    assert _counted(site.deltas()) == 20
    assert [(x.first, x.end) for delta in site.deltas() for x in delta.ranges] == [(0, 20)]


def test_each_tier_counts_its_own_topics(tmp_path: Path) -> None:
    """A counter of the tier broker counts the records that were produced to its cluster. A counter
    of the tier mirror counts the records that were mirrored to its cluster, under the source
    cluster's name."""
    found = {}
    for tier in ("broker", "mirror"):
        folder = tmp_path / tier
        folder.mkdir()
        site = Site(folder, tier=tier, topics=[".*"])
        site.cluster.create("own")
        site.cluster.create("dc1.logs", configs=MIRROR)
        _append(site, TopicPartition("own", 0), 0, 1)
        _append(site, TopicPartition("dc1.logs", 0), 0, 2)
        site.run()
        found[tier] = [x.source for delta in site.deltas() for x in delta.counts]
    assert [source.topic for source in found["broker"]] == ["own"]
    [source] = found["mirror"]
    assert (source.cluster, source.topic, source.topic_id) == ("dc1", "logs", "0" * 31 + "7")


def test_our_own_topics_are_not_counted(site: Site) -> None:
    """The counter never counts the audit topic, because each of its own messages would be one more
    message to count."""
    site.cluster.create("_skidway_audit")
    _append(site, TopicPartition("_skidway_audit", 0), 0, 5)
    site.run()
    assert site.deltas() == []


def test_a_new_epoch_counts_everything_again(site: Site) -> None:
    """In a new epoch, the counter begins with message number 1, at offset 0 of each partition, and
    without marks (how far each file was counted)."""
    _append(site, LOGS, 0, 10)
    site.run()
    site.state.begin_epoch(2)
    site.start()
    site.run()
    [delta] = site.deltas()
    assert (delta.sender.epoch, delta.number, _counted([delta])) == (2, 1, 10)


def test_a_changed_bucket_size_is_refused(site: Site) -> None:
    """If the bucket size in the settings changes, the counter refuses to start until an operator
    begins a new epoch, which counts everything again. Without a new epoch, buckets of the old and
    the new size would overlap, and would never become complete."""
    site.state.settle_bucket(60_000)
    site.state.settle_bucket(60_000)
    with pytest.raises(ConfigurationRefused, match=r"bucket\.ms is 10000, but .* buckets of 60000"):
        site.state.settle_bucket(10_000)
    site.state.begin_epoch(2)
    site.state.settle_bucket(10_000)


def test_a_full_disk_is_one_sentence_and_loses_nothing(site: Site) -> None:
    """If the disk is full, the transaction is rolled back and the error is one sentence. When the
    disk has room again, a restarted counter counts all records once, and no message number is
    missing."""
    _append(site, LOGS, 0, 10)
    site.run()
    database = site.state._connection
    database.execute(
        f"PRAGMA max_page_count = {database.execute('PRAGMA page_count').fetchone()[0]}"
    )
    for file in range(1000):
        _append(site, LOGS, 0, 1, file=100 + file)
    with (
        pytest.raises(DatabaseFailed, match=r"counter\.db cannot be used now: .*full"),
        failures(site.path),
    ):
        site.run(20)
    assert _counted(site.deltas()) == 10
    site.state.close()
    site.state = CounterState(site.path)
    site.start()
    site.run()
    assert _counted(site.deltas()) == 1010
    numbers = [delta.number for delta in site.deltas()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_heartbeats_come_when_due(site: Site) -> None:
    """The counter makes a heartbeat each time `heartbeat.interval.ms` has passed. The heartbeat
    contains the number of the counter's last message."""
    assert site.counter.heartbeat() is None
    site.clock.advance(61)
    message = site.counter.heartbeat()
    assert message is not None
    assert messages.decode(message).number == 0  # type: ignore[union-attr]
    assert site.counter.heartbeat() is None


def _abort(site: Site) -> None:
    """Makes the newest batch of the log one of an aborted transaction, as a fetcher returns it."""
    log = site.cluster.log(LOGS)
    header = read_header(log.batches[-1])
    header = header._replace(attributes=header.attributes | TRANSACTIONAL)
    log.batches[-1] = bytearray(emptied(header))


def _told(site: Site) -> dict[str, Transactions]:
    site.clock.advance(5)
    value = site.counter.transactions_note()
    assert value is not None
    return {x.topic: each for x, each in transactions_of(notes.decode(value)).items()}


def test_aborted_records_are_left_out_and_named_by_number(site: Site) -> None:
    """The counter does not count the records of aborted transactions, and finds no gap where they
    are. It reports their number, also after a restart."""
    _append(site, LOGS, 0, 4)
    _append(site, LOGS, 100, 3, origin=False)
    _abort(site)
    _append(site, LOGS, 4, 2)
    site.run()
    assert _counted(site.deltas()) == 6
    assert [delta.gaps for delta in site.deltas()] == [()]
    assert [(x.first, x.end) for x in site.deltas()[0].ranges] == [(0, 9)]
    assert _told(site) == {"logs": Transactions(3)}
    site.state.close()
    site.state = CounterState(site.path)
    site.start()
    _append(site, LOGS, 200, 2, origin=False)
    _abort(site)
    site.run()
    assert _told(site) == {"logs": Transactions(5)}


def test_an_open_transaction_is_told(site: Site) -> None:
    """The counter reports up to when it has counted the topic, and at which offset a transaction is
    open. If the transaction is open for long, /health names it."""
    site.run(1)
    until_ms = site.clock.time_ms()
    site.fetcher.held = {LOGS: 4}
    site.run(1)
    assert site.counter.health.detail["open_transactions"] == {}
    assert _told(site) == {"logs": Transactions(0, Held(0, 0, until_ms))}
    site.clock.advance(60)
    site.run(1)
    [words] = site.counter.health.detail["open_transactions"].values()
    assert "a transaction is open at offset 0 since" in words
    site.fetcher.held = {}
    site.run(2)
    assert _told(site) == {}
    assert site.counter.health.detail["open_transactions"] == {}


def _lags(site: Site) -> tuple[int, dict[str, int]]:
    """The lag of most topics, and the lags of others, of the counter's next heartbeat."""
    value = site.counter.heartbeat()
    while value is None:
        site.run(1)
        value = site.counter.heartbeat()
    said = messages.decode(value)
    assert isinstance(said, Heartbeat)
    return said.lag_ms, {x.source.topic: x.lag_ms for x in said.behind}


def test_a_heartbeat_says_up_to_when_the_durable_counts_have_all_records(tmp_path: Path) -> None:
    """Records that are not counted yet, or whose counts are not durable, hold their topic back, and
    no other topic. When their counts are durable, nothing is held back."""
    site = Site(tmp_path, topics=[".*"], commit_interval_ms=100_000)
    for name in ("logs", "other"):
        site.cluster.create(name)
    site.run(1)
    assert _lags(site) == (0, {})
    _append(site, LOGS, 0, 4)
    site.clock.advance(10)
    site.counter.turn(0)
    assert _lags(site) == (0, {"logs": 10_000})
    site.counter.commit()
    site.run(1)
    assert _lags(site) == (0, {})


def test_a_transaction_holds_its_topic_back_also_after_a_restart(site: Site) -> None:
    """While a transaction is open, the heartbeat says up to when the counter had counted before it,
    although transactions behind it begin and end, and although the counter starts again."""
    _append(site, LOGS, 0, 4)
    site.run(3)
    assert _lags(site) == (0, {})
    until_ms = site.clock.time_ms()
    site.cluster.create("other")
    site.fetcher.held = {LOGS: 6}
    site.run(2)
    assert _lags(site) == (0, {"logs": site.clock.time_ms() - until_ms})
    site.clock.set_time_ms(
        site.clock.time_ms() + 3_600_000
    )  # what a clock says that was wrong is not believed later
    site.start()
    site.fetcher.held = {LOGS: 9}
    site.run(2)
    assert _lags(site) == (0, {"logs": site.clock.time_ms()})
    site.fetcher.held = {}
    site.run(1)
    assert _lags(site) == (0, {})


@pytest.mark.parametrize("why", ["compacted", "not chosen", "hidden"])
def test_a_topic_that_is_not_counted_any_more_is_not_vouched_for(tmp_path: Path, why: str) -> None:
    """If the counter finds, after a start or while it runs, that it cannot count a topic any more
    which it has counted, it does not say that it has counted the topic, and tells the audit why. If
    this is not what somebody has set, /health is 503. If the topic was deleted, nothing is
    missing."""
    site = Site(tmp_path, topics=[".*"])
    for name in ("logs", "other"):
        site.cluster.create(name)
        _append(site, TopicPartition(name, 0), 0, 4)
    site.run()
    if why == "compacted":
        site.cluster.topics["logs"].configs["cleanup.policy"] = "compact"
        site.start()
    elif why == "not chosen":
        site.settings = replace(site.settings, topics=["other"])
        site.start()
    else:
        site.cluster.hidden["logs"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    _append(site, LOGS, 4, 2)
    site.run(2)
    assert _lags(site) == (0, {"logs": site.clock.time_ms()})
    words = {"compacted": "compacted", "not chosen": "`topics`", "hidden": "AUTHORIZATION"}
    held = _told(site)["logs"].held
    assert held is not None
    assert words[why] in held.reason
    left_out = {"logs of dc1": held.reason} if why == "hidden" else {}
    assert site.counter.health.detail["left_out"] == left_out
    assert site.counter.health.ok == (not left_out)
    del site.cluster.topics["logs"]
    site.cluster.hidden.clear()
    site.run(2)
    assert _lags(site) == (0, {})


def test_a_topic_whose_compaction_ends_is_counted(site: Site) -> None:
    """A topic that is compacted no more is counted without a new start."""
    site.cluster.topics["logs"].configs["cleanup.policy"] = "compact"
    _append(site, LOGS, 0, 4)
    site.run(2)
    assert _counted(site.deltas()) == 0
    del site.cluster.topics["logs"].configs["cleanup.policy"]
    site.run(3)
    assert _counted(site.deltas()) == 4
    assert _lags(site) == (0, {})


def test_a_topic_whose_settings_the_brokers_do_not_tell_keeps_no_other_from_being_counted(
    site: Site,
) -> None:
    """Nobody knows whether such a topic is a mirror of another one. So the counter counts the other
    topics, vouches for none, and /health names the topic."""
    site.cluster.create("secret")
    site.cluster.secret["secret"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    _append(site, LOGS, 0, 4)
    site.run()
    assert _counted(site.deltas()) == 4
    assert _lags(site)[0] == site.clock.time_ms()
    assert not site.counter.health.ok
    assert [*site.counter.health.detail["unread"]] == ["secret"]
    site.cluster.secret.clear()
    site.run()
    assert (_lags(site), site.counter.health.ok) == ((0, {}), True)


def test_before_the_cluster_was_asked_nothing_is_vouched_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as the counter has not learned which topics there are, it vouches for none."""

    def refused(*_: object) -> None:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    monkeypatch.setattr(MemoryClient, "metadata_of_each", refused)
    site.run()
    assert _lags(site) == (site.clock.time_ms(), {})


@promise("6 without origin")
@pytest.mark.parametrize("what", ["new topic", "deleted topic", "new partition", "other id"])
def test_what_the_brokers_do_not_agree_about_is_not_believed(
    site: Site, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    """If a broker shows a topic otherwise than another one does, nothing is begun or forgotten, and
    the counter vouches for nothing that came since. /health and the log say why. When the brokers
    agree again, everything is counted."""
    _append(site, LOGS, 0, 4)
    site.run()
    logs = site.cluster.topics["logs"]
    old = {"logs": replace(logs, logs=[*logs.logs])}
    if what == "new topic":
        site.cluster.create("mail")
    elif what == "deleted topic":
        old = {}
    elif what == "new partition":
        logs.logs.append(MemoryLog())
    else:
        old["logs"].topic_id = uuid.UUID(int=7)
    site.cluster.others[OTHER] = old
    _append(site, LOGS, 4, 2)
    site.run(3)
    assert [*site.fetcher.positions] == [LOGS]
    assert _lags(site)[0] >= 30_000
    name = "mail" if what == "new topic" else "logs"
    why = f"broker other:9092 does not show the topic {name} as broker memory:9092 does"
    assert (site.counter.health.ok, site.counter.health.detail["not_refreshed"]) == (False, why)
    assert "topics_not_refreshed" in [each.message for each in caplog.records]
    site.cluster.others[OTHER] = site.cluster.topics
    site.run()
    assert (_lags(site), site.counter.health.ok) == ((0, {}), True)
    assert _counted(site.deltas()) == 6
    assert len(site.fetcher.positions) == 2 if what in ("new topic", "new partition") else 1


@promise("6 without origin")
def test_a_broker_that_does_not_answer_may_know_more(site: Site) -> None:
    """While one broker does not answer, the counter goes on, also after a fetch that failed, but
    does not vouch for what comes. The brokers may disagree about a topic that the counter does not
    count."""
    site.run()
    site.cluster.others[OTHER] = None
    site.cluster.fetch_errors[LOGS] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    _append(site, LOGS, 0, 4)
    site.run()
    site.cluster.fetch_errors.clear()
    site.run()
    assert _counted(site.deltas()) == 4
    assert _lags(site)[0] >= 30_000
    assert "other:9092" in site.counter.health.detail["not_refreshed"]
    site.cluster.others[OTHER] = {**site.cluster.topics, "_own": site.cluster.topics["logs"]}
    site.run()
    assert (_lags(site), site.counter.health.ok) == ((0, {}), True)


@promise("6 without origin")
def test_a_topic_is_deleted_only_if_all_brokers_say_so(site: Site) -> None:
    """If no broker lists a topic any more, the counter asks for it by name. If one of them says
    that it lacks the right, and another one that there is no such topic, it is not deleted."""
    _append(site, LOGS, 0, 4)
    site.run()
    site.cluster.hidden["logs"] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    site.cluster.others[OTHER] = {}
    site.run()
    assert _lags(site)[0] >= 30_000
    site.cluster.hidden.clear()
    site.cluster.others.clear()
    site.run()
    assert (_lags(site), site.counter.health.ok) == ((0, {}), True)


def test_a_topic_that_is_back_can_be_missed_again(tmp_path: Path) -> None:
    """A mirror topic that was deleted and made again has the same source. If the counter then loses
    its rights, it vouches for the source no more."""
    site = Site(tmp_path, topics=[".*"], tier="mirror")
    name = "dc1.logs"
    site.cluster.create(name, configs=MIRROR)
    _append(site, TopicPartition(name, 0), 0, 4)
    site.run()
    del site.cluster.topics[name]
    site.run()
    site.cluster.create(name, configs=MIRROR)
    site.run()
    site.cluster.hidden[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    site.run(2)
    assert _lags(site) == (0, {"logs": site.clock.time_ms()})


def test_a_cluster_that_does_not_answer_is_named_until_it_does(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no broker answers, the program is told so, and /health stays 503 until the counter knows
    the topics again."""
    asked = MemoryClient.metadata_of_each

    def away(*_: object) -> None:
        raise BrokerUnreachable("no broker answers")

    monkeypatch.setattr(MemoryClient, "metadata_of_each", away)
    site.clock.advance(10)
    with pytest.raises(Unreachable):
        site.counter.turn(0)
    site.counter.turn(0)  # no look is due
    assert site.counter.health.detail["not_refreshed"] == "no broker answers"
    monkeypatch.setattr(MemoryClient, "metadata_of_each", asked)
    site.run()
    assert site.counter.health.ok


@pytest.mark.parametrize("grown", [0, 1, 5])
def test_a_log_that_was_cut_and_grew_again_while_the_counter_runs_is_not_followed(
    site: Site, grown: int
) -> None:
    """After an interruption, the counter compares the last counted batch with the log, also if the
    log is as long as before or longer. If the batch is another one, the counter stops the partition
    and vouches no more for its topic; otherwise it goes on, and counts nothing twice."""
    _append(site, LOGS, 0, 5)
    _append(site, LOGS, 5, 5)
    site.run()
    site.fetcher.interruptions[LOGS] = "the connection was lost"
    _append(site, LOGS, 10, 2)
    site.run()
    assert _counted(site.deltas()) == 12
    before_ms = site.clock.time_ms()
    log = site.cluster.log(LOGS)
    del log.batches[1:]
    log.end = 5
    _append(site, LOGS, 100, 7 + grown)
    site.fetcher.interruptions[LOGS] = "the connection was lost"
    site.run()
    assert _counted(site.deltas()) == 12
    assert "diverged" in site.counter.health.detail["stopped"]["logs-0"]
    assert _lags(site)[1]["logs"] >= site.clock.time_ms() - before_ms


def test_a_partition_that_cannot_be_counted_holds_its_topic_back(site: Site) -> None:
    """If the counter has stopped counting a partition, or its leader does not answer, the counter
    does not say that it has counted the topic up to the present."""
    site.cluster.create("other")
    site.run(2)
    site.cluster.fetch_errors[LOGS] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    site.run(3)
    lag_ms, behind = _lags(site)
    assert (lag_ms, [*behind]) == (0, ["logs"])
    assert behind["logs"] >= 20_000


def test_a_compacted_topic_is_not_counted_and_named_so(site: Site) -> None:
    """The counter counts nothing of a compacted topic, and /health names the topic. A batch from
    which compaction removed records before `cleanup.policy` was changed stops its partition."""
    site.cluster.create("states", configs={"cleanup.policy": "compact,delete"})
    _append(site, TopicPartition("states", 0), 0, 5)
    _append(site, LOGS, 0, 5)
    _append(site, LOGS, 5, 3)
    log = site.cluster.log(LOGS)
    log.batches[-1] = bytearray(emptied(read_header(log.batches[-1])))
    site.run()
    assert [x.source.topic for delta in site.deltas() for x in delta.ranges] == ["logs"]
    assert _counted(site.deltas()) == 5
    detail = site.counter.health.detail
    assert detail["compacted"] == ["states"]
    assert detail["stopped"] == {
        str(LOGS): "the batch at offset 5 has 0 of its 3 records: the topic was compacted"
        " (cleanup.policy)"
    }


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    """The counter refuses a damaged state, because it must not start over without an operator's
    decision."""
    path = tmp_path / "counter.db"
    path.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StateRefused, match="is damaged: file is not a database"):
        CounterState(path)


def test_a_database_of_another_format_is_refused(tmp_path: Path) -> None:
    """The counter refuses a state with the format of a newer version."""
    state = CounterState(tmp_path / "counter.db")
    state._connection.execute("PRAGMA user_version = 99")
    state.close()
    with pytest.raises(StateRefused, match="format 99"):
        CounterState(tmp_path / "counter.db")
