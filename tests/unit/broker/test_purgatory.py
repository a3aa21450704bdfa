"""The purgatory (Kafka's word) contains operations that cannot complete yet, such as fetches that
wait for more records and Produce requests that wait for a flush."""

from __future__ import annotations

from skidway.broker.network.timers import Timers
from skidway.broker.purgatory import WATCHED_MAX, Purgatory
from skidway.kafka.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Operation:
    def __init__(self) -> None:
        self.ready = False
        self.asked = self.completed = self.expired = 0

    def try_complete(self, changed: TopicPartition) -> bool:
        self.asked += 1
        self.completed += self.ready
        return self.ready

    def expire(self) -> None:
        self.expired += 1


def test_an_operation_completes_once() -> None:
    """An operation, such as a fetch that waits for records, may wait for several partitions. When
    the operation has completed because one of these partitions changed, the broker does not check
    the operation again, and the operation does not expire."""
    timers = Timers()
    purgatory, operation = Purgatory(timers), Operation()
    purgatory.watch(operation, [A, B], 10.0)
    purgatory.check(A)
    operation.ready = True
    purgatory.check(B)
    purgatory.check(A)
    purgatory.check(B)
    timers.run_due(99.0)
    assert (operation.asked, operation.completed, operation.expired) == (2, 1, 0)
    assert len(purgatory) == 0
    assert not purgatory.waits_for(A)
    assert not purgatory.waits_for(B)
    assert len(timers) == 0


def test_an_operation_expires_at_its_deadline() -> None:
    """An operation in the purgatory (one that cannot complete yet) expires once, at its deadline
    and not before. It then leaves the purgatory."""
    timers = Timers()
    purgatory, operation = Purgatory(timers), Operation()
    purgatory.watch(operation, [A], 10.0)
    timers.run_due(9.9)
    assert operation.expired == 0
    timers.run_due(10.0)
    purgatory.check(A)
    assert (operation.asked, operation.expired) == (0, 1)
    assert len(purgatory) == 0


def test_an_operation_may_come_back_while_it_is_asked() -> None:
    """The purgatory asks an operation that waits in it, such as a fetch, whether it can complete.
    Meanwhile the operation may put another operation into the purgatory."""
    timers = Timers()
    purgatory = Purgatory(timers)
    later = Operation()

    class Chain(Operation):
        def try_complete(self, changed: TopicPartition) -> bool:
            purgatory.watch(later, [A], 20.0)
            return True

    purgatory.watch(Chain(), [A], 10.0)
    purgatory.check(A)
    assert len(purgatory) == 1
    assert purgatory.waits_for(A)


def test_a_stop_completes_everything() -> None:
    """When the broker stops, every operation that cannot complete yet expires, so that its client
    is answered."""
    purgatory = Purgatory(Timers())
    operations = [Operation() for _ in range(3)]
    for operation in operations:
        purgatory.watch(operation, [A, B], 10.0)
    purgatory.expire_all()
    assert [each.expired for each in operations] == [1, 1, 1]
    assert len(purgatory) == 0


def test_what_waits_is_bounded() -> None:
    """An operation, such as a fetch, waits in the purgatory even after its connection has closed.
    So there is a limit to the number of partitions for which operations wait, summed over all
    operations. An operation that was removed (`forget`) is no longer counted."""
    timers = Timers()
    purgatory, operation = Purgatory(timers), Operation()
    assert purgatory.has_room(WATCHED_MAX)
    purgatory.watch(operation, [A, B], 10.0)
    assert purgatory.has_room(WATCHED_MAX - 2)
    assert not purgatory.has_room(WATCHED_MAX - 1)
    purgatory.forget(operation)
    purgatory.forget(operation)
    assert purgatory.has_room(WATCHED_MAX)
    assert not purgatory.has_room(WATCHED_MAX + 1)
