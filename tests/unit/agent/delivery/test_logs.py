"""The agent reads partitions back from the brokers to find out which of its records arrived. The
tests check what `FetchedLogs` makes of the results and errors of a Kafka fetcher: the origins of
records as columns (`Rows`), and holes. A hole is a part of a partition that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from skidway.agent.delivery.logs import FetchedLogs
from skidway.agent.delivery.read_back import Rows
from skidway.agent.delivery.search import Hole
from skidway.errors import Unreachable
from skidway.kafka.batch import CorruptBatch, seal
from skidway.kafka.client import ListedOffset
from skidway.kafka.columns import Origins, encode
from skidway.kafka.errors import ErrorCode, KafkaError, OffsetOutOfRange
from skidway.kafka.types import TopicPartition
from support.agent_world import pa_binary
from support.promises import promise

P, Q = TopicPartition("logs", 0), TopicPartition("logs", 1)


class Fetcher:
    """A fetcher whose method `poll` returns or raises what the test has set as `next`."""

    def __init__(self) -> None:
        self.positions: dict[TopicPartition, int] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.stopped: TopicPartition | None = None
        self.next: Any = []

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.positions[tp] = offset

    def remove(self, tp: TopicPartition) -> None:
        self.positions.pop(tp, None)
        self.high_watermarks.pop(tp, None)

    def poll(self, _timeout_ms: int) -> Any:
        found, self.next = self.next, []
        if isinstance(found, Exception):
            raise found
        return found


class Ends:
    """The ends of logs that leaders have said, as the test sets them."""

    def __init__(self) -> None:
        self.said: dict[TopicPartition, int] = {}
        self.asked: list[set[TopicPartition]] = []

    def ask(self, partitions: Iterable[TopicPartition]) -> None:
        self.asked.append(set(partitions))

    def end(self, tp: TopicPartition) -> int | None:
        return self.said.get(tp)

    def forget(self) -> None:
        self.said.clear()


class Asking:
    """A client that returns `start` as the first offset of a log. If `start` is None, the client
    behaves as if it could reach no broker."""

    start: int | None = None

    def list_offsets(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, ListedOffset]:
        if self.start is None:
            raise Unreachable("nobody")
        return {tp: ListedOffset(self.start, -1, -1) for tp in times}


@pytest.fixture
def fetcher() -> Fetcher:
    return Fetcher()


@pytest.fixture
def ends() -> Ends:
    return Ends()


@pytest.fixture
def logs(fetcher: Fetcher, ends: Ends) -> FetchedLogs:
    made = FetchedLogs.__new__(FetchedLogs)
    made._fetcher, made._ends, made._asking = fetcher, ends, Asking()  # type: ignore[assignment]
    made.begin({P: 5, Q: 7})
    return made


def test_records_with_an_origin_come_as_columns(logs: FetchedLogs, fetcher: Fetcher) -> None:
    """The origins of a batch's records become columns; a batch without origins is skipped. A
    damaged batch becomes a hole (a part of the partition that cannot be read), and the agent
    continues to read after this batch."""
    ones = np.ones(2, np.int64)
    origins = Origins(ones * 3, ones * 4, np.array([0, 10]), ones * 10)
    values, times = pa_binary([b"a", b"b"]), np.array([7, 8], np.int64)
    good = memoryview(seal(encode(values, times, origins=origins)))
    plain = memoryview(seal(encode(values, times)))
    bad = memoryview(bytes(good[:-1]) + b"!")
    fetcher.next = [SimpleNamespace(tp=P, batches=[good, plain, bad, good])]
    found = logs.poll()
    kinds = [type(each) for each in found]
    assert kinds == [Rows, Hole, Rows]
    assert isinstance(found[0], Rows)
    assert (found[0].first.tolist(), found[0].times.tolist()) == ([0, 10], [7, 8])
    assert isinstance(found[1], Hole)
    assert not found[1].is_over


def test_a_partition_is_read_up_by_a_watermark_told_anew(
    logs: FetchedLogs, fetcher: Fetcher
) -> None:
    """A partition counts as read to its end when the agent has read up to the partition's high
    watermark. After the agent has asked for the high watermarks again (`ask_anew`), no partition
    counts as read to its end before its new high watermark arrives. The agent continues to read
    from the same position meanwhile."""
    assert logs.read_up() == set()
    fetcher.high_watermarks = {P: 5, Q: 9}
    assert logs.read_up() == {P}
    logs.ask_anew()
    assert logs.read_up() == set()
    assert fetcher.positions == {P: 5, Q: 7}
    logs.end()
    assert fetcher.positions == {}


@promise("2 read back")
def test_a_partition_is_not_read_up_below_the_end_of_its_log(
    logs: FetchedLogs, fetcher: Fetcher, ends: Ends
) -> None:
    """After the agent has asked again, a partition counts as read to its end only when the agent
    has read up to the end that the log had then. Records of the agent may be above the high
    watermark: too few replicas are in sync, or a new leader does not know yet how far the replicas
    are. The agent asks only about partitions that it has not read up to their ends."""
    fetcher.high_watermarks = {P: 5, Q: 7}
    assert logs.read_up() == {P, Q}
    logs.poll()
    assert ends.asked == []
    logs.ask_anew()
    fetcher.high_watermarks = {P: 5, Q: 7}
    assert logs.read_up() == set()
    logs.poll()
    assert ends.asked == [{P, Q}]
    ends.said = {P: 6, Q: 7}
    assert logs.read_up() == {Q}
    logs.poll()
    assert ends.asked[1:] == [{P}]
    fetcher.positions[P] = fetcher.high_watermarks[P] = 6
    assert logs.read_up() == {P, Q}


def test_the_next_search_waits_for_no_end_of_the_last_one(
    logs: FetchedLogs, fetcher: Fetcher, ends: Ends
) -> None:
    """A search that begins anew forgets where the logs ended, and again counts only the high
    watermarks until it asks anew."""
    logs.ask_anew()
    ends.said = {P: 6}
    logs.begin({P: 5})
    fetcher.high_watermarks = {P: 5}
    assert (logs.read_up(), ends.said) == ({P}, {})


def test_a_log_that_begins_behind_the_floor_has_a_hole_and_is_read_on(
    logs: FetchedLogs, fetcher: Fetcher
) -> None:
    """The floor is the offset from which the agent searches a partition for its records. The first
    offset of the partition's log may be higher than the floor. The offsets in between then count as
    a hole (a part that cannot be read), and the agent reads from the first offset on. If the broker
    answers with an error that does not give the first offset, the agent asks the broker for the
    first offset."""
    fetcher.next = OffsetOutOfRange(P, 5, 20, 30)
    (hole,) = logs.poll()
    assert isinstance(hole, Hole)
    assert ("expired" in hole.reason, hole.is_over, fetcher.positions[P]) == (True, False, 20)
    fetcher.next = OffsetOutOfRange(Q, 7, -1, -1)
    assert logs.poll() == []
    assert fetcher.positions[Q] == 7
    logs._asking.start = 40  # type: ignore[attr-defined]
    fetcher.next = OffsetOutOfRange(Q, 7, -1, -1)
    assert len(logs.poll()) == 1
    assert fetcher.positions[Q] == 40


@pytest.mark.parametrize(
    "error",
    [
        OffsetOutOfRange(P, 5, 0, 3),
        KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no"),
        CorruptBatch("damaged"),
    ],
)
def test_what_cannot_be_read_is_a_hole_for_good(
    logs: FetchedLogs, fetcher: Fetcher, error: Exception
) -> None:
    """The agent reads no more of a partition in three cases: the log ends below the offset at which
    the agent begins to read, the log is damaged, or the agent has no right to read the partition.
    The rest of the partition counts as a hole (a part that cannot be read). The agent continues to
    read the other partitions."""
    fetcher.next, fetcher.stopped = error, P
    (hole,) = logs.poll()
    assert isinstance(hole, Hole)
    assert (hole.tp, hole.is_over) == (P, True)
    assert fetcher.positions == {Q: 7}
