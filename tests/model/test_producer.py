"""The real producer core (the producer's code without I/O) runs with a simulated broker under
random schedules of faults.

Two addresses lead to one partition's log, and one of these is the leader's address. The broker
remembers the last five batches of a producer, accepts any first sequence of an unknown producer,
and forgets a producer that has sent nothing for an hour. Like Kafka, the broker also forgets a
producer whose batches have event times that are too old. The broker refuses batches temporarily or
permanently, crashes, and loses batches that were not flushed. Connections break, and requests that
were sent over them may still arrive, much later. The producer's owner, a stand-in for the agent,
crashes and restarts from an old checkpoint.

Whatever happens, the first occurrences of the batches in the log are in order, and no batch is
missing between them. A loader relies on this order, because it keeps only one mark for each file.
The mark is the end of the part that is already loaded. Acknowledged batches are durable, a retry
has the same bytes, and the owner gets the results of its batches in order. After the faults have
ended, all batches are delivered.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from skidway.kafka.batch import BatchHeader, EncodedBatch, read_header
from skidway.kafka.client import outbox
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.delivery import Delivery, Drained
from skidway.kafka.client.dispatch import Dispatch, Planned
from skidway.kafka.client.outbox import Outbox
from skidway.kafka.codecs import NONE
from skidway.kafka.protocol.produce import ProduceResult
from skidway.kafka.types import TopicPartition
from support.promises import promise
from support.randomness import Seeds

TP = TopicPartition("logs", 0)
PLACES = (Address("a", 1), Address("b", 1))
HOUR_MS = 3_600_000
DEDUPE_BATCHES = 5
TRANSIENT = (2, 3, 5, 6, 7, 19, 20, 29, 56, -1)
AFTER_APPEND = (7, 20)


class Violation(AssertionError):
    """Raised if an invariant is violated."""


@dataclass
class Request:
    """A Produce request that is in flight, and its connection."""

    id: int
    connection: int
    address: Address
    batch: bytes


@dataclass
class Known:
    """What the broker remembers about one producer."""

    epoch: int
    last_sequence: int
    window: list[tuple[int, int]]  # (base sequence, log position) of the producer's last batches
    event_ms: int
    appended_ms: int


@dataclass
class Broker:
    """A simulated broker with the log of one partition, and with what it remembers about each
    producer."""

    # for each batch: its header, the number in its payload, and its append time
    log: list[tuple[BatchHeader, int, int]] = field(default_factory=list)
    flushed: int = 0
    producers: dict[int, Known] = field(default_factory=dict)
    leader: Address = PLACES[0]

    def take(self, raw: bytes, wall_ms: int) -> tuple[int, int]:
        """Appends a batch, or refuses it. Returns Kafka's error code and the batch's position in
        the log (-1 if the batch is refused). For a duplicate, returns the position of the first
        copy."""
        header = read_header(raw)
        number = int.from_bytes(raw[61:65], "big")
        if raw[65:66] == b"!":
            return 10, -1
        known = self.producers.get(header.producer_id)
        if known is not None and header.producer_epoch < known.epoch:
            return 47, -1
        if known is not None and header.producer_epoch == known.epoch:
            for sequence, position in known.window:
                if sequence == header.base_sequence:
                    return 0, position
            if header.base_sequence != known.last_sequence + 1:
                return 45, -1
        elif known is not None and header.base_sequence != 0:
            return 45, -1
        self.log.append((header, number, wall_ms))
        self._remember(header, len(self.log) - 1, wall_ms)
        return 0, len(self.log) - 1

    def _remember(self, header: BatchHeader, position: int, wall_ms: int) -> None:
        known = self.producers.get(header.producer_id)
        window = known.window if known is not None and known.epoch == header.producer_epoch else []
        window = [*window, (header.base_sequence, position)][-DEDUPE_BATCHES:]
        self.producers[header.producer_id] = Known(
            header.producer_epoch, header.last_sequence, window, header.max_timestamp, wall_ms
        )

    def crash(self, keep: int) -> None:
        """Restarts the broker. Its log then has only the first `keep` batches, and the broker
        remembers only the producers of these batches."""
        del self.log[keep:]
        self.flushed = keep
        self.producers = {}
        for position, (header, _, wall_ms) in enumerate(self.log):
            self._remember(header, position, wall_ms)

    def forget(self, wall_ms: int) -> None:
        """Forgets idle producers, and producers whose batches are too old by event time, as Kafka
        does."""
        for producer_id, known in list(self.producers.items()):
            if wall_ms - min(known.event_ms, known.appended_ms) > HOUR_MS:
                del self.producers[producer_id]


class World:
    """The owner of the producer (the simulated agent), the producer core, the network and the
    broker. Random numbers from `seed` decide what happens in each step."""

    def __init__(self, seed: int, *, batches: int = 10) -> None:
        self.random = random.Random(seed)
        self.broker = Broker()
        self.now, self.wall_ms = 1_000.0, 1_700_000_000_000
        self.poisoned = {n for n in range(1, batches + 1) if self.random.random() < 0.08}
        self.old_times = self.random.random() < 0.5
        self.batches = [self._batch(n) for n in range(1, batches + 1)]
        self.producer_ids = itertools.count(100)
        self.sealed: dict[tuple[int, int, int], bytes] = {}
        self.wire: dict[Address, deque[Request]] = {place: deque() for place in PLACES}
        self.old: list[Request] = []
        # requests whose batches the broker has appended and not yet flushed
        self.parked: list[tuple[Request, int]] = []
        self.responses: dict[Address, deque[tuple[Request, int, int]]] = {}
        self.connection = dict.fromkeys(PLACES, 0)
        # numbers of the batches that are acknowledged or refused for good
        self.done: set[int] = set()
        self.checkpoint = 0
        self._begin()

    def _batch(self, number: int) -> EncodedBatch:
        mark = b"!" if number in self.poisoned else b"."
        old = self.old_times and self.random.random() < 0.5
        event_ms = self.wall_ms - (3 * HOUR_MS if old else 0)
        body = number.to_bytes(4, "big") + mark
        return EncodedBatch(body, NONE.number, self.random.randint(1, 3), event_ms, event_ms, 5)

    def _begin(self) -> None:
        """Starts or restarts the owner of the producer (the simulated agent), which continues from
        its checkpoint with a new producer core."""
        self.core = Dispatch(
            idempotent=True, max_in_flight=5, max_buffered_bytes=1 << 20, random=self.random.random
        )
        for place in PLACES:
            self._drop(place, tell=False)
        self.done = set(range(1, self.checkpoint + 1))
        # When the broker refuses a batch for good, the producer returns the later batches as
        # drained (not sent). This list has the numbers of the drained batches since the last such
        # refusal. It is None if there was no such refusal since the start of the simulated agent.
        self._taken_back: list[int] | None = None
        self.to_send = deque(range(self.checkpoint + 1, len(self.batches) + 1))
        self.expected = deque(self.to_send)

    # The events of a run.

    def step(self) -> None:
        weighted = [
            *((each, 20) for each in (self.send, self.plan)),
            *((each, 30) for each in (self.serve, self.respond)),
            *((each, 10) for each in (self.flush, self.tick)),
            *((each, 4) for each in (self.refuse, self.drop, self.late)),
            *((each, 3) for each in (self.forget, self.save)),
            *((each, 2) for each in (self.crash_broker,)),
            *((each, 1) for each in (self.old_dies, self.lead, self.crash_owner, self.idle_hour)),
        ]
        actions, weights = zip(*weighted, strict=True)
        self.random.choices(actions, weights)[0]()
        self.check()

    def heal(self) -> None:
        """Ends all faults. Asserts that all batches are delivered within a limited number of
        steps."""
        self.old.clear()
        for _ in range(2_000):
            if len(self.done) == len(self.batches):
                return
            for action in (self.send, self.plan, self.serve, self.flush, self.respond, self.tick):
                action()
            self.check()
        raise Violation(f"not everything was delivered: {sorted(self.done)}")

    def send(self) -> None:
        if self.to_send:
            number = self.to_send.popleft()
            self.core.add(TP, self.batches[number - 1], number)

    def plan(self) -> None:
        if self.core.identity_wanted:
            self.core.identified(next(self.producer_ids), 0)
        for planned in self.core.plan(self._leader, lambda _: True, self.now, self.wall_ms):
            self._put(planned)

    def _leader(self, _: TopicPartition) -> Address | None:
        return self.broker.leader if self.random.random() < 0.9 else self.random.choice(PLACES)

    def _put(self, planned: Planned) -> None:
        for topic, partition, pieces in planned.data:
            assert TopicPartition(topic, partition) == TP
            raw = b"".join(bytes(piece) for piece in pieces)
            header = read_header(raw)
            key = (header.producer_id, header.producer_epoch, header.base_sequence)
            if self.sealed.setdefault(key, raw) != raw:
                raise Violation(f"one sequence, two contents: {key}")
            place = planned.address
            request = Request(planned.id, self.connection[place], place, raw)
            self.wire[place].append(request)

    def serve(self, refusal: int | None = None) -> None:
        place = self.random.choice(PLACES)
        if self.wire[place]:
            self._process(self.wire[place].popleft(), refusal)

    def refuse(self) -> None:
        self.serve(self.random.choice(TRANSIENT))

    def _process(self, request: Request, refusal: int | None) -> None:
        if refusal is not None and refusal not in AFTER_APPEND:
            self._answer(request, refusal, -1)
        elif request.address != self.broker.leader:
            self._answer(request, 6, -1)
        else:
            code, position = self.broker.take(request.batch, self.wall_ms)
            if code or refusal is not None:
                self._answer(request, code or refusal or 0, -1)
            else:
                self.parked.append((request, position))

    def flush(self) -> None:
        self.broker.flushed = len(self.broker.log)
        for request, position in self.parked:
            self._answer(request, 0, position)
        self.parked.clear()

    def _answer(self, request: Request, code: int, offset: int) -> None:
        answers = self.responses.setdefault(request.address, deque())
        answers.append((request, code, offset))

    def respond(self) -> None:
        for answers in self.responses.values():
            if answers:
                request, code, offset = answers.popleft()
                if request.connection == self.connection[request.address]:
                    result = ProduceResult(*TP, code, offset)
                    self.core.answered(request.id, [result], self.now, self.wall_ms)
                    self.deliver()

    def deliver(self) -> None:
        for delivery in self.core.deliveries():
            number = delivery.token
            assert isinstance(number, int)
            if number != self.expected[0] and not isinstance(delivery.error, Drained):
                raise Violation(f"{number} delivered, {self.expected[0]} was expected")
            if isinstance(delivery.error, Drained):
                self._again(number)
            elif delivery.error is not None:
                if number not in self.poisoned and delivery.error.code != 2:
                    raise Violation(f"{number} handed back: {delivery.error}")
                self.poisoned.add(number)
                self.expected.popleft()
                self.done.add(number)
                self._taken_back = []
            else:
                self.expected.popleft()
                self.done.add(number)
                self._durable(number)

    def _again(self, number: int) -> None:
        """If the broker has refused a batch for good, the producer returns the later batches as
        drained (not delivered). Puts a drained batch back into the queue of batches to send.
        Asserts that drained batches come back in order, and only after a final refusal."""
        taken = self._taken_back
        if taken is None:
            raise Violation(f"{number} taken back though no batch was refused")
        taken.append(number)
        if taken != list(itertools.islice(self.expected, len(taken))):
            raise Violation(f"{taken} taken back, {list(self.expected)} were expected")
        if number in self.to_send:
            raise Violation(f"{number} taken back though it was not sent")
        self.to_send = deque(sorted([*self.to_send, number]))

    def _durable(self, number: int) -> None:
        if number not in {each for _, each, _ in self.broker.log[: self.broker.flushed]}:
            raise Violation(f"{number} is acknowledged and not durable")

    def tick(self) -> None:
        seconds = self.random.choice([0.001, 0.1, 2.0])
        self.now += seconds
        self.wall_ms += int(seconds * 1000)

    def drop(self) -> None:
        self._drop(self.random.choice(PLACES), tell=True)

    def _drop(self, place: Address, *, tell: bool) -> None:
        """Breaks the connection to the address `place`. The connection's requests may arrive later,
        but the producer never gets the answers to these requests. If `tell` is true, the producer
        learns at once that these requests are lost."""
        lost = [*self.wire[place], *(r for r, _ in self.parked if r.address == place)]
        answers = self.responses.get(place, deque())
        lost += [
            request for request, _, _ in answers if request.connection == self.connection[place]
        ]
        self.old += self.wire[place]
        del self.old[:-6]
        self.wire[place].clear()
        self.parked = [each for each in self.parked if each[0].address != place]
        answers.clear()
        self.connection[place] += 1
        if tell:
            for request in lost:
                self.core.lost(request.id)
            self.deliver()

    def late(self) -> None:
        if self.old:
            request = self.old.pop(self.random.randrange(len(self.old)))
            if request.address == self.broker.leader:
                self.broker.take(request.batch, self.wall_ms)

    def old_dies(self) -> None:
        self.old.clear()

    def lead(self) -> None:
        self.broker.leader = self.random.choice(PLACES)

    def forget(self) -> None:
        self.broker.forget(self.wall_ms)

    def crash_broker(self) -> None:
        self.broker.crash(self.random.randint(self.broker.flushed, len(self.broker.log)))
        for place in PLACES:
            self._drop(place, tell=True)

    def crash_owner(self) -> None:
        self._begin()

    def save(self) -> None:
        """Moves the checkpoint of the simulated agent forward, as long as the next batch is
        acknowledged or was refused for good."""
        while self.checkpoint + 1 in self.done:
            self.checkpoint += 1

    def idle_hour(self) -> None:
        """If no request is in flight, lets an hour pass. If a request is in flight, does nothing,
        because in this model every request arrives within an hour."""
        if not (self.core.pending_count or self.parked or any(self.wire.values())):
            self.old.clear()
            self.now += 4_000
            self.wall_ms += 4_000_000
            self.broker.forget(self.wall_ms)

    def check(self) -> None:
        have = {0}
        for _, number, _ in self.broker.log:
            missing = [n for n in range(1, number) if n not in have and n not in self.poisoned]
            if missing:
                raise Violation(f"{number} is in the log before {missing}")
            have.add(number)


def run(seed: int, steps: int = 250) -> World:
    world = World(seed)
    for _ in range(steps):
        world.step()
    world.heal()
    return world


@promise("3 order", "clocks producer")
@pytest.mark.parametrize("part", range(8))
def test_order_holds_under_any_schedule(part: int, seeds: Seeds) -> None:
    """Under thousands of schedules, no batch is missing in the middle of the log, no acknowledged
    batch is lost, and every batch is delivered in the end."""
    for seed in seeds(range(part * 500, part * 500 + 500)):
        try:
            run(seed)
        except Violation as violation:
            raise AssertionError(f"seed {seed}: {violation}") from violation


def test_the_schedules_reach_every_rule() -> None:
    """Each of these events occurs in more than 20 of 120 schedules: a batch is twice in the log,
    the producer takes a new id, the broker refuses a batch, the simulated agent moves its
    checkpoint."""
    repeats = identities = refused = crashes = 0
    for seed in range(120):
        world = run(seed)
        numbers = [number for _, number, _ in world.broker.log]
        repeats += len(numbers) > len(set(numbers))
        identities += next(world.producer_ids) - 100 > 1
        refused += bool(world.poisoned)
        crashes += world.checkpoint > 0
    assert min(repeats, identities, refused, crashes) > 20


def broken(seeds: int = 1_500) -> bool:
    """Returns whether at least one schedule violates an invariant. Tests call this after they have
    put an error into the producer's code."""
    for seed in range(seeds):
        try:
            run(seed)
        except (Violation, AssertionError):
            return True
    return False


@promise("3 order")
def test_the_model_sees_five_in_flight_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model finds that a batch is missing if the producer sends five batches at once before the
    broker has acknowledged the first one."""
    monkeypatch.setattr(Outbox, "_window", lambda *_: 5)
    assert broken()


@promise("3 order")
def test_the_model_sees_old_event_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model finds that a batch is missing if the producer sends several batches at once
    although their event times are old."""
    monkeypatch.setattr(outbox, "_is_old", lambda *_: False)
    assert broken()


def test_the_model_sees_a_new_identity_before_the_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model notices a broken order if the producer takes a new id while batches of the old id
    are in flight."""
    end_drain = Outbox._end_drain

    def hasty(self: Outbox) -> list[object]:
        if self._draining:
            end_drain(self)
        return settle(self)

    settle = Outbox.settle
    monkeypatch.setattr(Outbox, "settle", hasty)
    assert broken()


def test_the_model_sees_a_sequence_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model notices if the sequence does not advance by a batch's number of records, so that
    two batches get the same sequence."""
    monkeypatch.setattr(outbox, "next_sequence", lambda sequence, _: sequence)
    assert broken()


def test_the_model_sees_a_late_batch_under_the_new_identity(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When the producer takes a new id, it must first send the oldest unacknowledged batch. If the
    producer begins with a later batch instead, the model notices that a batch is missing."""
    end_drain = Outbox._end_drain

    def skipping(self: Outbox) -> None:
        end_drain(self)
        if len(self._queue) > 1:
            self._queue.rotate(-1)

    monkeypatch.setattr(Outbox, "_end_drain", skipping)
    assert broken()


def test_the_model_sees_a_batch_taken_back_without_a_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model reports a violation if the producer returns a batch as drained although no earlier
    batch was refused."""

    def drained(self: Dispatch) -> list[Delivery]:
        return [each._replace(error=Drained(TP)) for each in deliveries(self)]

    deliveries = Dispatch.deliveries
    monkeypatch.setattr(Dispatch, "deliveries", drained)
    with pytest.raises(Violation, match="taken back though no batch was refused"):
        run(0)
