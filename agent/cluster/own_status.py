"""Tells the audit how the agent was started, and what it waits for. A waiting agent also sends
heartbeats, so that the audit does not take its host for silent.

The messages are sent beside the outbox of the state, which only the agent's loop publishes. A
waiting agent may have messages in its outbox, so its heartbeat names the last number that the audit
topic has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from skidway import invocation
from skidway.audit.signing.signer import Signer
from skidway.audit.topic.messages import Heartbeat, Sender, encode
from skidway.audit.topic.program_status import Kind, Obstacle, ProgramStatus
from skidway.audit.topic.publisher import batch_of, signer_or_none
from skidway.audit.topic.status_notes import StatusNotes
from skidway.clock import Clock
from skidway.kafka.client import Producer
from skidway.kafka.types import TopicPartition

TOLD_MAX: Final = 5
"""Of so many partitions that have a trouble, the first are told."""


class OwnStatus:
    """Owns what is told, and a producer that nothing else uses. waits_for: what keeps the agent
    from its work now; the caller sets it.
    """

    def __init__(self, producer: Producer, clock: Clock, heartbeat_s: float) -> None:
        self.waits_for: tuple[Obstacle, ...] = ()
        self._producer = producer
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._signer: Signer | None = None
        self._beat_at = clock.monotonic()
        self._started = invocation.of_this_process()
        self._to: tuple[Sender, TopicPartition, int] | None = None
        self._notes: StatusNotes | None = None

    def reached(
        self, sender: Sender, partition: TopicPartition, number: int, signer: Signer | None
    ) -> None:
        """Notes that the cluster answers. From now on, there is somebody to tell. number: the
        number of the newest message of the agent that the audit topic has; 0 if it has none."""
        self._signer = signer
        if self._to is None or self._to[0] != sender:
            self._notes = StatusNotes(sender, self._clock)
        self._to = sender, partition, number

    def wait(self, obstacle: Obstacle) -> None:
        """Notes that the agent waits. Keeps the time since when it has waited for the same."""
        for each in self.waits_for:
            if (each.kind, each.name) == (obstacle.kind, obstacle.name):
                return
        self.waits_for = (obstacle,)

    def poll(self, timeout_ms: int = 0, *wake: int, is_waiting: bool = False) -> None:
        """Sends what is due, and waits at most `timeout_ms`. is_waiting: whether heartbeats are
        due; the loop of a running agent sends its own."""
        if self._to is not None and not self._producer.pending_count:
            sender, partition, number = self._to
            message = self._beat(sender, number) if is_waiting else None
            if message is None and self._notes is not None and self._notes.is_due:
                present = ProgramStatus(self._started, self.waits_for)
                message = self._notes.told(present, 0)  # the time orders these notes
            if message is not None and self._producer.has_room:
                batch = batch_of([message], self._clock.time_ms(), signer_or_none(self._signer))
                self._producer.send(partition, batch, None)
        self._producer.poll(timeout_ms, *wake)

    def close(self) -> None:
        """Gives up what is not sent."""
        self._producer.close()

    def _beat(self, sender: Sender, number: int) -> bytes | None:
        if self._clock.monotonic() < self._beat_at:
            return None
        self._beat_at = self._clock.monotonic() + self._heartbeat_s
        return encode(Heartbeat(sender, number, self._clock.time_ms()))


def obstacles_of(
    full: str | None, troubles: Iterable[tuple[str, str]], before: Sequence[Obstacle], now_ms: int
) -> tuple[Obstacle, ...]:
    """Returns what keeps a running agent from its work. full: why the state cannot be written.
    troubles: partitions to which nothing can be delivered, each with the reason. before: what kept
    it from its work until now."""
    since = {x.name: x.since_ms for x in before}
    found = {name: f"An agent cannot deliver to {name}: {why}" for name, why in troubles}
    told = [(name, found[name]) for name in sorted(found)[:TOLD_MAX]]
    told += [("state", full)] if full else []
    return tuple(Obstacle(Kind.OTHER, x, words, since.get(x, now_ms)) for x, words in told)
