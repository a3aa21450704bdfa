"""The offsets from which the client fetches the partitions of one source, and which partitions wait
before they are fetched again."""

from __future__ import annotations

from skidway import log
from skidway.broker.mirror.partition import MirrorPartition
from skidway.broker.mirror.surroundings import SourceClient
from skidway.clock import Clock
from skidway.kafka.client.cluster import Address
from skidway.kafka.types import TopicPartition
from skidway.rare_lines import RareLines

_log = log.get(__name__)


class Positions:
    """Where the client fetches. Only the loop's thread changes it."""

    def __init__(self, client: SourceClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        # The partitions that were removed in this turn, or whose fetch position was set to another
        # offset. What has arrived for their old position is ignored.
        self._moved: set[TopicPartition] = set()
        self._waiting: dict[TopicPartition, MirrorPartition] = {}
        # The source can cause this line again and again.
        self._waits = RareLines("mirror_waits", clock.monotonic, _log.warning)

    def begin_turn(self) -> None:
        """Fetches the partitions again whose wait is over."""
        self._moved.clear()
        now = self._clock.monotonic()
        for each in list(self._waiting.values()):
            if each.retry_at is None or each.retry_at <= now:
                self.seek(each)

    @property
    def deadline(self) -> float | None:
        """The time at which the next wait is over (monotonic seconds)."""
        times = [each.retry_at for each in self._waiting.values()]
        return min((each for each in times if each is not None), default=None)

    def has_moved(self, tp: TopicPartition) -> bool:
        """Returns whether the partition's position was set or removed in this turn."""
        return tp in self._moved

    def seek(self, each: MirrorPartition) -> None:
        """Fetches a partition from its follower's position on."""
        self.remove(each)  # so that the client forgets the partition's old high watermark
        self._client.seek(each.tp, each.follower.position())

    def recheck(self, each: MirrorPartition) -> None:
        """Fetches the partition's last batch, to compare it with the source again."""
        each.follower.interrupted()
        self.seek(each)

    def remove(self, each: MirrorPartition) -> None:
        """Ceases to fetch a partition. If an answer for the old position still arrives, it is
        ignored."""
        each.leave(self.watermark(each))
        self._moved.add(each.tp)
        self._waiting.pop(each.tp, None)
        self._client.remove(each.tp)

    def wait(self, each: MirrorPartition, why: str, *, must_append: bool = False) -> None:
        """Makes a partition wait before it is fetched again. why: the reason, for the status."""
        if each.trouble != why:
            self._waits.tell((each.name, why), partition=each.name, reason=why)
        self.remove(each)
        each.wait(why, self._clock.monotonic(), must_append=must_append)
        self._waiting[each.tp] = each

    def recheck_later(self, each: MirrorPartition, why: str, *, must_append: bool = False) -> None:
        """Makes a partition wait, and then begin by comparing its last batch with the source
        again."""
        each.follower.interrupted()
        self.wait(each, why, must_append=must_append)

    def leader(self, each: MirrorPartition) -> Address | None:
        """Returns the source's broker from which a partition is fetched; None if the source has not
        said which broker leads it."""
        return self._client.cluster.leader(each.tp)

    def watermark(self, each: MirrorPartition) -> int:
        """Returns the newest high watermark of a partition, which may be UNKNOWN."""
        return self._client.high_watermarks.get(each.tp, each.watermark)

    def fresh_watermark(self, each: MirrorPartition) -> int | None:
        """Returns the high watermark that the source has sent since the fetch position was last
        set; None if it has sent none."""
        return self._client.high_watermarks.get(each.tp)
