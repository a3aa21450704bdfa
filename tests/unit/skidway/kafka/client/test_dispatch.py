"""The dispatch is the part of the producer that combines batches of many partitions into Produce
requests. Each request goes to one leader."""

from __future__ import annotations

import pytest

from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.delivery import BufferFull
from skidway.kafka.client.dispatch import REQUEST_BYTES_MAX, Dispatch, Planned
from skidway.kafka.codecs import NONE
from skidway.kafka.protocol.produce import ProduceResult
from skidway.kafka.types import TopicPartition

A, B = Address("a", 1), Address("b", 1)
NOW, WALL = 1_000.0, 1_700_000_000_000


def make(*, idempotent: bool = True, max_buffered_bytes: int = 1 << 20) -> Dispatch:
    made = Dispatch(
        idempotent=idempotent,
        max_in_flight=5,
        max_buffered_bytes=max_buffered_bytes,
        random=lambda: 0.5,
    )
    made.identified(100, 0)
    return made


def batch(size: int = 10) -> EncodedBatch:
    return EncodedBatch(bytes(size), NONE.number, 1, WALL, WALL, size)


def tp(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def plan(dispatch: Dispatch, leader: Address | None = A, usable: bool = True) -> list[Planned]:
    return dispatch.plan(lambda _: leader, lambda _: usable, NOW, WALL)


def acknowledge(dispatch: Dispatch, planned: Planned, offset: int = 0) -> None:
    results = [ProduceResult(part.topic, part.partition, 0, offset) for part in planned.data]
    dispatch.answered(planned.id, results, NOW, WALL)


def test_one_request_for_all_partitions_of_a_leader() -> None:
    """A request to a leader contains one batch for each of the leader's partitions that have a
    batch to send. The batches are grouped by topic."""
    dispatch = make()
    for topic in ("b", "a", "b", "a"):
        dispatch.add(tp(len(plan(dispatch, None)) + dispatch.pending_count, topic), batch(), topic)
    [planned] = plan(dispatch)
    assert [part.topic for part in planned.data] == ["a", "a", "b", "b"]
    assert planned.address == A


def test_leaders_get_their_own_requests() -> None:
    """Each partition's batch is sent to the partition's leader."""
    dispatch = make()
    for number in range(4):
        dispatch.add(tp(number), batch(), number)
    where = {tp(0): A, tp(1): B, tp(2): A}
    found = dispatch.plan(where.get, lambda _: True, NOW, WALL)
    assert {each.address: [part.partition for part in each.data] for each in found} == {
        A: [0, 2],
        B: [1],
    }
    assert dispatch.is_stalled


def test_nothing_for_a_leader_that_cannot_be_reached() -> None:
    """Batches for a leader that cannot be reached wait until it can be reached, and are then
    sent."""
    dispatch = make()
    dispatch.add(tp(0), batch(), 0)
    assert plan(dispatch, usable=False) == []
    assert dispatch.is_stalled
    assert len(plan(dispatch)) == 1
    assert not dispatch.is_stalled


def test_requests_are_bounded_in_bytes_and_number() -> None:
    """A Produce request is larger than the size limit only if it consists of one batch that is
    itself larger than the limit. Each leader has at most five open requests at a time."""
    dispatch = make(max_buffered_bytes=1 << 30)
    for number in range(12):
        dispatch.add(tp(number), batch(REQUEST_BYTES_MAX // 3), number)
    dispatch.add(tp(12), batch(2 * REQUEST_BYTES_MAX), 12)
    found = plan(dispatch)
    assert [len(each.data) for each in found] == [2, 2, 2, 2, 2]
    assert plan(dispatch) == []
    acknowledge(dispatch, found[0])
    [more] = plan(dispatch)
    assert [part.partition for part in more.data] == [10, 11]
    acknowledge(dispatch, found[1])
    [large] = plan(dispatch)
    assert [part.partition for part in large.data] == [12]


def test_five_in_flight_after_the_first() -> None:
    """After the broker has acknowledged a partition's first batch, up to five batches of this
    partition may be sent in open requests at the same time."""
    dispatch = make()
    for number in range(8):
        dispatch.add(tp(0), batch(), number)
    [first] = plan(dispatch)
    acknowledge(dispatch, first)
    assert len(plan(dispatch)) == 5


def test_partitions_take_turns() -> None:
    """If a request has room for only one batch, the partitions of the leader take turns, always in
    the same order."""
    dispatch = make(max_buffered_bytes=1 << 30)
    for number in (0, 1, 2) * 2:
        dispatch.add(tp(number), batch(REQUEST_BYTES_MAX), number)
    order: list[int] = []
    for _ in range(2):
        for planned in plan(dispatch):
            order += [part.partition for part in planned.data]
            acknowledge(dispatch, planned)
    assert order == [0, 1, 2, 0, 1, 2]


def test_has_room_and_buffer_full_agree() -> None:
    """If the buffer is full, adding a batch raises BufferFull. When a batch is delivered, there is
    room again."""
    dispatch = make(max_buffered_bytes=100)
    dispatch.add(tp(0), batch(500), 0)
    assert not dispatch.has_room
    with pytest.raises(BufferFull):
        dispatch.add(tp(0), batch(), 1)
    [planned] = plan(dispatch)
    acknowledge(dispatch, planned, offset=5)
    [delivery] = dispatch.deliveries()
    assert (delivery.token, delivery.tp, delivery.base_offset) == (0, tp(0), 5)
    assert dispatch.has_room
    assert dispatch.buffered_bytes == dispatch.pending_count == 0


def test_a_batch_left_out_of_the_answer_is_sent_again() -> None:
    """A batch that the broker's answer leaves out is not acknowledged and is sent again."""
    dispatch = make()
    dispatch.add(tp(0), batch(), 0)
    [planned] = plan(dispatch)
    dispatch.answered(planned.id, [ProduceResult("other", 9, 0, 0)], NOW, WALL)
    assert dispatch.deliveries() == []
    deadline = dispatch.next_deadline(NOW)
    assert deadline is not None
    [again] = dispatch.plan(lambda _: A, lambda _: True, deadline, WALL)
    assert again.data == planned.data


def test_a_lost_request_looks_for_leaders() -> None:
    """If the connection is lost before a request is answered, the client looks up the leaders and
    sends the same bytes again."""
    dispatch = make()
    dispatch.add(tp(0), batch(), 0)
    [planned] = plan(dispatch)
    dispatch.lost(planned.id)
    assert dispatch.has_stale_leaders
    assert dispatch.deliveries() == []
    [again] = plan(dispatch, B)
    assert (again.address, again.data) == (B, planned.data)


def test_a_new_identity_is_for_who_needs_it() -> None:
    """If one partition needs a new producer id, for example after OUT_OF_ORDER_SEQUENCE_NUMBER, the
    other partitions keep their producer id."""
    dispatch = make()
    for number in range(2):
        dispatch.add(tp(number), batch(), number)
    [planned] = plan(dispatch)
    results = [ProduceResult("t", 0, 45, -1), ProduceResult("t", 1, 0, 0)]
    dispatch.answered(planned.id, results, NOW, WALL)
    dispatch.deliveries()
    assert dispatch.identity_wanted
    dispatch.add(tp(1), batch(), 2)
    [other] = plan(dispatch)
    assert [part.partition for part in other.data] == [1]
    dispatch.identified(101, 0)
    [again] = dispatch.plan(lambda _: A, lambda _: True, NOW + 1, WALL)
    assert [part.partition for part in again.data] == [0]
    assert int.from_bytes(again.data[0].records[0][43:51], "big") == 101
    assert int.from_bytes(other.data[0].records[0][43:51], "big") == 100
    assert not dispatch.identity_wanted


def test_acks_0_is_delivered_when_written() -> None:
    """With acks=0 a batch counts as delivered, without an offset, when it has been sent."""
    dispatch = make(idempotent=False)
    dispatch.add(tp(0), batch(), 0)
    [planned] = plan(dispatch)
    dispatch.written(planned.id, NOW, WALL)
    assert [(each.token, each.base_offset) for each in dispatch.deliveries()] == [(0, -1)]


def test_troubles_are_shown() -> None:
    """If the broker refuses a batch for a time, the refusal is shown in the dispatch's `troubles`
    until a retry succeeds."""
    dispatch = make()
    dispatch.add(tp(0), batch(), 0)
    [planned] = plan(dispatch)
    dispatch.answered(planned.id, [ProduceResult("t", 0, 29, -1)], NOW, WALL)
    assert {where: error.code for where, error in dispatch.troubles.items()} == {tp(0): 29}
    [again] = dispatch.plan(lambda _: A, lambda _: True, NOW + 1, WALL)
    acknowledge(dispatch, again)
    assert dispatch.troubles == {}
