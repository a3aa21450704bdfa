"""Finds the buckets that the collector may delete from its store. These buckets are older than
`keep.days`, and are complete or accepted.

`OldBuckets` judges old buckets on a thread of its own: first all buckets with the oldest start,
then all buckets with the next start, and so on. The thread has its own connection to the ledger,
and only reads. The collecting thread, which is the ledger's only writer, takes a few of the buckets
that were found, and deletes them. A late line may change a bucket after it was judged. So the
collecting thread deletes a bucket only if the bucket's counts have not changed since then.

A bucket that is neither complete nor accepted stays until somebody accepts it. Until then, reports
say that its topic is complete only up to this bucket. If the bucket belongs to a topic of rejects
(`<topic>.rejected`), the bucket of `<topic>` with the same start stays, too, because the share of
rejects depends on both buckets.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from queue import Empty, Full, Queue

from skidway import log
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import FOREVER, Evidence
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.judgement.clocks import present_ms
from skidway.audit.judgement.completeness import is_good
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.clock import Clock
from skidway.errors import SkidwayError

DAY_MS = 86_400_000
SETTLED_AFTER_MS = 2 * DAY_MS
"""When a message is older than this, its digest (a short hash) can be deleted. Most seals that are
older than this can be deleted, too."""

DELETED_MAX = 20
"""The collecting thread deletes at most this many buckets at a time."""

WAITING_MAX = 200
"""At most this many buckets wait for their deletion."""

AGAIN_S = 21_600.0
"""The old buckets that were not deleted are judged again after this many seconds, because somebody
may have accepted them."""

PAUSE_S = 10.0
CLOCK_S = 600.0
"""At this interval, in seconds, the thread computes the time before which buckets are old. The
thread does this for the first time when this interval has passed since the start of the collector,
because by then the collector knows whether its own clock is right.
"""

SHARE = 20
"""Judging old buckets takes at most a twentieth of a core."""

_log = log.get(__name__)


class OldBuckets:
    """Finds old buckets that may be deleted. One thread calls `look`, and owns the connection
    `ledger`. Another thread calls `take`. before_ms: buckets that end before this time are old;
    None as long as the time is not known. settled_ms: digests (short hashes) of messages, and most
    seals, can be deleted if they are from before this time. stopping: an event that is set when the
    program ends."""

    def __init__(
        self,
        ledger: Ledger,
        policy: Callable[[], Policy],
        clock: Clock,
        days: int,
        stopping: threading.Event | None = None,
    ) -> None:
        self._ledger = ledger
        self._policy = policy
        self._clock = clock
        self._keep_ms = days * DAY_MS
        self._stopping = stopping or threading.Event()
        self._found: Queue[OldBucket] = Queue(WAITING_MAX)
        self._after = FOREVER[0]
        self._again_at = clock.monotonic() + AGAIN_S
        self._clock_at = clock.monotonic() + CLOCK_S
        self.before_ms: int | None = None
        self.settled_ms: int | None = None

    def take(self) -> list[OldBucket]:
        """Returns at most DELETED_MAX buckets to delete, and forgets them."""
        found: list[OldBucket] = []
        while len(found) < DELETED_MAX:
            try:
                found.append(self._found.get_nowait())
            except Empty:
                break
        return found

    def look(self) -> bool:
        """Judges all old buckets that have the same start; each call takes the next start. (A
        bucket is old if it ends before `before_ms`.) Puts the buckets that may be deleted into a
        queue for `take`. Returns false if there is no further start, or as long as `before_ms` is
        not known."""
        now = self._clock.monotonic()
        if now >= self._again_at:
            self._after, self._again_at = FOREVER[0], now + AGAIN_S
        if now >= self._clock_at and not self._ledger.rebuilding:
            self._clock_at = now + CLOCK_S
            now_ms = self._now_ms()
            self.before_ms, self.settled_ms = now_ms - self._keep_ms, now_ms - SETTLED_AFTER_MS
        if self.before_ms is None:
            return False
        start = self._ledger.next_bucket(self._after, self.before_ms)
        if start is None:
            return False
        self._after = start
        for each in self._old(self._ledger.evidence((start, start + 1)), self.before_ms):
            self._put(each)
        return True

    def _now_ms(self) -> int:
        """Returns the present time, from which the age of buckets and messages is counted. If the
        newest time in the senders' messages is earlier, returns that time, so that nothing is
        deleted only because the audit's clock is ahead. The result is at least the start of FOREVER
        (the window of all buckets). So SQLite can still store the result after some days are
        subtracted from it."""
        evidence = self._ledger.evidence(NO_BUCKETS)
        present = present_ms(evidence, self._policy(), self._clock.time_ms())
        heard = max(evidence.last_seen.values(), default=FOREVER[0])
        return max(min(present, heard), FOREVER[0])

    def _old(self, evidence: Evidence, before_ms: int) -> Iterator[OldBucket]:
        found = verdicts(evidence, self._policy(), self._clock.time_ms())
        kept = {(x.source.cluster, x.source.topic, x.bucket) for x in found if not is_good(x)}
        for verdict in found:
            source, start, size = verdict.source, verdict.bucket, verdict.bucket_ms
            tallies = evidence.topic(source).tallies.get((start, size))
            # The first bucket is never old: records whose times have no date still come into it.
            is_old = start > 0 and start + size <= before_ms and not start % size
            is_kept = (source.cluster, source.topic + REJECTED_SUFFIX, start) in kept
            if isinstance(tallies, BucketTallies) and is_old and is_good(verdict) and not is_kept:
                yield OldBucket(verdict.source, start, size, digest_of(tallies.columns))

    def _put(self, each: OldBucket) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(Full):
                self._found.put(each, timeout=1.0)
                return


@contextlib.contextmanager
def looking(old: OldBuckets, clock: Clock, stopping: threading.Event) -> Iterator[None]:
    """Finds old buckets (`OldBuckets.look`) on a thread of its own while the `with` block runs."""

    def run() -> None:
        while not stopping.is_set():
            began, has_more = clock.monotonic(), False
            try:
                has_more = old.look()
            except SkidwayError as error:
                _log.error("pruning_interrupted", reason=str(error))
            taken_s = clock.monotonic() - began
            stopping.wait(SHARE * taken_s if has_more else PAUSE_S)

    thread = threading.Thread(target=run, name="old-buckets", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
