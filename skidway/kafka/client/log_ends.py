"""Where the logs of partitions end, above their high watermarks too.

Leaders answer consumers only with records below the high watermark, and the latest offset that
ListOffsets returns is the high watermark. A leader may have appended more: records that are not on
enough replicas yet. `LogEnds` asks with OffsetForLeaderEpoch (KIP-101) where the present leader
epoch ends, and this is the leader's log end offset. If the broker does not offer this API, or does
not know the epoch, `LogEnds` takes 0 as the end, so that only the high watermark counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from skidway.kafka.client.calls import MessageCall
from skidway.kafka.client.client import Client
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.session import Channel, Inbox
from skidway.kafka.errors import UnsupportedVersion
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from skidway.kafka.types import TopicPartition

AGAIN_S = 1.0
"""How often a leader is asked. A new leader's log may end below the end that the old leader said,
if records above the high watermark were lost with the old leader."""

Epochs = Mapping[TopicPartition, int]


class LogEnds:
    """Owns the log end offsets that leaders have said. Waits for nothing: the answers arrive while
    the client waits for other answers.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox: Inbox = deque()
        self._open: dict[int, tuple[Address, Epochs]] = {}  # by ticket
        self._said: dict[TopicPartition, tuple[int, int]] = {}  # the negative epoch, and its end
        self._ask_at = 0.0

    def ask(self, partitions: Iterable[TopicPartition]) -> None:
        """Takes the answers that have come. Asks the leaders of the partitions, if they were not
        asked within the last AGAIN_S seconds."""
        while self._inbox:
            self._take(self._inbox.popleft())
        session, picture = self._client.session, self._client.picture
        now = self._client.clock.monotonic()
        picture.advance(session, now)
        if now < self._ask_at:
            return
        self._ask_at = now + AGAIN_S
        busy = {address for address, _ in self._open.values()}
        leaders: dict[Address, dict[TopicPartition, int]] = {}
        for tp in partitions:
            address = picture.leader(tp)
            if address is not None and address not in busy:
                leaders.setdefault(address, {})[tp] = picture.cluster.leader_epoch(tp)
        for address, epochs in leaders.items():
            if session.usable(address, Channel.MAIN, now):
                call = _call(epochs)
                ticket = session.submit(address, Channel.MAIN, call, self._inbox, now)
                self._open[ticket] = address, epochs

    def end(self, tp: TopicPartition) -> int | None:
        """Returns where the partition's log ended when its leader was first asked after `forget`;
        None if no leader has answered since then. Of two leaders, the one of the later leader epoch
        counts.
        """
        return self._said[tp][1] if tp in self._said else None

    def forget(self) -> None:
        """Forgets all ends, also those of answers that are still to come."""
        for ticket in self._open:
            self._client.session.forget(ticket)
        self._open.clear()
        self._inbox.clear()
        self._said.clear()
        self._ask_at = 0.0

    def _take(self, answer: Answer) -> None:
        _, epochs = self._open.pop(answer.ticket)
        if isinstance(answer.error, UnsupportedVersion):
            for tp, epoch in epochs.items():
                self._say(tp, epoch, 0)
        elif answer.error is not None:
            self._client.picture.mark_stale()
        else:
            self._take_response(answer.response, epochs)

    def _take_response(self, response: OffsetForLeaderEpochResponse, epochs: Epochs) -> None:
        for topic in response.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.topic, row.partition)
                if row.error_code:  # for example, the leader is another one now
                    self._client.picture.mark_stale()
                elif tp in epochs:
                    self._say(tp, epochs[tp], max(row.end_offset, 0))

    def _say(self, tp: TopicPartition, epoch: int, end: int) -> None:
        new = -epoch, end
        self._said[tp] = min(new, self._said.get(tp, new))  # the latest epoch, its lowest end


def _call(epochs: Epochs) -> MessageCall:
    """Returns a request to one leader for the ends of the present epochs of partitions. If the
    partition has another epoch meanwhile, the leader answers with an error."""
    topics: dict[str, list[OffsetForLeaderPartition]] = {}
    for tp, epoch in epochs.items():
        row = OffsetForLeaderPartition(
            partition=tp.partition, current_leader_epoch=epoch, leader_epoch=epoch
        )
        topics.setdefault(tp.topic, []).append(row)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=tuple(
            OffsetForLeaderTopic(topic=name, partitions=tuple(rows))
            for name, rows in topics.items()
        ),
    )
    return MessageCall(
        ApiKey.OFFSET_FOR_LEADER_EPOCH, lambda _: request, OffsetForLeaderEpochResponse
    )
