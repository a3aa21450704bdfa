"""Whatever the responses contain, the fetch positions skip no batch, and no batch is returned
twice."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from skidway.errors import SkidwayError, UsageError
from skidway.kafka.batch import OFFSET_MAX, CorruptBatch, read_header
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.fetcher import Fetcher
from skidway.kafka.client.fetching import Fetched, Fetching, PlannedFetch, whole_batches
from skidway.kafka.errors import ErrorCode, KafkaError, OffsetOutOfRange
from skidway.kafka.protocol.fetch import READ_COMMITTED
from skidway.kafka.protocol.fetch_response import FetchAnswer, FetchedPartition
from skidway.kafka.types import TopicPartition
from support.batches import batch_at
from support.clock import ManualClock
from support.randomness import Seeds

A, B = Address("a", 1), Address("b", 1)
TP = TopicPartition("t", 0)
OTHER = TopicPartition("other", 0)
NOW = 1_000.0


def make(max_bytes: int = 1_000) -> Fetching:
    return Fetching(max_bytes=max_bytes, max_wait_ms=500, min_bytes=1, random=lambda: 0.5)


def plan(fetching: Fetching, leader: Address | None = A, now: float = NOW) -> list[PlannedFetch]:
    return fetching.plan(lambda _: leader, lambda _: True, now)


def part(
    records: bytes = b"", error: int = 0, tp: TopicPartition = TP, *, high_watermark: int = 50
) -> FetchedPartition:
    return FetchedPartition(*tp, error, high_watermark, 50, 3, memoryview(records), None, -1)


def answer(fetching: Fetching, planned: PlannedFetch, *parts: FetchedPartition) -> list[Fetched]:
    fetching.answered(planned.id, FetchAnswer(0, 0, 0, list(parts)), NOW)
    return fetching.take()


def test_a_fetch_asks_for_what_is_next() -> None:
    """One request to a leader fetches all of the leader's partitions, each from its own position
    on."""
    fetching = make()
    fetching.seek(TP, 7)
    fetching.seek(TopicPartition("u", 1), 0)
    fetching.seek(TopicPartition("t", 2), 9)
    [planned] = plan(fetching)
    wanted = [(each.topic, each.partition, each.offset) for each in planned.request.wanted]
    assert wanted == [("t", 0, 7), ("t", 2, 9), ("u", 1, 0)]
    assert planned.request.max_bytes == planned.request.wanted[0].max_bytes == 1_000
    assert plan(fetching) == []


def test_positions_move_when_batches_are_taken() -> None:
    """A partition's position moves when the caller takes the partition's batches. Batches that were
    fetched but not taken yet are not fetched again."""
    fetching = make()
    fetching.seek(TP, 1)
    [planned] = plan(fetching)
    records = batch_at(0, 3) + batch_at(3, 2)
    fetching.answered(planned.id, FetchAnswer(0, 0, 0, [part(records)]), NOW)
    assert fetching.positions == {TP: 1}
    assert plan(fetching) == []
    [fetched] = fetching.take()
    assert [read_header(raw).base_offset for raw in fetched.batches] == [0, 3]
    assert (fetched.high_watermark, fetched.log_start_offset) == (50, 3)
    assert fetching.positions == {TP: 5}
    assert fetching.high_watermarks == {TP: 50}
    [planned] = plan(fetching)
    assert planned.request.wanted[0].offset == 5


def test_a_longer_answer_is_asked_for_where_no_batch_is_whole() -> None:
    """If the answer to a fetch ends within its first batch, because the batch is larger than the
    fetch's size limit, the next fetch sets the limit to the length in the batch's header."""
    fetching = make(max_bytes=100)
    fetching.seek(TP, 0)
    large = batch_at(0, 1, body=bytes(5_000))
    [planned] = plan(fetching)
    assert answer(fetching, planned, part(large[:100])) == []
    [planned] = plan(fetching)
    assert planned.request.wanted[0].max_bytes == planned.request.max_bytes == len(large)
    assert len(answer(fetching, planned, part(large))) == 1
    [planned] = plan(fetching)
    assert planned.request.max_bytes == 100


def test_batches_below_the_position_do_not_stand_still() -> None:
    """If all batches of an answer lie before the fetch position, the next fetch has a higher size
    limit, so that its answer reaches the position."""
    fetching = make(max_bytes=100)
    fetching.seek(TP, 10)
    [planned] = plan(fetching)
    assert answer(fetching, planned, part(batch_at(0, 5))) == []
    [planned] = plan(fetching)
    assert planned.request.max_bytes > 100


@pytest.mark.parametrize("code", [-1, 3, 5, 6, 9, 56, 74, 75, 78])
def test_leaders_that_are_not_ready_are_asked_later(code: int) -> None:
    """If the answer to a fetch says that a partition's leader is not ready, the client's position
    in the partition stays the same. The client looks up the leaders and waits a moment before the
    next fetch."""
    fetching = make()
    fetching.seek(TP, 4)
    [planned] = plan(fetching)
    assert answer(fetching, planned, part(error=code)) == []
    assert fetching.has_stale_leaders
    assert plan(fetching) == []
    deadline = fetching.next_deadline(NOW)
    assert deadline == pytest.approx(NOW + 0.05)
    [planned] = plan(fetching, B, now=NOW + 0.051)
    assert (planned.address, planned.request.wanted[0].offset) == (B, 4)


def test_an_offset_out_of_range_stops_the_partition() -> None:
    """If a fetch's offset is not in the broker's log, `take_error` returns the error
    OffsetOutOfRange once. The error contains the requested offset and the log's first offset. The
    partition is not fetched again until a seek."""
    fetching = make()
    fetching.seek(TP, 99)
    [planned] = plan(fetching)
    answer(fetching, planned, part(error=1))
    stopped = fetching.take_error()
    assert stopped is not None
    assert isinstance(stopped[1], OffsetOutOfRange)
    assert (stopped[1].requested, stopped[1].log_start_offset) == (99, 3)
    assert fetching.take_error() is None
    assert plan(fetching) == []
    fetching.seek(TP, 3)
    assert len(plan(fetching)) == 1


def test_a_missing_right_stops_the_partition() -> None:
    """After an error that stays however long the client waits, such as a missing permission, the
    client no longer fetches the partition. `take_error` returns the error."""
    fetching = make()
    fetching.seek(TP, 0)
    [planned] = plan(fetching)
    answer(fetching, planned, part(error=29))
    stopped = fetching.take_error()
    assert stopped is not None
    assert isinstance(stopped[1], KafkaError)
    assert stopped[1].code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert plan(fetching, now=NOW + 3600) == []


def test_what_was_sought_meanwhile_is_dropped() -> None:
    """After a seek, or after a partition was removed, the client drops the batches and errors of
    fetches that it had sent before."""
    fetching = make()
    fetching.seek(TP, 0)
    [planned] = plan(fetching)
    fetching.seek(TP, 40)
    assert answer(fetching, planned, part(batch_at(0, 3))) == []
    [planned] = plan(fetching)
    fetching.answered(planned.id, FetchAnswer(0, 0, 0, [part(batch_at(40, 3))]), NOW)
    fetching.seek(TP, 2)
    assert fetching.take() == []
    [planned] = plan(fetching)
    fetching.seek(TP, 0)
    assert answer(fetching, planned, part(batch_at(2, 3))) == [], "it would skip what is below"
    [planned] = plan(fetching)
    fetching.answered(planned.id, FetchAnswer(0, 0, 0, [part(error=1)]), NOW)
    fetching.remove(TP)
    assert fetching.take_error() is None
    assert fetching.positions == {}


def test_partitions_take_turns_at_the_front() -> None:
    """If the last answer had batches of a partition, this partition comes after the others in the
    next request."""
    fetching = make()
    other = TopicPartition("u", 0)
    fetching.seek(TP, 0)
    fetching.seek(other, 0)
    [planned] = plan(fetching)
    answer(fetching, planned, part(batch_at(0, 1)), part(tp=other))
    [planned] = plan(fetching)
    assert [each.topic for each in planned.request.wanted] == ["u", "t"]


def test_a_missing_leader_is_a_stall() -> None:
    """A client counts as stalled if one of its partitions has no leader. It does not count as
    stalled if a partition only waits for the answer to an open fetch."""
    fetching = make()
    fetching.seek(TP, 0)
    assert plan(fetching, None) == []
    assert fetching.is_stalled
    plan(fetching)
    plan(fetching)
    assert not fetching.is_stalled


def test_damage_behind_whole_batches_comes_in_its_place() -> None:
    """Complete batches before a damaged batch are returned. An error is raised only when the
    damaged batch is the next batch to be returned."""
    damaged = bytearray(batch_at(5, 2))
    damaged[16] = 0
    records = batch_at(3, 2) + bytes(damaged)
    batches, end = whole_batches(memoryview(records), 3)
    assert (len(batches), end) == (1, 5)
    with pytest.raises(CorruptBatch):
        whole_batches(memoryview(bytes(damaged)), 5)


def test_a_damaged_batch_is_not_taken_for_an_earlier_one() -> None:
    """An undamaged batch before the wanted position is left out. A damaged batch may only seem to
    lie before this position. It causes an error, because it may have the wanted records."""
    batches, end = whole_batches(memoryview(batch_at(3, 2) + batch_at(5, 2)), 5)
    assert (len(batches), end) == (1, 7)
    damaged = bytearray(batch_at(5, 2))
    damaged[23] |= 0x80  # makes the last offset delta negative
    with pytest.raises(CorruptBatch):
        whole_batches(memoryview(bytes(damaged) + batch_at(7, 2)), 5)


def test_a_partition_that_is_refused_says_since_when_and_why() -> None:
    """While a broker answers that it cannot send a partition now, the fetcher says since when, and
    why. When the broker sends batches of the partition again, the fetcher no longer says so."""
    fetching = make()
    fetching.seek(TP, 0)
    for later_s in (0.0, 10.0):
        (planned,) = plan(fetching, now=NOW + later_s)
        refused = FetchAnswer(0, 0, 0, [part(error=ErrorCode.KAFKA_STORAGE_ERROR)])
        fetching.answered(planned.id, refused, NOW + later_s)
    assert fetching.refusals == {TP: (NOW, "the broker answered KAFKA_STORAGE_ERROR")}
    (planned,) = plan(fetching, now=NOW + 40.0)
    assert answer(fetching, planned, part(batch_at(0, 1)))
    assert fetching.refusals == {}


def test_offsets_that_do_not_rise_are_damage() -> None:
    """If a batch's first offset is lower than the end of the previous batch, the batch is not
    returned."""
    batches, end = whole_batches(memoryview(batch_at(3, 4) + batch_at(5, 4)), 3)
    assert (len(batches), end) == (1, 7)


@pytest.mark.parametrize("base", [OFFSET_MAX, (1 << 63) - 2, (1 << 63) - 1, -1, -(1 << 63)])
def test_offsets_that_no_log_has_are_damage(base: int) -> None:
    """A batch whose offsets no log can have stops its partition, whatever was read before. Other
    partitions are still read."""
    fetching, other = make(), TopicPartition("other", 0)
    fetching.seek(TP, 0)
    fetching.seek(other, 0)
    (planned,) = plan(fetching)
    found = part(batch_at(0, 1))._replace(topic="other")
    assert [each.tp for each in answer(fetching, planned, part(batch_at(base, 1)), found)] == [
        other
    ]
    stopped = fetching.take_error()
    assert stopped is not None
    assert stopped[0] == TP
    assert isinstance(stopped[1], CorruptBatch)


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE])
@pytest.mark.parametrize("field", ["high_watermark", "last_stable_offset", "log_start_offset"])
def test_ends_that_no_log_has_stop_the_partition(field: str, error: ErrorCode) -> None:
    """If a leader says that a log begins or ends above the highest possible offset, the partition
    stops, and the sentence has the offset. Nobody sees this offset as the partition's end."""
    fetching = make()
    fetching.seek(TP, 0)
    (planned,) = plan(fetching)
    lie = part(batch_at(0, 1), error=error)._replace(**{field: OFFSET_MAX + 1})
    assert answer(fetching, planned, lie) == []
    assert (fetching.ends, fetching.high_watermarks) == ({}, {})
    stopped = fetching.take_error()
    assert stopped is not None
    assert isinstance(stopped[1], CorruptBatch)
    assert str(OFFSET_MAX + 1) in str(stopped[1])


def test_negative_positions_are_refused() -> None:
    """A negative position raises ValueError, and one that no log has UsageError, because people
    type offsets."""
    with pytest.raises(ValueError, match="negative"):
        make().seek(TP, -1)
    with pytest.raises(UsageError, match=str(OFFSET_MAX + 1)):
        make().seek(TP, OFFSET_MAX + 1)


class Log:
    """A log with gaps as compaction leaves them, on a broker whose answers are random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.batches: list[bytes] = []
        offset = 0
        for _ in range(30):
            count = self.random.randint(1, 4)
            self.batches.append(batch_at(offset, count, body=bytes(self.random.randint(0, 300))))
            offset += count + (self.random.randint(1, 5) if self.random.random() < 0.2 else 0)
        self.end = offset

    def answer(self, offset: int, max_bytes: int) -> FetchedPartition:
        if self.random.random() < 0.2:
            return part(error=self.random.choice([3, 6, 9, 78]))
        reaching = (
            i for i, raw in enumerate(self.batches) if read_header(raw).last_offset >= offset
        )
        first = next(reaching, len(self.batches))
        first = max(first - self.random.randint(0, 1), 0)
        records = b"".join(self.batches[first:])
        return part(records[: self.random.randint(0, max_bytes)])


def test_every_batch_once_whatever_the_answers(seeds: Seeds) -> None:
    """Whatever the random broker does (it truncates answers, returns errors, closes connections or
    moves leaders), each batch is returned exactly once, in order."""
    for seed in seeds(range(300)):
        log, fetching = Log(seed), make(max_bytes=200)
        fetching.seek(TP, 0)
        found: list[bytes] = []
        now = NOW
        while len(found) < len(log.batches):
            now += 2
            for planned in plan(fetching, log.random.choice([A, B]), now):
                if log.random.random() < 0.1:
                    fetching.lost(planned.id, now)
                    continue
                [target] = planned.request.wanted
                given = log.answer(target.offset, target.max_bytes)
                fetching.answered(planned.id, FetchAnswer(0, 0, 0, [given]), now)
            found += [bytes(raw) for fetched in fetching.take() for raw in fetched.batches]
            stopped: tuple[TopicPartition, SkidwayError] | None = fetching.take_error()
            assert stopped is None
            assert now < NOW + 20_000, f"seed {seed}: stands still at {fetching.positions}"
        assert found == log.batches, f"seed {seed}"


class BusyPump:
    """Answers each fetch at once: with a batch of one partition, and with an error for another."""

    def __init__(self, fetching: Fetching) -> None:
        self._fetching = fetching

    def advance(self, now: float) -> None:
        for planned in plan(self._fetching, now=now):
            answers = [
                part(batch_at(x.offset, 1), tp=OTHER) if x.topic == OTHER.topic else part(error=1)
                for x in planned.request.wanted
            ]
            self._fetching.answered(planned.id, FetchAnswer(0, 0, 0, answers), now)


def test_an_error_of_a_partition_does_not_wait_until_the_others_are_idle() -> None:
    """If a partition cannot be read any further, `poll` raises the error after it has returned the
    batches that came before, even if the other partitions always have further batches."""
    client: Any = SimpleNamespace(
        isolation_level=READ_COMMITTED,
        request_timeout_ms=30_000,
        random=lambda: 0.5,
        session=None,
        picture=SimpleNamespace(want=lambda _: None),
        clock=ManualClock(),
        push=lambda: None,
    )
    fetcher = Fetcher(client)
    pump: Any = BusyPump(fetcher._fetching)
    fetcher._pump = pump
    fetcher.seek(OTHER, 0)
    fetcher.seek(TP, 99)
    assert [x.tp for x in fetcher.poll(0)] == [OTHER]
    with pytest.raises(OffsetOutOfRange):
        fetcher.poll(0)
    assert fetcher.stopped == TP
    for _ in range(3):
        assert [x.tp for x in fetcher.poll(0)] == [OTHER]


def test_a_partition_without_a_leader_says_since_when() -> None:
    """If the leader of a partition is not known or cannot be reached, or if a connection ends, the
    fetcher says since when it gets nothing of the partition. A seek makes the high watermark
    unknown."""
    fetching = make()
    fetching.seek(TP, 0)
    assert plan(fetching, None) == []
    (since, why) = fetching.refusals[TP]
    assert (since, why) == (NOW, "its leader is not known, or cannot be reached")
    (planned,) = plan(fetching, now=NOW + 1)
    fetching.lost(planned.id, NOW + 1)
    assert fetching.refusals == {TP: (NOW, "the connection ended")}
    (planned,) = plan(fetching, now=NOW + 9)
    answer(fetching, planned, part(high_watermark=7))
    assert (fetching.refusals, fetching.high_watermarks) == ({}, {TP: 7})
    fetching.seek(TP, 3)
    assert fetching.high_watermarks == {}
