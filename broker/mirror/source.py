"""Follows one source cluster, inside the broker's loop.

`MirrorSource` works in rounds. Every `mirror.metadata.interval.ms` it asks for the source cluster's
topics (`topics`), and creates a follower for each mirror partition that this broker leads. Between
two rounds it fetches records for the followers.

In a turn of the loop, a MirrorSource does nothing if no data has arrived from its cluster and none
of its deadlines has come. So a broker that mirrors thousands of partitions can still serve its own
clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import random

from skidway import log
from skidway.broker.coordination.store import TooManyGaps
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.mirror import rounds
from skidway.broker.mirror.bounds import Bounds, ask_bounds
from skidway.broker.mirror.follower import Append, LookAgain, NameGap, Phase, Stop, Unverifiable
from skidway.broker.mirror.missed import Missed
from skidway.broker.mirror.partition import UNKNOWN, MirrorPartition
from skidway.broker.mirror.progress import Progress
from skidway.broker.mirror.rounds import Mirroring, Plan
from skidway.broker.mirror.surroundings import Local, SourceClient
from skidway.broker.mirror.topics import SourceTopics
from skidway.broker.partitions.replica import Replica
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.batch import BatchHeader, CorruptBatch, check, read_header
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import Address
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.fetching import Fetched
from skidway.kafka.errors import OffsetOutOfRange
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition
from skidway.rare_lines import RareLines

_log = log.get(__name__)


# This class has many methods, because each kind of answer from the source cluster has its own
# method, and all these methods change the same partitions.
class MirrorSource:
    """One source cluster. Only the loop's thread may use it. In each turn of the loop, `turn` is
    called before the writes if `is_due`, and `written` after the writes if `has_appended`.
    """

    def __init__(
        self,
        mirroring: Mirroring,
        client: SourceClient,
        local: Local,
        clock: Clock,
        jitter: Callable[[], float] = random,
    ) -> None:
        self.topics = SourceTopics(mirroring, local, self._ask, self._follow, clock)
        self.missed = Missed(self._ask, self.topics.leader)
        self.progress = Progress(f"mirror-{mirroring.here}", self._ask, self._offsets)
        self.partitions: dict[TopicPartition, MirrorPartition] = {}
        self.records = 0
        self.bytes = 0
        self.broken = ""
        """The bug that has stopped the mirroring of this source; empty if no bug has stopped it."""
        self._client = client
        self._local = local
        self._clock = clock
        self._jitter = jitter
        self._tickets: dict[int, Callable[[Answer], None]] = {}
        # The partitions that were removed in this turn, or whose fetch position was set to another
        # offset. What has arrived for their old position is ignored.
        self._moved: set[TopicPartition] = set()
        self._appended: dict[MirrorPartition, None] = {}
        self._waiting: dict[TopicPartition, MirrorPartition] = {}
        self._deadline: float | None = None
        # The source can cause each of these lines again and again.
        self._waits = RareLines("mirror_waits", clock.monotonic, _log.warning)
        self._stops = RareLines("mirror_stopped", clock.monotonic, _log.error)
        self._gaps = RareLines("mirror_gap", clock.monotonic, _log.error)
        self._unverifiables = RareLines("mirror_unverifiable", clock.monotonic, _log.warning)

    # The loop calls these methods.

    def begin_round(self) -> None:
        """Asks for the source's topics again."""
        self.topics.begin_round()

    def ready(self, fd: int, readable: bool, writable: bool) -> None:
        """Called when one of the client's descriptors is ready."""
        self._client.ready(fd, readable, writable)

    @property
    def is_due(self) -> bool:
        """Whether `turn` has something to do."""
        if self.broken:
            return False
        if self._client.has_news:
            return True
        return self._deadline is not None and self._clock.monotonic() >= self._deadline

    def turn(self) -> None:
        """Reads the data that has arrived, decides what to do with it, and carries out the
        decisions."""
        self._moved.clear()
        self._try_again()
        self.progress.turn(self._clock.monotonic())
        turn = self._client.turn()
        for fetched in turn.fetched:
            self._take(fetched)
        for tp, error in turn.stopped:
            self._halted(tp, error)
        for tp, why in turn.interrupted.items():
            self._interrupted(tp, why)
        for answer in turn.answers:
            self._tickets.pop(answer.ticket)(answer)

    @property
    def has_appended(self) -> bool:
        """Whether `written` has something to do."""
        return bool(self._appended)

    def written(self) -> None:
        """Called after the writes of a turn of the loop. By now the batches that `turn` has
        appended are in the files, or their appends were undone."""
        appended, self._appended = self._appended, {}
        for each in appended:
            refusal, each.refusal = each.refusal, ""
            if not self._is_current(each):
                self._forget(each)
            elif refusal or each.was_taken_back:
                self._look_anew(each, refusal or "the log refused a write")
            else:
                records, size_bytes = each.written()
                self.records += records
                self.bytes += size_bytes
                if each.retry_at is None:
                    each.went_on(by_append=True)

    def next_deadline(self) -> float | None:
        """Returns the time at which the next turn is due even if no data arrives (monotonic
        seconds).
        """
        if self.broken:
            return None
        times = [each.retry_at for each in self._waiting.values()]
        times.append(self._client.next_deadline)
        if self.partitions:
            times.append(self.progress.due)
        self._deadline = min((each for each in times if each is not None), default=None)
        return self._deadline

    def give_up(self, reason: str) -> None:
        """Stops following this source cluster. The mirror topics keep the records that were
        appended."""
        self.broken = reason
        self._appended = {}
        self._waiting = {}
        self._client.close()

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def lag(self, each: MirrorPartition) -> int | None:
        """Returns how many records of a partition are in the source, but not in the mirror yet;
        None if the number is not known. For a stopped partition, it is the largest possible number.
        """
        follower = each.follower
        if each.is_stopped:
            return self.missed.records(each.tp, follower.same_to)
        watermark = self._watermark(each)
        if watermark == UNKNOWN:
            return None
        # The position is behind the mirror's end if the records in between have expired.
        return max(watermark - max(follower.log_end, follower.position()), 0)

    def kept_back_by(self, each: MirrorPartition) -> str:
        """Returns why the copying of a followed partition waits. Empty if records are being copied,
        if all records are copied, if the partition is stopped, or if the newest plan does not have
        the partition (`is_paused`).
        """
        if each.is_stopped or each.is_paused or self._has_all(each):
            return ""
        if not each.trouble and self._client.cluster.leader(each.tp) is None:
            return "the source has not said which broker leads it"
        return each.trouble

    @property
    def last_failure(self) -> str:
        """A sentence that says why the source did not answer the last request for its topics. If
        the source did answer, the sentence says why the newest failed connection has failed.
        """
        return self.topics.failure or self._client.last_failure

    def _offsets(self) -> dict[TopicPartition, int]:
        """Returns, for each partition, the offset up to which its records are on disk in this
        cluster. Leaves out partitions in a state other than FOLLOWING, and partitions without
        records.
        """
        return {
            tp: each.replica.offset
            for tp, each in self.partitions.items()
            if each.follower.phase is Phase.FOLLOWING and each.replica.offset
        }

    # With these methods, the mirror begins to follow partitions, and ceases to follow them.

    def _ask(
        self, call: Call, then: Callable[[Answer], None], address: Address | None = None
    ) -> None:
        self._tickets[self._client.ask(call, address)] = then

    def _follow(self, plan: Plan) -> None:
        """Follows every partition that is in the plan and that this broker leads, and no other
        partition."""
        wanted: set[TopicPartition] = set()
        for topic, count in plan.follow:
            for number in topic.partitions:
                replica = self._local.replica(TopicPartition(topic.name, number))
                if number < count and replica is not None:
                    tp = TopicPartition(topic.configs[rounds.SOURCE_TOPIC], number)
                    wanted.add(tp)
                    self._follow_partition(tp, replica)
        for tp, each in list(self.partitions.items()):
            if self._local.replica(each.replica.partition) is not each.replica:
                self._forget(each)
            elif tp not in wanted and not each.is_paused:
                each.is_paused = True
                each.follower.interrupted()
                self._remove(each)
        stopped = {tp for tps in plan.unmirrored.values() for tp in tps}
        stopped |= {tp for tp, each in self.partitions.items() if each.is_stopped}
        self.missed.begin_round(stopped)

    def _follow_partition(self, tp: TopicPartition, replica: Replica) -> None:
        known = self.partitions.get(tp)
        if known is not None and known.replica is replica:
            if known.is_paused:
                known.is_paused = False
                if not known.is_stopped:
                    self._seek(known)
            else:
                self._look_at_end(known)
            return
        if known is not None:
            self._forget(known)
        try:
            each = MirrorPartition(tp, replica, Backoff(self._jitter))
        except (DamagedLog, StorageFailed) as error:
            self._local.unreadable(replica, error)
            return
        self.partitions[tp] = each
        if each.follower.log_end > 0 and each.follower.position() == each.follower.log_end:
            self._unverifiable(each, "the mirror's log has no batch left to compare")
        self._seek(each)

    def _look_at_end(self, each: MirrorPartition) -> None:
        """Compares the source's high watermark with the offset from which the mirror fetches, to
        find out whether the source has no batch at this offset. This is necessary because the
        client does not report fetch responses without batches.
        """
        watermark = self._client.high_watermarks.get(each.tp)
        if watermark is not None and not each.is_stopped:
            gap = each.follower.nothing_there(watermark)
            if gap is not None:
                self._carry_out(each, gap)

    # These methods handle the answers of the source.

    def _take(self, fetched: Fetched) -> None:
        each = self.partitions.get(fetched.tp)
        if each is None or fetched.tp in self._moved:
            return
        if not self._is_current(each):
            self._forget(each)
        elif each.follower.phase is Phase.FOLLOWING and not fetched.unbroken:
            self._recheck(each)
        else:
            self._decide(each, fetched)

    def _decide(self, each: MirrorPartition, fetched: Fetched) -> None:
        headers, damage = _whole(fetched.batches)
        at, before = 0, each.follower.phase
        while at < len(headers):
            action = each.follower.fetched(headers[at:])
            if not isinstance(action, Append):
                self._carry_out(each, action)
                break
            at += action.first
            batches = zip(
                fetched.batches[at : at + action.count],
                headers[at : at + action.count],
                strict=True,
            )
            if not self._append(each, list(batches)):
                return
            at += action.count
        if damage and fetched.tp not in self._moved:
            # A batch was damaged in transfer or in the source. The mirror does not append this
            # batch, but fetches it again.
            self._later(each, damage, must_append=True)
        elif before is Phase.CHECKING and each.follower.phase is Phase.FOLLOWING:
            each.went_on(by_append=False)

    def _append(
        self, each: MirrorPartition, batches: Sequence[tuple[memoryview, BatchHeader]]
    ) -> bool:
        self._appended[each] = None
        try:
            each.append(batches, self._clock.time_ms())
        except StorageFailed as error:
            each.refusal = str(error)
            self._local.refused(each.replica)
            return False
        for _, header in batches:
            self._local.appended(each.replica, header)
        return True

    def _interrupted(self, tp: TopicPartition, why: str) -> None:
        each = self.partitions.get(tp)
        if each is None or tp in self._moved:
            return
        if not each.is_stopped:
            each.trouble = why
        if each.follower.phase is Phase.FOLLOWING:
            self._recheck(each)

    def _halted(self, tp: TopicPartition, error: SkidwayError) -> None:
        """Called when the client has stopped fetching a partition because of an error. The client
        fetches the partition again only after its fetch position was set anew."""
        each = self.partitions.get(tp)
        if each is None or tp in self._moved or each.is_stopped:
            return
        if isinstance(error, OffsetOutOfRange):
            self._ask_bounds(each)
        else:
            # A damaged batch stays damaged, although the batch before it can be compared.
            self._later(each, str(error), must_append=isinstance(error, CorruptBatch))

    def _ask_bounds(self, each: MirrorPartition) -> None:
        attempt = each.attempt
        each.tries += 1

        def is_stale() -> bool:
            return not self._is_current(each) or each.attempt != attempt

        def told(bounds: Bounds | str) -> None:
            if isinstance(bounds, str):
                self._later(each, bounds)
            else:
                each.watermark = bounds.end
                self._carry_out(each, each.follower.out_of_range(*bounds))

        leader = self._client.cluster.leader(each.tp)
        ask_bounds(self._ask, each.tp, leader, is_stale=is_stale, told=told)

    # These methods carry out the decisions of followers.

    def _carry_out(self, each: MirrorPartition, action: object) -> None:
        if isinstance(action, NameGap):
            self._name_gap(each, action)
        elif isinstance(action, Stop):
            self._stops.tell(each.name, partition=each.name, reason=action.reason)
            self._remove(each)
        elif isinstance(action, Unverifiable):
            self._unverifiable(each, "the batch below is gone in the source")
            self._seek(each)
        elif isinstance(action, LookAgain):
            if each.tries > 1:
                self._wait(each, "the source does not have the offset where it says it begins")
            else:
                self._seek(each)

    def _unverifiable(self, each: MirrorPartition, reason: str) -> None:
        each.unverifiable = each.follower.log_end
        self._unverifiables.tell(
            (each.name, reason), partition=each.name, offset=each.unverifiable, reason=reason
        )

    def _name_gap(self, each: MirrorPartition, action: NameGap) -> None:
        """Stores durably that offsets are missing (a gap). Batches after the gap are copied only
        when the gap is stored."""
        self._remove(each)
        attempt, partition = each.attempt, each.replica.partition
        gap = Gap(partition.partition, action.first, action.end, action.reason)
        topic = self._local.topics().get(partition.topic)

        def named(error: SkidwayError | None) -> None:
            if not self._is_current(each) or each.attempt != attempt or each.is_stopped:
                return
            if error is None:
                self._gaps.tell(
                    (each.name, gap.first),
                    partition=each.name,
                    first=gap.first,
                    end=gap.end,
                    reason=gap.reason,
                )
                each.follower.gap_named(gap.end)
                self._seek(each)
            elif isinstance(error, TooManyGaps):
                stop = each.follower.stop(str(error), same_to=each.follower.log_end)
                self._carry_out(each, stop)
            else:
                what = f"offsets {gap.first} to {gap.end} are missing ({gap.reason})"
                self._later(each, f"{what} and that cannot be written down: {error}")

        if topic is None:
            self._forget(each)
        else:
            self._local.name_gap(topic, gap, named)

    def _watermark(self, each: MirrorPartition) -> int:
        return self._client.high_watermarks.get(each.tp, each.watermark)

    def _is_current(self, each: MirrorPartition) -> bool:
        """Returns whether a partition is still followed, and its log is still the log that this
        broker serves.
        """
        return (
            self.partitions.get(each.tp) is each
            and self._local.replica(each.replica.partition) is each.replica
        )

    def _has_all(self, each: MirrorPartition) -> bool:
        """Returns whether the mirror has copied all records of the partition, up to the high
        watermark that the source has sent since the fetch position was last set.
        """
        end = each.follower.log_end
        return each.follower.position() == end == self._client.high_watermarks.get(each.tp)

    def _seek(self, each: MirrorPartition) -> None:
        self._remove(each)  # so that the client forgets the partition's old high watermark
        self._client.seek(each.tp, each.follower.position())

    def _remove(self, each: MirrorPartition) -> None:
        self._leave(each)
        each.watermark = self._watermark(each)
        self._client.remove(each.tp)

    def _leave(self, each: MirrorPartition) -> None:
        """Called when the partition will be fetched from another position, or will not be fetched
        any more. If an answer for the old position still arrives, it is ignored.
        """
        each.attempt += 1
        each.retry_at = None
        self._moved.add(each.tp)
        self._waiting.pop(each.tp, None)

    def _recheck(self, each: MirrorPartition) -> None:
        each.follower.interrupted()
        self._seek(each)

    def _forget(self, each: MirrorPartition) -> None:
        self._remove(each)
        if self.partitions.get(each.tp) is each:
            del self.partitions[each.tp]

    def _look_anew(self, each: MirrorPartition, why: str) -> None:
        try:
            each.look_anew()
        except (DamagedLog, StorageFailed) as error:
            self._forget(each)
            self._local.unreadable(each.replica, error)
        else:
            self._later(each, why, must_append=True)

    def _later(self, each: MirrorPartition, why: str, *, must_append: bool = False) -> None:
        """Makes a partition wait before it continues. why: the reason, for the status. After the
        wait, the partition begins by comparing its last batch with the source again.
        """
        each.follower.interrupted()
        self._wait(each, why, must_append=must_append)

    def _wait(self, each: MirrorPartition, why: str, *, must_append: bool = False) -> None:
        if each.trouble != why:
            self._waits.tell((each.name, why), partition=each.name, reason=why)
        self._remove(each)
        each.wait(why, self._clock.monotonic(), must_append=must_append)
        self._waiting[each.tp] = each

    def _try_again(self) -> None:
        now = self._clock.monotonic()
        for each in list(self._waiting.values()):
            if each.retry_at is None or each.retry_at <= now:
                self._seek(each)


def _whole(batches: Sequence[memoryview]) -> tuple[list[BatchHeader], str]:
    headers: list[BatchHeader] = []
    try:
        for batch in batches:
            header = read_header(batch)
            check(batch, 0, header)
            headers.append(header)
    except CorruptBatch as error:
        return headers, f"a batch arrived damaged: {error}"
    return headers, ""
