"""The producer's outbox has the batches of one partition, and keeps their order. It decides which
batch may be sent at what time, and what the broker's answers mean.

These tests check each rule alone. Random schedules in tests/model/test_producer.py check that all
rules together keep the order.
"""

from __future__ import annotations

import pytest

from skidway.kafka.batch import BatchHeader, EncodedBatch, read_header
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.delivery import Delivery, Drained
from skidway.kafka.client.outbox import (
    CORRUPT_TIMES_MAX,
    EVENT_AGE_MAX_MS,
    IDLE_S,
    Identity,
    Outbox,
    OutboxEntry,
)
from skidway.kafka.codecs import NONE
from skidway.kafka.types import TopicPartition
from support.promises import promise

TP = TopicPartition("t", 0)
A, B = Address("a", 1), Address("b", 1)
NOW, WALL = 1_000.0, 1_700_000_000_000


class Driver:
    """A producer's outbox, and the time and the leader that the test passes to it."""

    def __init__(self, *, idempotent: bool = True, max_in_flight: int = 5) -> None:
        self.box = Outbox(
            TP,
            idempotent=idempotent,
            max_in_flight=max_in_flight,
            backoff=Backoff(lambda: 0.5),
        )
        self.now, self.wall, self.address = NOW, WALL, A
        self.generation = 0
        self.sent: list[BatchHeader] = []

    def add(self, *tokens: int, event_ms: int = WALL, count: int = 2) -> None:
        for token in tokens:
            self.box.add(
                OutboxEntry(token, EncodedBatch(b"%d" % token, NONE.number, count, 0, event_ms, 1))
            )

    def identify(self) -> None:
        self.generation += 1
        self.box.identify(Identity(100 + self.generation, 0, self.generation))

    def send(self) -> list[OutboxEntry]:
        """Sends all batches that may be sent now."""
        found: list[OutboxEntry] = []
        if self.box.wants_identity:
            self.identify()
        while (entry := self.box.next_entry(self.address, self.now, self.wall)) is not None:
            raw = self.box.send(entry, self.address) + entry.encoded.body
            self.sent.append(read_header(raw))
            found.append(entry)
        return found

    def answer(self, entry: OutboxEntry, code: int = 0, offset: int = 7) -> bool:
        return self.box.answer(entry, code, offset, None, self.now, self.wall)

    def begin(self, *tokens: int) -> list[OutboxEntry]:
        """Sends a first batch, which is acknowledged, and then one batch for each of `tokens`."""
        self.add(0)
        [first] = self.send()
        self.answer(first)
        self.box.settle()
        self.add(*tokens)
        return self.send()

    def settled(self) -> list[object]:
        return [token_of(delivery) for delivery in self.box.settle()]


def token_of(delivery: Delivery) -> object:
    assert isinstance(delivery.token, OutboxEntry)
    return delivery.token.token


def test_one_in_flight_until_the_first_acknowledgement() -> None:
    """Until the broker has acknowledged the first batch, only one batch is in flight. Afterwards up
    to five batches are in flight."""
    driver = Driver()
    driver.add(*range(8))
    [first] = driver.send()
    driver.answer(first)
    assert driver.settled() == [0]
    assert [entry.token for entry in driver.send()] == [1, 2, 3, 4, 5]


def test_nothing_without_an_identity() -> None:
    """The producer's outbox sends no batch before it has a producer id."""
    driver = Driver()
    driver.add(0)
    assert driver.box.wants_identity
    assert driver.box.next_entry(A, NOW, WALL) is None


def test_sequences_count_records() -> None:
    """The base sequence number of each batch is one higher than the sequence number of the last
    record of the batch before it."""
    driver = Driver()
    driver.begin(1, 2, 3)
    assert [header.base_sequence for header in driver.sent] == [0, 2, 4, 6]
    assert {(header.producer_id, header.producer_epoch) for header in driver.sent} == {(101, 0)}


def test_a_retry_is_the_same_bytes() -> None:
    """After a lost connection, the producer's batches that were in flight are sent again, byte for
    byte the same. The first of them is sent alone."""
    driver = Driver()
    entries = driver.begin(1, 2, 3)
    before = [entry.header for entry in entries]
    for entry in entries:
        driver.box.lost(entry)
    [again] = driver.send()
    assert again is entries[0]
    driver.answer(again)
    assert driver.settled() == [1]
    assert driver.send() == entries[1:]
    assert [entry.header for entry in entries] == before


def test_a_refusal_for_now_waits_and_goes_again() -> None:
    """If the broker refuses a batch with a retriable error, nothing is sent for a while. Then the
    refused batch is sent before later batches."""
    driver = Driver()
    one, two = driver.begin(1, 2)
    assert not driver.answer(one, 6)
    assert driver.box.trouble is not None
    driver.add(3)
    assert driver.send() == []
    driver.now = driver.box.retry_at
    assert driver.send()[0] is one
    assert two.state.value == "sent"


def test_several_refusals_are_one_wait() -> None:
    """If five batches are refused at the same time, the wait is as long as after one refusal."""
    driver = Driver()
    for entry in driver.begin(1, 2, 3, 4, 5):
        driver.answer(entry, 6)
    assert driver.box.retry_at == pytest.approx(NOW + 0.05)


def test_acknowledgements_are_contiguous() -> None:
    """Batches are reported as delivered in the order in which they were added, even if the broker
    acknowledges them in another order."""
    driver = Driver(idempotent=False)
    one, two = driver.begin(1, 2)
    driver.answer(two)
    assert driver.settled() == []
    driver.answer(one)
    assert driver.settled() == [1, 2]


def test_a_duplicate_is_acknowledged() -> None:
    """The error DUPLICATE_SEQUENCE_NUMBER counts as an acknowledgement without an offset, because
    the broker already has the batch."""
    driver = Driver()
    [one] = driver.begin(1)
    driver.answer(one, 46, 99)
    [delivery] = driver.box.settle()
    assert (delivery.base_offset, delivery.error) == (-1, None)


def test_an_offset_that_no_log_has_counts_as_not_told() -> None:
    """If a broker acknowledges a batch with an offset that no log can have, the batch is delivered,
    and its offset is unknown."""
    driver = Driver()
    [one] = driver.begin(1)
    driver.answer(one, 0, (1 << 63) - 1)
    [delivery] = driver.box.settle()
    assert (delivery.base_offset, delivery.error) == (-1, None)


def test_an_hour_idle_is_like_the_beginning() -> None:
    """If no batch was sent for an hour (by the monotonic clock or by the wall clock), the next
    batch is sent alone. Until it is acknowledged, only this batch is in flight."""
    for seconds, wall_ms in ((IDLE_S + 1, 0), (0, int(IDLE_S * 1000) + 1)):
        driver = Driver()
        driver.begin()
        driver.now += seconds
        driver.wall += wall_ms
        driver.add(1, 2, event_ms=driver.wall)
        assert [entry.token for entry in driver.send()] == [1]


@promise("3 order")
def test_an_hour_that_a_host_slept_is_an_hour_idle() -> None:
    """If the host sleeps for an hour, its monotonic clock stands still. The producer's outbox still
    counts the hour as idle, because it also reads the wall clock. This holds even if batches with
    event times in the future were sent before."""
    driver = Driver()
    driver.add(0, event_ms=WALL + EVENT_AGE_MAX_MS // 2)
    [first] = driver.send()
    driver.answer(first)
    assert driver.settled() == [0]
    driver.wall += int(IDLE_S * 1000) + 1
    driver.add(1, 2, event_ms=driver.wall)
    assert [entry.token for entry in driver.send()] == [1]


def test_another_leader_is_like_the_beginning() -> None:
    """When a partition gets a new leader, the producer's outbox first waits for the answers of the
    old leader. After that it sends only one batch, and waits until this batch is acknowledged."""
    driver = Driver()
    one, two = driver.begin(1, 2)
    driver.add(3)
    driver.address = B
    assert driver.send() == []
    driver.answer(one)
    driver.box.lost(two)
    assert driver.send() == [two]


@promise("3 order")
def test_a_leader_that_moves_between_two_batches_is_like_the_beginning() -> None:
    """If the leader moves while nothing is in flight, the new leader first gets only one batch. It
    gets further batches when this batch is acknowledged."""
    driver = Driver()
    driver.begin()
    driver.address = B
    driver.add(1, 2)
    [one] = driver.send()
    driver.answer(one)
    assert [entry.token for entry in driver.send()] == [2]


def test_old_event_times_go_one_by_one() -> None:
    """A batch with event times that are more than an hour old is sent alone: no other batch is in
    flight at the same time. The next batch is sent alone, too."""
    driver = Driver()
    driver.begin()
    driver.add(1, 2)
    driver.add(3, event_ms=WALL - EVENT_AGE_MAX_MS - 1)
    driver.add(4, 5, 6)
    one, two = driver.send()
    driver.answer(one)
    assert driver.settled() == [1]
    assert driver.send() == []
    driver.answer(two)
    assert driver.settled() == [2]
    [three] = driver.send()
    assert three.token == 3
    driver.answer(three)
    assert driver.settled() == [3]
    [four] = driver.send()
    driver.answer(four)
    assert driver.settled() == [4]
    assert [entry.token for entry in driver.send()] == [5, 6]


@pytest.mark.parametrize("code", [45, 47, 49, 59, 90])
def test_a_lost_identity_drains_and_begins_again(code: int) -> None:
    """If the broker no longer accepts the producer id, the producer's outbox first waits until the
    result of every batch in flight is known (a drain). Then it sends the remaining batches with a
    new id."""
    driver = Driver()
    one, two, three = driver.begin(1, 2, 3)
    driver.answer(one, code)
    driver.add(4)
    driver.answer(three)
    assert driver.settled() == []
    driver.now += 10
    assert driver.send() == []
    driver.box.lost(two)
    assert driver.settled() == []
    assert driver.box.wants_identity
    assert driver.box.generation_wanted == 2
    driver.sent.clear()
    [again] = driver.send()
    driver.answer(again)
    assert driver.settled() == [1]
    assert [entry.token for entry in driver.send()] == [2, 3, 4]
    assert [(h.producer_id, h.base_sequence) for h in driver.sent] == [
        (102, 0),
        (102, 2),
        (102, 4),
        (102, 6),
    ]


def test_an_acknowledgement_during_the_drain_counts() -> None:
    """During a drain the producer's outbox waits for the results of all batches in flight. If the
    oldest of these batches are acknowledged meanwhile, they are not sent again."""
    driver = Driver()
    one, two, _ = driver.begin(1, 2, 3)
    driver.answer(two, 45)
    driver.answer(one)
    assert driver.settled() == [1]


@pytest.mark.parametrize("code", [10, 18, 32, 43, 76, 87])
def test_refused_for_good_goes_back_with_all_behind(code: int) -> None:
    """If the broker refuses a batch permanently, the producer's outbox waits for the results of all
    earlier batches. Then it returns the refused batch to its caller with the broker's error, and
    all later batches with the error Drained."""
    driver = Driver()
    one, two, three = driver.begin(1, 2, 3)
    driver.add(4)
    driver.answer(two, code)
    driver.box.lost(one)
    driver.answer(three, 45)
    assert driver.box.settle() == []
    driver.add(5)
    driver.now += 10
    [again] = driver.send()
    assert again is one
    driver.answer(again)
    found = driver.box.settle()
    assert [token_of(each) for each in found] == [1, 2, 3, 4, 5]
    assert found[0].error is None
    assert found[1].error is not None
    assert found[1].error.code == code
    assert all(isinstance(each.error, Drained) for each in found[2:])
    assert driver.box.is_empty
    driver.add(6)
    assert [entry.token for entry in driver.send()] == [6]


def test_the_owner_is_told_which_batches_may_have_arrived() -> None:
    """The producer's outbox may return batches that were not delivered. It says how many times each
    of them was sent, over all connections and producer ids. The number 0 means that the batch was
    never sent, so it cannot have arrived."""
    driver = Driver()
    one, two, three = driver.begin(1, 2, 3)
    driver.add(4)
    for entry in (one, two, three):
        driver.box.lost(entry)
    driver.now += 10
    [again] = driver.send()
    driver.answer(again)
    two, three, four = driver.send()
    driver.answer(two, 87)
    driver.box.lost(three)
    driver.box.lost(four)
    driver.add(5)
    found = {token_of(each): each.attempts for each in driver.box.settle()}
    assert found == {1: 2, 2: 2, 3: 2, 4: 1, 5: 0}


def test_batches_taken_back_are_not_forgotten_by_another_drain() -> None:
    """During a drain the producer's outbox waits for the results of all batches in flight. If a
    second drain begins while batches of the first drain wait to be returned, the batches of both
    drains are returned."""
    driver = Driver()
    one, two = driver.begin(1, 2)
    driver.answer(two, 87)
    driver.box.lost(one)
    driver.box.settle()
    driver.now += 10
    [again] = driver.send()
    driver.answer(again, 45)
    driver.box.settle()
    driver.now += 10
    [again] = driver.send()
    driver.answer(again)
    assert driver.settled() == [1, 2]


def test_damage_on_the_way_is_repaired_by_a_retry() -> None:
    """After the error CORRUPT_MESSAGE a batch is sent again, because it may have been damaged on
    the way. If this error comes several times for one batch, the batch fails, because then its
    bytes were probably damaged before it was sent."""
    driver = Driver()
    [one] = driver.begin(1)
    for _ in range(CORRUPT_TIMES_MAX - 1):
        assert not driver.answer(one, 2)
        driver.now = driver.box.retry_at
        assert driver.send() == [one]
    driver.answer(one, 2)
    [delivery] = driver.box.settle()
    assert delivery.error is not None


@pytest.mark.parametrize("code", [-1, 3, 5, 6, 7, 17, 19, 20, 29, 31, 44, 56, 4_000])
def test_everything_else_is_tried_again(code: int) -> None:
    """After an error about a missing topic or a missing permission, and after an error with an
    unknown code, a batch is sent again and again, without a limit, so that no record is lost."""
    driver = Driver()
    [one] = driver.begin(1)
    for _ in range(20):
        driver.answer(one, code)
        assert driver.box.settle() == []
        driver.now = driver.box.retry_at
        assert driver.send() == [one]


def test_without_idempotence_there_are_no_sequences() -> None:
    """Without idempotence, the producer id and the sequence number in each batch's header are -1.
    After the error 45 (OUT_OF_ORDER_SEQUENCE_NUMBER) a batch is sent again, as after other
    errors."""
    driver = Driver(idempotent=False, max_in_flight=3)
    driver.add(*range(5))
    entries = driver.send()
    assert len(entries) == 3
    assert {(h.producer_id, h.base_sequence) for h in driver.sent} == {(-1, -1)}
    driver.answer(entries[0], 45)
    driver.now += 10
    assert driver.box.settle() == []
    assert driver.send() == [entries[0]]
