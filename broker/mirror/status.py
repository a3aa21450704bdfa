"""The status of mirroring, for /health, `skidway mirror status` and metrics.

This code runs on the caller's thread, and not on the loop's thread. So it changes nothing, and
iterates only over copies of the collections.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skidway.broker.catalog import Topic
from skidway.broker.mirror import rounds
from skidway.broker.mirror.follower import Phase
from skidway.broker.mirror.partition import MirrorPartition
from skidway.broker.mirror.source import MirrorSource
from skidway.kafka import gaps

REASONS_MAX = 1000
"""The lists `stopped`, `waiting`, `unverifiable`, `left_out` and `gaps` have at most this many
entries each. The numbers `stopped_count`, `waiting_count` and `gap_count` include all entries.
"""


def status_of(source: MirrorSource, topics: Mapping[str, Topic]) -> dict[str, Any]:
    """Returns the status of one source. These keys need an explanation:

        away_since_ms: since when the source has not answered; None if it does.
        lag: the sum over all partitions whose lag is known, in records.
        stopped: the topics and partitions that wait for an operator, or the whole source if it
            waits for an operator.
        waiting: partitions whose copying waits, each with the reason.
        left_out: topics that are not mirrored, are no longer mirrored, or could not be created,
            extended or examined.
        unverifiable: partitions whose last batch could not be compared with the source, because
            this batch was deleted in the source or here; each with the offset after the batch.
        gaps: offsets that are missing in the mirror because the source did not have them.
        group: the consumer group in the source whose offsets show how far the mirror has copied.

    All offsets are offsets in the source.
    """
    each = list(source.partitions.values())
    cluster = source.topics.mirroring.cluster
    lags = [source.lag(partition) for partition in each]
    stopped = {**source.topics.plan.stopped, **_stopped(each)}
    if source.topics.misnamed:
        stopped[cluster] = source.topics.misnamed
    if source.broken:
        stopped[cluster] = source.broken
    reasons = {partition.name: source.kept_back_by(partition) for partition in each}
    waiting = {name: reason for name, reason in reasons.items() if reason}
    unverifiable = {p.name: p.unverifiable for p in each if p.unverifiable is not None}
    named = _gaps(cluster, topics.values())
    return {
        "cluster": cluster,
        "reachable": source.topics.is_reachable,
        "away_since_ms": source.topics.away_since_ms,
        "partitions": len(each),
        "lag": sum(lag for lag in lags if lag is not None),
        "lag_unknown": sum(lag is None for lag in lags),
        "checking": sum(partition.follower.phase is Phase.CHECKING for partition in each),
        "stopped_count": len(stopped),
        "stopped": _some(stopped),
        "waiting_count": len(waiting),
        "waiting": _some(waiting),
        "unverifiable": _some(unverifiable),
        "left_out": _some({**source.topics.plan.left_out, **source.topics.not_done}),
        "gap_count": sum(map(len, named.values())),
        "gaps": _some(named),
        "records": source.records,
        "bytes": source.bytes,
        "group": source.progress.group,
        "group_failures": source.progress.failed,
        "group_failure": source.progress.failure,
        "last_failure": source.last_failure,
    }


def _stopped(partitions: Iterable[MirrorPartition]) -> dict[str, str]:
    return {each.name: each.follower.reason for each in partitions if each.is_stopped}


def _gaps(cluster: str, topics: Iterable[Topic]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for topic in topics:
        named = topic.configs.get(gaps.CONFIG, "")
        if topic.configs.get(rounds.SOURCE_CLUSTER) == cluster and gaps.refusal(named) is None:
            for gap in gaps.decode(named):
                words = f"{gap.first}-{gap.end} {gap.reason}"
                found.setdefault(f"{topic.name}-{gap.partition}", []).append(words)
    return found


def _some(reasons: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(reasons.items())[:REASONS_MAX])
