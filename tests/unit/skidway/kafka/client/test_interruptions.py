"""After an interruption, for example a lost connection, a reader must check its topic again before
it continues, because the topic may have been deleted and created again. A batch is "unbroken" if
there was no interruption between it and the partition's previous batch."""

from __future__ import annotations

import pytest

from skidway.kafka.client import metadata
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.fetching import Fetching, PlannedFetch
from skidway.kafka.client.following import LoopClient
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.fetch_response import FetchAnswer, FetchedPartition
from skidway.kafka.types import TopicPartition
from support.batches import batch_at
from support.clock import ManualClock

A, B = Address("a", 1), Address("b", 1)
TP = TopicPartition("t", 0)
NOW = 1_000.0


def begun(offset: int = 0) -> Fetching:
    fetching = Fetching(max_bytes=1_000, max_wait_ms=500, min_bytes=1, random=lambda: 0.5)
    fetching.seek(TP, offset)
    return fetching


def plan(fetching: Fetching, leader: Address = A, now: float = NOW) -> PlannedFetch:
    [planned] = fetching.plan(lambda _: leader, lambda _: True, now)
    return planned


def give(
    fetching: Fetching, planned: PlannedFetch, offset: int | None, ended: int = 0,
    error: ErrorCode = ErrorCode.NONE, now: float = NOW, tps: tuple[TopicPartition, ...] = (TP,),
) -> list[bool]:  # fmt: skip
    """Answers the open fetch. The answer has, for each partition of `tps`, one batch at the given
    offset (no batch if `offset` is None) and the given error code. Then takes the batches that the
    reader returns, and returns for each batch whether it is unbroken (whether there was no
    interruption before it)."""
    records = memoryview(b"" if offset is None else batch_at(offset))
    parts = [FetchedPartition(*tp, error, 50, 50, 0, records, None, -1) for tp in tps]
    answer = FetchAnswer(0, 0, 0, parts)
    fetching.answered(planned.id, answer, now, (planned.address, ended))
    return [each.unbroken for each in fetching.take()]


def test_batches_on_one_connection_are_unbroken() -> None:
    """A batch is unbroken if there was no interruption between it and the partition's previous
    batch. Batches that come on the same connection are unbroken, except the first batch after a
    seek."""
    fetching = begun()
    assert give(fetching, plan(fetching), 0) == [False]
    assert give(fetching, plan(fetching), None) == []
    assert give(fetching, plan(fetching), 1) == [True]


def test_another_connection_breaks_though_no_fetch_was_lost() -> None:
    """A change of connection is an interruption, even if no fetch was lost."""
    fetching = begun()
    give(fetching, plan(fetching), 0)
    assert give(fetching, plan(fetching), None, ended=1) == []
    assert give(fetching, plan(fetching), 1, ended=1) == [False]
    assert give(fetching, plan(fetching, B), 2) == [False]


def test_a_refusal_breaks_on_the_same_connection() -> None:
    """A refused fetch is an interruption, because the topic may have been deleted and created
    again."""
    fetching = begun()
    give(fetching, plan(fetching), 0)
    give(fetching, plan(fetching), None, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert "UNKNOWN_TOPIC_OR_PARTITION" in fetching.take_interruptions()[TP]
    assert fetching.take_interruptions() == {}
    assert give(fetching, plan(fetching, now=NOW + 9), 1, now=NOW + 9) == [False]


def test_a_lost_fetch_is_told_at_once() -> None:
    """A lost fetch is reported as an interruption at once, not only with the next batch, because
    this batch may never come."""
    fetching = begun()
    give(fetching, plan(fetching), 0)
    fetching.lost(plan(fetching).id, NOW)
    assert list(fetching.take_interruptions()) == [TP]


class Watcher:
    """A fake watcher of file descriptors. Nothing may call it, because these tests open no
    connections."""

    def watch(self, fd: int, *, read: bool, write: bool) -> None:
        raise AssertionError

    def unwatch(self, fd: int) -> None:
        raise AssertionError


def test_a_loop_that_stood_still_is_an_interruption() -> None:
    """If the client's event loop stands still for a long time, this is an interruption, because the
    topic may have changed meanwhile."""
    clock = ManualClock()
    client = LoopClient("127.0.0.1:1", Watcher(), clock=clock)
    client.turn()
    client.seek(TP, 0)
    for _ in range(3):
        clock.advance(4)
        assert client._fetching.take_interruptions() == {}
        client._now()
    clock.advance(60)
    client._now()
    assert client._fetching.take_interruptions() == {TP: "stood still for 60 s"}


def test_an_interruption_of_all_breaks_every_partition() -> None:
    """A batch is unbroken if there was no interruption between it and the partition's previous
    batch. After an interruption of all partitions, a partition's next batch does not count as
    unbroken, even if it comes on the same connection as the previous batch."""
    fetching, both = begun(), (TP, TopicPartition("t", 1))
    fetching.seek(both[1], 0)
    give(fetching, plan(fetching), 0, tps=both)
    fetching.interrupt("stood still")
    assert fetching.take_interruptions() == dict.fromkeys(both, "stood still")
    assert give(fetching, plan(fetching), 1, tps=both) == [False, False]
    assert give(fetching, plan(fetching), 2, tps=both) == [True, True]


def test_many_partitions_are_not_asked_for_at_every_batch() -> None:
    """If a client reads thousands of partitions, each of its fetch requests lists all of them and
    is large. So that it does not send such a request for every few records, the client waits a
    little after a small answer. After a large answer it does not wait."""
    fetching = Fetching(max_bytes=1_000, max_wait_ms=500, min_bytes=1, random=lambda: 0.5)
    tps = [TopicPartition("t", number) for number in range(2_000)]
    for tp in tps:
        fetching.seek(tp, 0)
    planned = plan(fetching)

    def answer_with(records: bytes, now: float) -> None:
        parts = [FetchedPartition(*tp, 0, 9, 9, 0, memoryview(b""), None, -1) for tp in tps[1:]]
        parts.append(FetchedPartition(*tps[0], 0, 9, 9, 0, memoryview(records), None, -1))
        fetching.answered(planned.id, FetchAnswer(0, 0, 0, parts), now, (A, 0))
        assert len(fetching.take()) == 1

    answer_with(batch_at(0), NOW)
    assert fetching.plan(lambda _: A, lambda _: True, NOW + 0.04) == []
    assert not fetching.is_stalled
    due = fetching.next_deadline(NOW)
    assert due is not None
    assert 0.04 < due - NOW <= 0.1
    planned = plan(fetching, now=due)
    answer_with(b"".join(batch_at(at) for at in range(1, 9)), due)
    assert plan(fetching, now=due)


def test_topics_that_are_not_read_any_more_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client forgets a topic when the topic's last partition is removed, and then has room for
    another topic."""
    client = LoopClient("127.0.0.1:1", Watcher(), clock=ManualClock())
    monkeypatch.setattr(metadata, "TOPICS_MAX", 1)
    client.seek(TP, 0)
    client.seek(TopicPartition("t", 1), 0)
    client.remove(TP)
    with pytest.raises(ValueError, match="topics in one client"):
        client.seek(TopicPartition("other", 0), 0)
    client.remove(TopicPartition("t", 1))
    client.remove(TopicPartition("t", 1))
    client.seek(TopicPartition("other", 0), 0)
