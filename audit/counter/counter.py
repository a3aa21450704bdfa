"""The counter of a tier reads the record headers of topics up to their high watermarks, counts the
records, and reports the counts. If a transaction is open, the last stable offset takes the place of
the high watermark. Records of aborted transactions are not counted, but their number is reported.

    metadata --> topics and their sources --> positions
    fetch ----> continuity ----> marks ----> counts        in memory, until the next commit
    commit ---> offsets, marks, numbers, deltas            one transaction
    outbox ---> _skidway_audit                             acks=all

The module continuity checks that no batch is missing between two counted batches. The counter is
an ordinary consumer, so it works with Skidway's broker and with Apache Kafka, and the broker need
not understand the records. Like the loader, the counter recognizes repeats by marks
(`counts.marks`) and drops them, so it counts unique records.

One thread owns the whole counter. If the counter cannot count a partition further, it stops
counting this partition, and /health and a note to the audit name the partition. This happens, for
example, if a batch is damaged, or if the log has another batch in place of the batch that was
counted last. The counter still counts the other partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prometheus_client import Counter as Metric
from prometheus_client import Gauge

from skidway import log
from skidway.audit.counter import continuity, counted_until
from skidway.audit.counter.batch_runs import Run, Runs
from skidway.audit.counter.continuity import Following, Step
from skidway.audit.counter.counted_topics import NOT_CHOSEN, CountedTopics, TopicsUncertain
from skidway.audit.counter.counted_until import NEVER, CountedUntil
from skidway.audit.counter.state import CounterState, PartitionId, Progress
from skidway.audit.counter.transactions import CountedTransactions, Known
from skidway.audit.counts import marks
from skidway.audit.counts.counts import Counts, identify
from skidway.audit.counts.deltas import number_deltas
from skidway.audit.counts.marks import FileKey
from skidway.audit.settings import CounterSettings
from skidway.audit.topic.messages import Gap, Heartbeat, Range, Sender, Tier, encode
from skidway.clock import Clock
from skidway.errors import Unreachable
from skidway.host_name import host_name
from skidway.kafka import gaps
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import EARLIEST, LATEST, Client, Fetched, Fetcher
from skidway.kafka.compaction import COMPACTED
from skidway.kafka.errors import KafkaError, OffsetOutOfRange
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.telemetry import Health

_log = log.get(__name__)

_BOUNDS = (EARLIEST, LATEST)

_RECORDS = Metric("skidway_audit_counted_records_total", "Records counted, without repeats.")
_ABORTED = Metric("skidway_audit_aborted_records_total", "Records of aborted transactions.")
_REPEATS = Metric("skidway_audit_repeated_records_total", "Records seen again and not counted.")
_GAPS = Metric("skidway_audit_gaps_total", "Named gaps and doubts in logs.")
_STOPPED = Gauge("skidway_audit_stopped_partitions", "Partitions that cannot be counted further.")
_LAG = Gauge("skidway_audit_counter_lag_records", "Records between positions and watermarks.")


@dataclass(slots=True)
class _Counted:
    """One partition that is being counted. durable: up to which offset its counts are durable.
    stopped: why the partition cannot be counted further; empty while it can be counted."""

    source: Source
    following: Following
    marks: dict[FileKey, int]
    aborted: int
    until: CountedUntil
    durable: int
    watermark: int = 0
    stopped: str = ""


class Counter:
    """Counts the records in one cluster's topics, for one tier."""

    def __init__(
        self, settings: CounterSettings, client: Client, fetcher: Fetcher, state: CounterState,
        clock: Clock,
    ) -> None:  # fmt: skip
        self._settings = settings
        self._client = client
        self._fetcher = fetcher
        self._state = state
        self._clock = clock
        tier, host = Tier(settings.tier.upper()), host_name(settings.host_name)
        self.sender = Sender(tier, settings.cluster, settings.producer_name, host, state.epoch)
        self._transactions = CountedTransactions(self.sender, clock)
        self._partitions: dict[TopicPartition, _Counted] = {}
        self._topics = CountedTopics(client, settings.topics, tier, settings.cluster)
        self._left_out: Mapping[Source, str] = {}
        self._unread: Mapping[str, str] = {}
        self._runs, self._counts = Runs(), Counts(settings.bucket_ms)
        self._ranges: dict[PartitionId, tuple[int, int]] = {}
        self._gaps: list[Gap] = []
        self._progress = Progress()
        self._seek_again, self._failure = False, ""
        self._health = Health(True)
        self._commit_at = self._refresh_at = clock.monotonic()
        self._beat_at = clock.monotonic() + settings.heartbeat_interval_ms / 1000
        self._refreshed = NEVER  # every partition that was there at this time is counted
        self._not_refreshed = ""  # why the last refresh has failed

    def turn(self, timeout_ms: int, *wake: int) -> None:
        """Finds new topics if a refresh is due, counts the records that have arrived, and commits
        if a commit is due."""
        now = self._clock.monotonic()
        if now >= self._refresh_at:
            self._refresh_at = now + self._settings.metadata_max_age_ms / 1000
            try:
                self.refresh()
            except (KafkaError, TopicsUncertain, Unreachable) as error:  # the next one asks again
                self._not_refreshed = str(error)
                if isinstance(error, Unreachable):
                    raise
                _log.warning("topics_not_refreshed", reason=str(error))
                self._fetch_again()
        self._fetch(timeout_ms, *wake)
        if self._clock.monotonic() >= self._commit_at:
            self._commit_at = self._clock.monotonic() + self._settings.commit_interval_ms / 1000
            self.commit()
            self._health = self._examine()

    def heartbeat(self) -> bytes | None:
        """Returns the bytes of a heartbeat if a heartbeat is due; otherwise None. Unlike a delta, a
        heartbeat is not stored in the outbox before it is sent. Call this method only while the
        outbox is empty: the heartbeat says up to when the published counts have all records."""
        if self._clock.monotonic() < self._beat_at:
            return None
        self._beat_at = self._clock.monotonic() + self._settings.heartbeat_interval_ms / 1000
        self._look()
        now, now_ms = self._clock.monotonic(), self._clock.time_ms()
        least = NEVER if self._unread else self._refreshed
        found = dict.fromkeys(self._left_out, now_ms)
        for x in self._partitions.values():
            lag_ms = counted_until.lag_ms(min(x.until.time, least), now, now_ms)
            found[x.source] = max(found.get(x.source, 0), lag_ms)
        lags = counted_until.lags(found, counted_until.lag_ms(least, now, now_ms))
        return encode(Heartbeat(self.sender, self._state.number, now_ms, *lags))

    def transactions_note(self) -> bytes | None:
        """Returns the bytes of the note about transactions if one is due; otherwise None."""
        if not self._transactions.is_due:
            return None
        known = {
            (x.source, tp): Known(
                x.aborted, self._until_ms(x), x.following.position.next_offset, x.stopped
            )
            for tp, x in self._partitions.items()
        }
        for source, reason in self._left_out.items():
            known[source, TopicPartition(source.topic, 0)] = Known(0, 0, 0, reason)
        return self._transactions.note(self._state.number, known, self._fetcher.open_transactions)

    def refresh(self) -> None:
        """Begins to count new partitions, and stops counting deleted partitions. The partitions of
        a topic that was deleted and created again count as deleted, and then as new. If the brokers
        do not agree about the topics, changes nothing: the counter counts the same partitions as
        before, and does not vouch for what comes later."""
        asked = self._clock.monotonic()
        wanted, self._left_out, self._unread = self._topics.look(self._state.sources)
        for tp in [tp for tp, x in self._partitions.items() if wanted.get(tp) != x.source]:
            self._forget(tp)
        self._fetch_again()
        for tp, source in wanted.items():
            if tp not in self._partitions:
                self._begin(tp, source)
        self._refreshed, self._not_refreshed = asked, ""

    def commit(self) -> None:
        """Stores positions, marks and the deltas of the records that were counted since the last
        commit, in one transaction."""
        for x in self._partitions.values():
            x.durable = x.following.position.next_offset
        self._look()
        if not self._progress.positions:
            return
        previous = self._state.touched(key for key, _ in self._counts.items())
        numbered = number_deltas(
            self.sender,
            self._clock.time_ms(),
            self._state.number,
            self._counts,
            previous,
            ranges=[Range(*key, *span) for key, span in self._ranges.items()],
            gaps=self._gaps,
        )
        self._state.commit(self._progress, numbered.deltas, numbered.touched)
        self._counts.clear()
        self._ranges, self._gaps, self._progress = {}, [], Progress()

    @property
    def lag(self) -> int:
        """The number of records between the counter's positions and the high watermarks."""
        return sum(
            max(0, x.watermark - x.following.position.next_offset)
            for x in self._partitions.values()
        )

    @property
    def topics(self) -> dict[str, Source]:
        """For each counted topic, by its name in this cluster: the source topic, that is, the topic
        and the cluster to which agents sent the records."""
        return {tp.topic: x.source for tp, x in self._partitions.items()}

    @property
    def health(self) -> Health:
        """Whether the cluster answers and every partition can be counted. `turn` computes this
        value when a commit is due, and `is_away` changes it. Any thread may read it.
        """
        return self._health

    def is_away(self, reason: str) -> None:
        """Notes, for `health`, that the cluster does not answer, and why (`reason`). The next turn
        asks the cluster again.
        """
        _log.error("cluster_unreachable", reason=reason)
        self._health = Health(False, {"unreachable": reason})

    def _look(self) -> None:
        """Notes up to when each partition is counted. A partition that cannot be counted further
        keeps its time, so its topic does too."""
        for tp, x in self._partitions.items():
            if x.stopped or x.following.comparing:
                continue
            end = self._fetcher.ends.get(tp)
            if end is not None:
                x.until.answered(end.asked, end.high_watermark)
            x.until.counted(x.durable)

    def _until_ms(self, counted: _Counted) -> int:
        now_ms = self._clock.time_ms()
        return now_ms - counted_until.lag_ms(counted.until.time, self._clock.monotonic(), now_ms)

    def _begin(self, tp: TopicPartition, source: Source) -> None:
        key = (source, tp.partition)
        following = continuity.resumed(self._state.position(key))
        marks, aborted = self._state.marks(key), self._state.aborted(key)
        durable = following.position.next_offset
        self._partitions[tp] = _Counted(source, following, marks, aborted, CountedUntil(), durable)
        self._fetcher.seek(tp, following.fetch_offset)
        _log.info("partition_followed", partition=str(tp), offset=following.fetch_offset)

    def _forget(self, tp: TopicPartition) -> None:
        self.commit()  # if the partition comes back, counting goes on from the stored position
        del self._partitions[tp]
        self._fetcher.remove(tp)
        _log.info("partition_gone", partition=str(tp))

    # Records.

    def _fetch(self, timeout_ms: int, *wake: int) -> None:
        try:
            for part in self._fetcher.poll(timeout_ms, *wake):
                self._count(part)
        except OffsetOutOfRange as error:
            self._out_of_range(error)
        except (KafkaError, CorruptBatch) as error:
            self._failed(error)
        finally:
            for tp in self._fetcher.take_interruptions():
                self._compare_again(tp)

    def _compare_again(self, tp: TopicPartition) -> None:
        """Reads the last counted batch again, and goes on only if it is the same: after an
        interruption, the broker may have another log."""
        counted = self._partitions.get(tp)
        if counted is None or counted.stopped or counted.following.comparing:
            return
        counted.following = continuity.resumed(counted.following.position)
        if counted.following.comparing:
            self._fetcher.seek(tp, counted.following.fetch_offset)

    def _count(self, part: Fetched) -> None:
        counted = self._partitions.get(part.tp)
        if counted is None or counted.stopped:
            return
        if not part.unbroken:
            was_comparing = counted.following.comparing
            self._compare_again(part.tp)
            if counted.following.comparing and not was_comparing:
                return
        counted.watermark = part.high_watermark
        try:
            for run in self._runs.of(counted.following, part.batches):
                self._count_run(part.tp, counted, run)
        except CorruptBatch as error:
            self._stop(part.tp, counted, f"a batch is damaged: {error}")
        except (Unreachable, KafkaError) as error:  # reading a gap's reason failed
            self._fetcher.remove(part.tp)
            self._failed(error)

    def _count_run(self, tp: TopicPartition, counted: _Counted, run: Run) -> None:
        first = self._explained(tp, run.first)
        self._take(tp, counted, first)
        if run.records is None:
            return
        if run.last is not run.first:
            self._take(tp, counted, run.last)
        if run.aborted:
            counted.aborted += run.aborted
            self._progress.aborted[counted.source, tp.partition] = counted.aborted
            _ABORTED.inc(run.aborted)
        offsets, timestamps, own, has_origin = run.records
        origins = identify(own, has_origin, tp.partition, offsets)
        walked = marks.walk(
            origins.agent, origins.file, origins.first, origins.length, counted.marks
        )
        self._counts.add(
            counted.source,
            timestamps,
            origins,
            keep=walked.keep,
            straddle=walked.straddle,
            repeat=walked.repeat,
        )
        moved = marks.advance(counted.marks, walked.highest)
        self._progress.marks.setdefault((counted.source, tp.partition), {}).update(moved)
        repeats = int(walked.repeat.sum())
        _RECORDS.inc(len(offsets) - repeats)
        _REPEATS.inc(repeats)

    def _explained(self, tp: TopicPartition, step: Step) -> Step:
        """Returns the step. If the step has a gap (missing offsets) that the mirror has reported,
        the returned step has the mirror's reason instead of its own."""
        if step.gap is None or step.gap[0] == step.gap[1]:
            return step
        known = gaps.named_by_mirrors(self._client, [tp.topic])[tp.topic]
        named = gaps.reason(known, tp.partition, *step.gap)
        return step if named is None else replace(step, reason=f"the mirror named them: {named}")

    def _take(self, tp: TopicPartition, counted: _Counted, step: Step) -> None:
        """Applies a step to its partition. If the step says that the partition cannot be counted
        further, stops counting it. If not, notes, for the next commit, the step's gap, the range of
        offsets that the step covers, and the partition's new position.
        """
        if step.stop:
            self._stop(tp, counted, step.stop)
            return
        key = (counted.source, tp.partition)
        before = counted.following.position.next_offset
        after = step.following.position.next_offset
        if step.gap is not None:
            self._gaps.append(Gap(counted.source, tp.partition, *step.gap, step.reason))
            _GAPS.inc()
            _log.warning("gap_named", partition=str(tp), offsets=step.gap, reason=step.reason)
        counted.following = step.following
        if after > before:  # a range may span a gap, which is reported separately
            first, _ = self._ranges.get(key, (before, before))
            self._ranges[key] = (first, after)
        if after > before or step.gap is not None:
            self._progress.positions[key] = step.following.position

    # Errors.

    def _out_of_range(self, error: OffsetOutOfRange) -> None:
        counted = self._partitions.get(error.tp)
        if counted is None:
            return
        try:
            asked = {at: self._client.list_offsets({error.tp: at})[error.tp] for at in _BOUNDS}
            first, end = (asked[at].offset for at in _BOUNDS)
            found = continuity.out_of_range(counted.following, first, end)
            step = self._explained(error.tp, found)
        except (Unreachable, KafkaError) as failure:
            self._failed(failure)
            if isinstance(failure, Unreachable):
                raise
            return
        self._take(error.tp, counted, step)
        if not counted.stopped:
            self._fetcher.seek(error.tp, counted.following.fetch_offset)

    def _failed(self, error: KafkaError | CorruptBatch | Unreachable) -> None:
        """Notes that the fetcher has stopped fetching a partition. Therefore, when the next refresh
        is due, `_fetch_again` tells the fetcher from which offset to fetch each partition."""
        _log.error("partition_failed", reason=str(error))
        self._seek_again, self._failure = True, str(error)

    def _fetch_again(self) -> None:
        if self._seek_again:
            for tp, x in self._partitions.items():
                if not x.stopped:
                    self._fetcher.seek(tp, x.following.fetch_offset)
        self._seek_again, self._failure = False, ""

    def _stop(self, tp: TopicPartition, counted: _Counted, reason: str) -> None:
        counted.stopped = reason
        self._fetcher.remove(tp)
        _log.error("partition_stopped", partition=str(tp), reason=reason)

    def _examine(self) -> Health:
        stopped = {str(tp): x.stopped for tp, x in self._partitions.items() if x.stopped}
        left_out = {
            f"{source.topic} of {source.cluster}": reason
            for source, reason in self._left_out.items()
            if reason not in (COMPACTED, NOT_CHOSEN)
        }
        _STOPPED.set(len(stopped))
        _LAG.set(self.lag)
        detail = {
            "tier": self.sender.tier.value.lower(),
            "partitions": len(self._partitions),
            "lag_records": self.lag,
            "outbox_messages": self._state.outbox_size,
            "stopped": stopped,
            "failed": self._failure,
            "compacted": self._topics.compacted,
            "unread": dict(self._unread),
            "left_out": left_out,
            "not_refreshed": self._not_refreshed,
            "open_transactions": self._transactions.long_open(self._fetcher.open_transactions),
        }
        wrong = stopped or self._failure or self._unread or left_out or self._not_refreshed
        return Health(not wrong, detail)
