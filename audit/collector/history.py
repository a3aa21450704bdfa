"""Decides, without I/O, which rows the history of verdicts gets. The history says since when a
bucket has had its verdict, and why the verdict changed.

A bucket gets a row when the word that reports print for the bucket changes. If the first verdict on
a bucket is `open`, this verdict gets no row, so most buckets have a single row: `complete`. If a
bucket was complete and is not complete any more, the row of its new verdict has a cause: which tier
has counted more records than before, and from which host these records came.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.kafka.source import Source

REASONS_MAX, REASON_LENGTH_MAX = 3, 200
CAUSES_MAX = 3
WARNED = "warned"
KEPT_MAX = 300_000
"""Memory holds at most this many counts of complete buckets (one count for each host and tier). If
a bucket is no longer complete and its earlier counts are not in memory, the history can name the
tier that counted more records than before, but not the host of these records.
"""

Key = tuple[Source, int, int]
"""The topic of a bucket, and the bucket's start and size in ms."""
Counts = Mapping[tuple[str, str], int]
"""The number of records by (tier, host whose agent sent them). The host is "" for the sum of all
hosts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a bucket's history: a verdict. revision: the row's number in its bucket's history,
    from 1 on. time_ms: when the bucket was judged, by the audit's clock. word: the verdict as
    reports print it. is_complete: whether the verdict's status is `complete`. totals: the number of
    records by tier.
    """

    revision: int
    time_ms: int
    word: str
    is_complete: bool
    reasons: tuple[str, ...] = ()
    cause: str = ""
    totals: Mapping[str, int] | None = None


def noted(
    last: Row | None, verdict: BucketVerdict, time_ms: int, before: Counts | None = None
) -> Row | None:
    """Returns the row to append after `last` (the bucket's newest row; None if it has no row).
    Returns None if reports print the same word for the verdict as for `last`. Also returns None if
    there is no `last` and the verdict is `open`. before: the counts by tier and host from the last
    time when the bucket was judged complete; None if they are not known.
    """
    word, is_complete = word_of(verdict), verdict.status is Status.COMPLETE
    if word == (Status.OPEN.word if last is None else last.word):
        return None
    totals, cause = totals_of(verdict), ""
    if last is not None and last.is_complete and not is_complete:
        cause = _cause(before, verdict, last.totals or {}, totals)
    reasons = tuple(shortened(x) for x in verdict.words[:REASONS_MAX])
    revision = 1 if last is None else last.revision + 1
    return Row(revision, time_ms, word, is_complete, reasons, shortened(cause), totals)


def word_of(verdict: BucketVerdict) -> str:
    """Returns the verdict as reports print it, for example `complete`, `warned`, or `lost,
    accepted`."""
    if verdict.is_warned:
        return WARNED
    return f"{WARNED}, accepted" if verdict.is_warned_and_accepted else verdict.word


def counts_of(verdict: BucketVerdict) -> dict[tuple[str, str], int]:
    """Returns the number of records by tier and host. If a tier counts in several places, takes for
    each agent the greatest count of these places."""
    found: Counter[tuple[str, str]] = Counter()
    for agent in verdict.agents:
        here: dict[str, int] = {}
        for place, sums in agent.sums.items():
            tier = place.tier.value.lower()
            here[tier] = max(here.get(tier, 0), 0 if sums is None else sums.count)
        for tier, count in here.items():
            found[tier, agent.host or f"agent {agent.agent}"] += count
    return dict(found)


def totals_of(verdict: BucketVerdict) -> dict[str, int]:
    """Returns the number of records by tier, of all hosts together. If a tier counts in several
    places, takes the greatest of their counts."""
    found: dict[str, int] = {}
    for place, sums in verdict.places().items():
        tier = place.tier.value.lower()
        found[tier] = max(found.get(tier, 0), 0 if sums is None else sums.count)
    return found


def shortened(text: str) -> str:
    """Returns the text, cut to at most REASON_LENGTH_MAX characters."""
    return text if len(text) <= REASON_LENGTH_MAX else text[: REASON_LENGTH_MAX - 3] + "..."


class Kept:
    """Keeps in bounded memory the counts of buckets that were complete when they were last judged.
    If there are more than KEPT_MAX counts, drops those that were stored first. Only the judging
    thread uses this object.
    """

    def __init__(self, size_max: int = KEPT_MAX) -> None:
        self._size_max = size_max
        self._size = 0
        self._counts: OrderedDict[Key, Counts] = OrderedDict()

    def get(self, key: Key) -> Counts | None:
        """Returns the counts of the bucket; None if they are not in memory."""
        return self._counts.get(key)

    def put(self, key: Key, counts: Counts | None) -> None:
        """Stores these counts of the bucket. If `counts` is None, only deletes the bucket's stored
        counts."""
        self._size -= len(self._counts.pop(key, {}))
        if counts is not None:
            self._counts[key] = counts
            self._size += len(counts)
        while self._size > self._size_max:
            self._size -= len(self._counts.popitem(last=False)[1])


def _cause(
    kept: Counts | None, verdict: BucketVerdict, totals: Mapping[str, int], now: Mapping[str, int]
) -> str:
    """Says in words which tiers counted more records than before, and from which hosts these
    records came; "" if no tier did. kept: the counts by tier and host when the bucket was complete;
    if None, the words name no hosts. totals: the counts by tier when the bucket was complete. now:
    the present counts by tier.
    """
    before = {(tier, ""): count for tier, count in totals.items()} if kept is None else kept
    found = {(tier, ""): count for tier, count in now.items()}
    if kept is not None:
        found = counts_of(verdict)
    more = {key: count - before.get(key, 0) for key, count in found.items()}
    grown = sorted((key for key in more if more[key] > 0), key=lambda key: (-more[key], key))
    said = [_more(more[key], *key) for key in grown[:CAUSES_MAX]]
    if len(grown) > CAUSES_MAX:
        said.append(f"and {len(grown) - CAUSES_MAX} others")
    return ", ".join(said)


def _more(count: int, tier: str, host: str) -> str:
    records = "record" if count == 1 else "records"
    return f"{count} more {records}{f' of {host}' if host else ''} at {tier}"
