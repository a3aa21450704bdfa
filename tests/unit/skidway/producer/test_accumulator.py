"""The accumulator collects messages in batches. The messages of one send are called a set, and a
set has one future."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka.batch import seal
from skidway.kafka.codecs import GZIP
from skidway.kafka.columns import decode
from skidway.kafka.types import TopicPartition
from skidway.producer.accumulator import (
    Accumulator,
    Messages,
    PendingBatch,
    as_many,
)
from skidway.producer.sending import RecordMetadata, Sending

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def put(accumulator: Accumulator, tp: TopicPartition, value: bytes, now: float) -> Future[Any]:
    messages = Messages(None, [value], 1)
    sending = Sending(0, 1, single=True)
    if accumulator.room(tp, 1_000) < messages.sizes()[0]:
        accumulator.begin(tp, now)
    accumulator.extend(tp, messages, 0, 1, messages.sizes()[0], sending)
    return sending.future


def values(batches: list[PendingBatch]) -> list[list[bytes | None]]:
    return [batch.values for batch in batches]


def test_a_batch_is_ready_when_full_or_when_it_has_waited() -> None:
    """A full batch of the producer is ready to be sent at once. Any other batch is ready after the
    linger time (`linger.ms`). A flush makes all batches ready."""
    accumulator = Accumulator(0.5)
    put(accumulator, P0, b"a" * 500, 10.0)
    put(accumulator, P1, b"b", 10.2)
    assert list(accumulator.take(10.4)) == []
    assert accumulator.next_deadline() == 10.5
    put(accumulator, P0, b"c" * 500, 10.4)
    assert values(list(accumulator.take(10.4))) == [[b"a" * 500]]
    assert values(list(accumulator.take(10.7))) == [[b"b"]]
    assert values(list(accumulator.take(10.7, everything=True))) == [[b"c" * 500]]
    assert accumulator.next_deadline() == float("inf")


def test_batches_of_a_partition_come_in_their_order() -> None:
    """The batches of a partition are taken from the accumulator in the order in which they were
    begun."""
    accumulator = Accumulator(0.0)
    for letter in (b"a", b"b", b"c"):
        put(accumulator, P0, letter * 900, 1.0)
    assert [v[0][:1] for v in values(list(accumulator.take(1.0))) if v[0]] == [b"a", b"b", b"c"]


def test_futures_tell_each_offset() -> None:
    """The future of a set (the messages of one send) is done when all batches with messages of the
    set are done. The future's result has the offset of each message. If one of the batches
    failed, the future has this batch's error."""
    sending = Sending(0, 4, single=False)
    messages = Messages([b"k"] * 4, [b"0", b"1", b"2", b"3"], 7)
    first, second = PendingBatch(P0, 0.0), PendingBatch(P1, 0.0)
    first.extend(messages, 0, 3, 0, sending)
    second.extend(messages, 3, 4, 0, sending)
    assert first.delivered(100) == []
    assert second.delivered(-1) == [sending]
    assert sending.future.result() == [
        RecordMetadata("t", 0, 100, 7),
        RecordMetadata("t", 0, 101, 7),
        RecordMetadata("t", 0, 102, 7),
        RecordMetadata("t", 1, -1, 7),
    ]
    failing = Sending(1, 2, single=False)
    third = PendingBatch(P0, 0.0)
    third.extend(messages, 0, 1, 0, failing)
    fourth = PendingBatch(P0, 0.0)
    fourth.extend(messages, 1, 2, 0, failing)
    assert third.failed(ValueError("too large")) == []
    assert fourth.delivered(5) == [failing]
    assert isinstance(failing.future.exception(), ValueError)


def test_a_cancelled_future_disturbs_nobody() -> None:
    """If a send's future is cancelled, it gets no result, but the message is still delivered."""
    sending = Sending(0, 1, single=True)
    assert sending.future.cancel()
    batch = PendingBatch(P0, 0.0)
    batch.extend(Messages(None, [b"x"], 1), 0, 1, 1, sending)
    assert batch.delivered(3) == [sending]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_halves_hold_the_same_messages(lengths: list[int]) -> None:
    """Even if a batch is halved again and again, down to single messages, each future gets the
    offsets of its own messages."""
    whole, sendings, number = PendingBatch(P0, 0.0), [], 0
    for length in lengths:
        names = [b"%d" % (number + index) for index in range(length)]
        sending = Sending(0, length, single=False)
        whole.extend(Messages(names, names, 1), 0, length, sum(map(len, names)), sending)
        sendings.append(sending)
        number += length
    parts = [whole]
    while any(len(part) > 1 for part in parts):
        parts = [half for part in parts for half in (part.halves() if len(part) > 1 else (part,))]
    assert [part.values for part in parts] == [[b"%d" % index] for index in range(number)]
    for index, part in enumerate(parts):
        part.delivered(index)
    offsets = [each.offset for sending in sendings for each in sending.future.result()]
    assert offsets == list(range(number))


def test_a_batch_is_encoded_as_it_was_filled() -> None:
    """A batch that is encoded and decoded again has the keys, values, nulls and times that were
    added to it."""
    batch = PendingBatch(P0, 0.0)
    batch.extend(Messages([b"k", None], [b"v", None], 5), 0, 2, 0, Sending(0, 2, single=False))
    decoded = decode(memoryview(seal(batch.encode(GZIP))))
    assert decoded.keys.to_pylist() == [b"k", None]
    assert decoded.values.to_pylist() == [b"v", None]
    assert decoded.timestamps.tolist() == [5, 5]


@given(
    st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.integers(0, 39),
    st.integers(0, 400),
    st.integers(1, 45),
)
def test_as_many_messages_as_fit(sizes: list[int], start: int, room: int, ahead: int) -> None:
    """`as_many` finds how many messages of a set (the messages of one send) fit into a batch. The
    first message always counts as fitting. `as_many` adds up the sizes of `AHEAD` messages at a
    time, but the result does not depend on this number."""
    start = min(start, len(sizes) - 1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("skidway.producer.accumulator.AHEAD", ahead)
        stop, used = as_many(sizes, start, len(sizes), room)
    assert used == sum(sizes[start:stop])
    assert stop == start + 1 or used <= room
    assert stop == len(sizes) or used + sizes[stop] > room


def test_a_large_set_is_gone_through_once() -> None:
    """If a set (the messages of one send) fills many small batches, the accumulator reads the size
    of each message only a few times, and does not read all sizes again for each batch."""

    class Counting(list[int]):
        seen = 0

        def __getitem__(self, index: Any) -> Any:
            found = super().__getitem__(index)
            self.seen += len(found) if isinstance(index, slice) else 1
            return found

    sizes, start = Counting([100] * 50_000), 0
    while start < len(sizes):
        start, _ = as_many(sizes, start, len(sizes), 90_000)
    assert sizes.seen < 4 * len(sizes)
