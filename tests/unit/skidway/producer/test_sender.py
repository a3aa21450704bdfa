from __future__ import annotations

from collections.abc import Iterable

from skidway.kafka.codecs import NONE
from skidway.kafka.columns import decode
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from skidway.producer.accumulator import Messages, PendingBatch
from skidway.producer.sender import Outgoing
from skidway.producer.sending import Sending
from support.memory_kafka import MemoryCluster, MemoryProducer

TP = TopicPartition("t", 0)


class Waiting:
    """A fake buffer with batches that wait to be sent, and with the Sending object of each set (the
    messages of one send)."""

    def __init__(self, *sizes: int) -> None:
        self.batches: list[PendingBatch] = []
        self.sendings: list[Sending] = []
        number = 0
        for size in sizes:
            names = [b"%d" % (number + index) for index in range(size)]
            sending = Sending(0, size, single=False)
            batch = PendingBatch(TP, 0.0)
            batch.extend(Messages(None, names, 1), 0, size, size, sending)
            self.batches.append(batch)
            self.sendings.append(sending)
            number += size

    def ready(self) -> Iterable[PendingBatch]:
        found, self.batches = self.batches, []
        return found

    def next_deadline(self) -> float:
        return 0.0

    def delivered(self, batch: PendingBatch, base_offset: int) -> None:
        batch.delivered(base_offset)

    def failed(self, batch: PendingBatch, error: Exception) -> None:
        batch.failed(error)

    def died(self, error: BaseException) -> None:
        raise error


def sent(waiting: Waiting, *refusals: ErrorCode | None) -> list[bytes]:
    """Sends the waiting batches to a fake broker, and returns the values in its log. The broker
    answers the first requests with the errors in `refusals`, in this order. None means that the
    broker accepts the request."""
    cluster = MemoryCluster()
    cluster.create("t")
    cluster.refusals.extend(None if code is None else KafkaError(code) for code in refusals)
    outgoing = Outgoing(MemoryProducer(cluster), waiting, NONE)  # type: ignore[arg-type]
    for _ in range(20):
        outgoing.turn(0.0, 0)
    batches = [decode(memoryview(bytes(batch))) for batch in cluster.log(TP).batches]
    return [value for batch in batches for value in batch.values.to_pylist()]


def offsets(sending: Sending) -> list[int]:
    return [each.offset for each in sending.future.result(0)]


def test_batches_that_came_back_are_sent_again_in_order() -> None:
    """If the broker refuses a batch permanently, the future of this batch fails. The later batches,
    which the client returned without delivering them, are sent again. They arrive in order, and
    their futures have the offsets."""
    waiting = Waiting(2, 3, 1)
    assert sent(waiting, ErrorCode.INVALID_RECORD) == [b"2", b"3", b"4", b"5"]
    assert isinstance(waiting.sendings[0].future.exception(0), KafkaError)
    assert [offsets(each) for each in waiting.sendings[1:]] == [[0, 1, 2], [3]]


def test_a_batch_that_is_too_large_is_halved() -> None:
    """If a batch is too large for the broker, the producer halves it. All its messages arrive in
    the same order, before the messages of later batches."""
    waiting = Waiting(4, 1)
    found = sent(waiting, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.MESSAGE_TOO_LARGE)
    assert found == [b"0", b"1", b"2", b"3", b"4"]
    assert [offsets(each) for each in waiting.sendings] == [[0, 1, 2, 3], [4]]


def test_one_message_that_is_too_large_fails_alone() -> None:
    """If a single message is too large for the broker, the future of its send fails. The other
    messages of its batch arrive."""
    waiting = Waiting(2, 1)
    too_large = ErrorCode.MESSAGE_TOO_LARGE
    assert sent(waiting, too_large, too_large) == [b"1", b"2"]
    assert isinstance(waiting.sendings[0].future.exception(0), KafkaError)
    assert offsets(waiting.sendings[1]) == [1]
