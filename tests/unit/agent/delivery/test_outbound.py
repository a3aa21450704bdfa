"""An intent is a stored promise to send certain bytes. While the batches of an intent are on their
way, they are called a flight. Batches are sent in order. A batch that the producer returns
undelivered is sent again."""

import pytest

from skidway.agent.batches.press import Press
from skidway.agent.delivery.outbound import Outbound, Refusal
from skidway.agent.values.identity import Guard
from skidway.agent.values.intents import Intent, Reading, crc_of
from skidway.agent.values.tracked import Checkpoint, Flight
from skidway.audit.topic.messages import Certainty
from skidway.errors import ConfigurationRefused
from skidway.kafka.client import Delivery
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from support.agent_press import AGENT, DATA, READ_MS, REJECTED, recipe
from support.agent_world import Brokers, Producer, records_of

TP = TopicPartition("logs", 0)


class Sending:
    def __init__(self, *datas: bytes, room: int = 100) -> None:
        self.brokers = Brokers()
        self.producer = Producer(self.brokers, room)
        self.outbound = Outbound(self.producer, 1 << 20)
        self.flights = []
        first = 0
        for index, data in enumerate(datas):
            intent = Intent(index, 5, first, first + len(data), crc_of(data), READ_MS, b"")
            first = intent.end
            flight = Flight(intent, Checkpoint(intent.end, 0, Guard(0, 0), ()))
            self.flights.append(flight)
            pressed = Press(recipe()).press(
                AGENT, [Reading(intent, data, "h", "/p")], (DATA, REJECTED), 60_000
            )
            self.outbound.add(pressed, [flight], (DATA, REJECTED))
        self.outbound.pump()

    def firsts(self) -> list[int]:
        return [record.first for record in self.brokers.logs[TP]]


def test_a_flight_is_done_when_all_its_batches_are_acknowledged() -> None:
    """A flight is the set of batches that are sent for one intent. It is done when all its batches
    are acknowledged. `settle` then returns the last acknowledged offset in each partition."""
    sending = Sending(b"a\n\xff\n", b"b\n")
    assert [flight.waiting for flight in sending.flights] == [2, 1]
    settled = sending.outbound.settle(sending.producer.deliver_all())
    assert [flight.is_done for flight in sending.flights] == [True, True]
    assert settled.offsets == {TP: 1, TopicPartition("logs.rejected", 0): 0}


def test_what_the_producer_does_not_take_waits_in_order() -> None:
    """If the producer's buffer is full, further batches wait in order, and `has_room` is false, so
    that the agent reads no more files."""
    sending = Sending(b"a\n", b"b\n", b"c\n", room=1)
    assert not sending.outbound.has_room
    for _ in range(3):
        sending.outbound.settle(sending.producer.deliver_all())
        sending.outbound.pump()
    assert sending.firsts() == [0, 2, 4]
    assert sending.outbound.has_room


def test_the_bytes_of_a_topic_are_counted_until_brokers_have_answered() -> None:
    """The agent counts the bytes of a topic's batches as unanswered until brokers have acknowledged
    or refused the batches, even while the batches wait for room, come back or are halved. Rejected
    lines count, too."""
    sending = Sending(b"a\nb\n\xff\n", b"c\n", b"d\n", room=2)
    parcels = [each.token for sent in sending.producer.sent.values() for each in sent]
    assert sending.outbound.held_bytes["logs"] > sum(each.encoded.size_bytes for each in parcels)
    assert list(sending.outbound.held_bytes) == ["logs"]
    sending.brokers.refuses = lambda record: record.first == 2
    sending.outbound.settle(sending.producer.arrive(TP))
    halved = sending.outbound.held_bytes["logs"]
    sending.outbound.pump()
    assert sending.outbound.held_bytes["logs"] == halved > 0
    assert len(refused(sending)) == 1
    assert sending.outbound.held_bytes == {}


def refused(sending: Sending) -> list[Refusal]:
    """Sends all batches to the broker, and returns the records that the broker refuses."""
    found = []
    for _ in range(10):
        found += sending.outbound.settle(sending.producer.deliver_all()).refusals
        sending.outbound.pump()
    return found


def test_a_refused_record_is_found_and_all_others_arrive_once_in_order() -> None:
    """If the broker refuses a batch because of one record, the agent finds out which record this
    is. Every other record arrives once, in order."""
    lines = [b"%d\n" % i for i in range(8)]
    sending = Sending(b"".join(lines), b"8\n", b"9\n")
    sending.brokers.refuses = lambda record: record.first == 10
    (refusal,) = refused(sending)
    assert sending.firsts() == [0, 2, 4, 6, 8, 12, 14, 16, 18]
    assert (refusal.first, refusal.length, refusal.was_sent) == (10, 2, False)
    assert [each.is_done for each in sending.flights] == [False, True, True]


def test_what_came_back_is_sent_before_what_waited() -> None:
    """If the producer returns batches undelivered, the agent sends them before batches that still
    wait for room in the producer's buffer, because readers drop records that are out of order."""
    sending = Sending(b"a\nb\n", b"c\n", b"d\n", room=2)
    assert not sending.outbound.has_room
    sending.brokers.refuses = lambda record: record.first == 2
    (refusal,) = refused(sending)
    assert (refusal.first, sending.firsts()) == (2, [0, 4, 6])


@pytest.mark.parametrize("certainty", [None, Certainty.LOST, Certainty.UNCERTAIN])
def test_a_flight_waits_for_its_refused_record(certainty: Certainty | None) -> None:
    """A flight (the batches of one intent that are on their way) with a refused record is done only
    when the agent has decided about the record. If the record arrived, it is counted like every
    other record. If it is lost or uncertain, it is not counted."""
    sending = Sending(b"a\nb\n\xff\n")
    sending.brokers.refuses = lambda record: record.first == 2
    (refusal,) = refused(sending)
    (flight,) = sending.flights
    assert not flight.is_done
    if certainty is None:
        refusal.land()
    else:
        refusal.set_apart(certainty)
    assert flight.is_done
    assert flight.outcome is not None
    counted = {key[0].topic: sums.count for key, sums in flight.outcome.counts.items()}
    arrived = 1 if certainty else 2
    assert counted == {"logs": arrived, "logs.rejected": 1}
    assert (flight.outcome.delivered_bytes, flight.outcome.rejected_bytes) == (2 * arrived, 2)
    assert flight.lost_bytes == (2 if certainty is Certainty.LOST else 0)
    assert flight.uncertain_bytes == (2 if certainty is Certainty.UNCERTAIN else 0)


@pytest.mark.parametrize("is_behind", [False, True])
def test_what_was_sent_in_a_larger_batch_or_taken_back_may_have_arrived(is_behind: bool) -> None:
    """The agent sends a refused batch again in halves, until it has found the refused record.
    `was_sent` says that this record may have arrived with a larger batch that was sent before. It
    is true in two cases: the answer to the larger batch was lost, or the broker refused an earlier
    batch, so that the producer took the larger batch back."""
    sending = Sending(b"a\n", b"b\nc\n")
    if is_behind:
        sending.producer.arrive(TP)
        sending.producer.arrive(TP)
        sending.producer.interrupt(TP, is_known=False)
        sending.brokers.refuses = lambda record: record.first in (0, 4)
    else:
        sending.outbound.settle([*sending.producer.arrive(TP), *sending.producer.answer()])
        sending.producer.arrive(TP)
        sending.producer.interrupt(TP)
        sending.brokers.refuses = lambda record: record.first == 4
    assert [(each.first, each.was_sent) for each in refused(sending)][-1] == (4, True)


def test_halves_hold_the_same_records() -> None:
    """If the broker refuses a batch, the agent sends the batch's records again in two halves. The
    records in the halves are the same as in the whole batch."""
    whole = Sending(b"a\nbb\nccc\n\ndd\n")
    whole.outbound.settle(whole.producer.deliver_all())
    halved = Sending(b"a\nbb\nccc\n\ndd\n")
    halved.brokers.refuses = lambda record: True
    parcel = halved.producer.sent[TP][0].token
    found = halved.outbound.settle(halved.producer.arrive(TP))
    halved.brokers.refuses = lambda record: False
    halved.outbound.pump()
    assert len(halved.producer.sent[TP]) == 2
    halved.outbound.settle(halved.producer.deliver_all())
    assert halved.brokers.logs[TP] == whole.brokers.logs[TP]
    assert not found.refusals
    assert records_of(parcel.encoded) == whole.brokers.logs[TP]


def test_a_compression_that_brokers_refuse_stops_the_agent() -> None:
    """A compression type that the brokers refuse is a configuration error that stops the agent. If
    the agent continued, it would declare every line lost."""
    sending = Sending(b"a\n")
    sent = sending.producer.sent[TP].pop()
    error = KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    with pytest.raises(ConfigurationRefused, match="compression"):
        sending.outbound.settle([Delivery(sent.token, TP, -1, error)])
