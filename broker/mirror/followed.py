"""The followed partitions of one source. Takes what arrives for them, and has the decisions of
their followers carried out: by `positions`, by their logs, or by the caller, if the source is to be
asked or a gap is to be stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skidway import log
from skidway.broker.catalog import Topic
from skidway.broker.coordination.store import TooManyGaps
from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.mirror.bounds import BoundsQuestion, answered_bounds, ask_bounds
from skidway.broker.mirror.follower import Action, LookAgain, NameGap, Phase, Stop, Unverifiable
from skidway.broker.mirror.partition import Attempt, MirrorPartition
from skidway.broker.mirror.positions import Positions
from skidway.broker.mirror.rounds import SOURCE_TOPIC, Plan
from skidway.broker.mirror.surroundings import Ask, Local
from skidway.broker.partitions.replica import Replica
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.fetching import Fetched
from skidway.kafka.errors import OffsetOutOfRange
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition
from skidway.rare_lines import RareLines

_log = log.get(__name__)


class GapFound(NamedTuple):
    """Asks the caller to store a gap (missing offsets) durably, and then to call `gap_named`.
    Batches after the gap are copied only when the gap is stored."""

    topic: Topic
    gap: Gap
    attempt: Attempt


Output = Ask[BoundsQuestion] | GapFound


class Followed:
    """The mirror partitions of one source that this broker leads. Only the loop's thread may use
    it; other threads may read `partitions`, `records` and `bytes`. The methods that take what has
    arrived return what the caller has to do."""

    def __init__(
        self, positions: Positions, local: Local, clock: Clock, jitter: Callable[[], float]
    ) -> None:
        self.partitions: dict[TopicPartition, MirrorPartition] = {}
        self.records = 0
        self.bytes = 0
        self._positions = positions
        self._local = local
        self._clock = clock
        self._jitter = jitter
        self._appended: dict[MirrorPartition, None] = {}
        # The source can cause each of these lines again and again.
        self._stops = RareLines("mirror_stopped", clock.monotonic, _log.error)
        self._gaps = RareLines("mirror_gap", clock.monotonic, _log.error)
        self._unverifiables = RareLines("mirror_unverifiable", clock.monotonic, _log.warning)

    def follow(self, plan: Plan) -> list[Output]:
        """Follows every partition that is in the plan and that this broker leads, and no other
        partition."""
        wanted: set[TopicPartition] = set()
        for topic, count in plan.follow:
            for number in topic.partitions:
                replica = self._local.replica(TopicPartition(topic.name, number))
                if number < count and replica is not None:
                    tp = TopicPartition(topic.configs[SOURCE_TOPIC], number)
                    wanted.add(tp)
                    self._follow_partition(tp, replica)
        for tp, each in list(self.partitions.items()):
            if self._local.replica(each.replica.partition) is not each.replica:
                self._forget(each)
            elif tp not in wanted and not each.is_paused:
                each.is_paused = True
                each.follower.interrupted()
                self._positions.remove(each)
        known = list(self.partitions.values())
        return [output for each in known for output in self._look_at_end(each)]

    def offsets(self) -> dict[TopicPartition, int]:
        """Returns, for each partition, the offset up to which its records are on disk in this
        cluster. Leaves out partitions in a state other than FOLLOWING, and partitions without
        records.
        """
        return {
            tp: each.replica.offset
            for tp, each in self.partitions.items()
            if each.follower.phase is Phase.FOLLOWING and each.replica.offset
        }

    # These methods take what arrives for the partitions.

    def fetched(self, fetched: Fetched) -> list[Output]:
        """Appends the batches that have arrived, as far as the follower says so."""
        each = self._at_position(fetched.tp)
        if each is None:
            return []
        if not self._is_current(each):
            self._forget(each)
            return []
        if each.follower.phase is Phase.FOLLOWING and not fetched.unbroken:
            self._positions.recheck(each)
            return []
        headers, rest = each.copy(fetched.batches, self._clock.time_ms())
        if headers or each.refusal:
            self._appended[each] = None
        for header in headers:
            self._local.appended(each.replica, header)
        if each.refusal:
            self._local.refused(each.replica)
        return self._carry_out(each, rest)

    def interrupted(self, tp: TopicPartition, why: str) -> None:
        """Called when the partition's next batches may come from another log."""
        each = self._at_position(tp)
        if each is None:
            return
        if not each.is_stopped:
            each.trouble = why
        if each.follower.phase is Phase.FOLLOWING:
            self._positions.recheck(each)

    def halted(self, tp: TopicPartition, error: SkidwayError) -> list[Output]:
        """Called when the client has stopped fetching a partition because of an error. The client
        fetches the partition again only after its fetch position was set anew."""
        each = self._at_position(tp)
        if each is None or each.is_stopped:
            return []
        if isinstance(error, OffsetOutOfRange):
            each.tries += 1
            attempt, leader = Attempt(each, each.attempt), self._positions.leader(each)
            return [ask_bounds(BoundsQuestion([tp], leader, attempt))]
        # A damaged batch stays damaged, although the batch before it can be compared.
        is_damaged = isinstance(error, CorruptBatch)
        self._positions.recheck_later(each, str(error), must_append=is_damaged)
        return []

    def bounds_answered(
        self, attempt: Attempt, question: BoundsQuestion, answer: Answer
    ) -> list[Output]:
        """Takes the source's answer to the question where a partition begins or ends."""
        each = attempt.partition
        if attempt.number != each.attempt or not self._is_current(each):
            return []
        told = answered_bounds(question, answer)
        if isinstance(told, Ask):
            return [told]
        bounds = told[each.tp]
        if isinstance(bounds, str):
            self._positions.recheck_later(each, bounds)
            return []
        each.watermark = bounds.end
        return self._carry_out(each, each.follower.out_of_range(*bounds))

    def gap_named(self, found: GapFound, error: SkidwayError | None) -> None:
        """Called when a gap is stored, or could not be stored."""
        gap, (each, attempt) = found.gap, found.attempt
        if attempt != each.attempt or not self._is_current(each) or each.is_stopped:
            return
        if error is None:
            told = gap._asdict() | {"partition": each.name}
            self._gaps.tell((each.name, gap.first), **told)
            each.follower.gap_named(gap.end)
            self._positions.seek(each)
        elif isinstance(error, TooManyGaps):
            self._carry_out(each, each.follower.stop(str(error), same_to=each.follower.log_end))
        else:
            what = f"offsets {gap.first} to {gap.end} are missing ({gap.reason})"
            why = f"{what} and that cannot be written down: {error}"
            self._positions.recheck_later(each, why)

    @property
    def has_appended(self) -> bool:
        """Whether `written` has something to do."""
        return bool(self._appended)

    def written(self) -> None:
        """Called after the writes of a turn of the loop. By now the appended batches are in the
        files, or their appends were undone."""
        appended, self._appended = self._appended, {}
        for each in appended:
            if not self._is_current(each):
                self._forget(each)
                continue
            written = each.written()
            if isinstance(written, str):
                self._look_anew(each, written)
            else:
                self.records += written[0]
                self.bytes += written[1]

    # These methods carry out decisions.

    def _follow_partition(self, tp: TopicPartition, replica: Replica) -> None:
        known = self.partitions.get(tp)
        if known is not None and known.replica is replica:
            if known.is_paused:
                known.is_paused = False
                if not known.is_stopped:
                    self._positions.seek(known)
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
        self._positions.seek(each)

    def _look_at_end(self, each: MirrorPartition) -> list[Output]:
        """Compares the source's high watermark with the offset from which the mirror fetches, to
        find out whether the source has no batch at this offset. This is necessary because the
        client does not report fetch responses without batches.
        """
        watermark = self._positions.fresh_watermark(each)
        if watermark is None or each.is_stopped:
            return []
        return self._carry_out(each, each.follower.nothing_there(watermark))

    def _carry_out(self, each: MirrorPartition, action: Action | str | None) -> list[Output]:
        if isinstance(action, NameGap):
            return self._found(each, action)
        if isinstance(action, Stop):
            self._stops.tell(each.name, partition=each.name, reason=action.reason)
            self._positions.remove(each)
        elif isinstance(action, Unverifiable):
            self._unverifiable(each, "the batch below is gone in the source")
            self._positions.seek(each)
        elif isinstance(action, LookAgain):
            if each.tries > 1:
                why = "the source does not have the offset where it says it begins"
                self._positions.wait(each, why)
            else:
                self._positions.seek(each)
        elif isinstance(action, str):
            # The mirror does not append the damaged batch, but fetches it again.
            self._positions.recheck_later(each, action, must_append=True)
        return []

    def _found(self, each: MirrorPartition, action: NameGap) -> list[Output]:
        self._positions.remove(each)
        partition = each.replica.partition
        topic = self._local.topics().get(partition.topic)
        if topic is None:
            self._forget(each)
            return []
        gap = Gap(partition.partition, action.first, action.end, action.reason)
        return [GapFound(topic, gap, Attempt(each, each.attempt))]

    def _unverifiable(self, each: MirrorPartition, reason: str) -> None:
        each.unverifiable = each.follower.log_end
        self._unverifiables.tell(
            (each.name, reason), partition=each.name, offset=each.unverifiable, reason=reason
        )

    def _look_anew(self, each: MirrorPartition, why: str) -> None:
        try:
            each.look_anew()
        except (DamagedLog, StorageFailed) as error:
            self._forget(each)
            self._local.unreadable(each.replica, error)
        else:
            self._positions.recheck_later(each, why, must_append=True)

    def _at_position(self, tp: TopicPartition) -> MirrorPartition | None:
        """Returns the partition for which something has arrived; None if what has arrived is for a
        position that it has left."""
        return None if self._positions.has_moved(tp) else self.partitions.get(tp)

    def _is_current(self, each: MirrorPartition) -> bool:
        """Returns whether a partition is still followed, and its log is still the log that this
        broker serves.
        """
        return (
            self.partitions.get(each.tp) is each
            and self._local.replica(each.replica.partition) is each.replica
        )

    def _forget(self, each: MirrorPartition) -> None:
        self._positions.remove(each)
        if self.partitions.get(each.tp) is each:
            del self.partitions[each.tp]
