"""The status of mirroring, for /health, `skidway mirror status` and metrics.

This code runs on the caller's thread, and not on the loop's thread. So it changes nothing, and
iterates only over copies of the collections.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from skidway import invocation
from skidway.broker.catalog import Topic
from skidway.broker.mirror import rounds
from skidway.broker.mirror.follower import Phase
from skidway.broker.mirror.partition import UNKNOWN, MirrorPartition
from skidway.broker.mirror.rounds import Plan
from skidway.broker.mirror.source import MirrorSource
from skidway.kafka import gaps

REASONS_MAX = 1000
"""The lists `stopped`, `waiting`, `unverifiable`, `left_out` and `gaps` have at most this many
entries each. The numbers `stopped_count`, `waiting_count` and `gap_count` include all entries.
"""


def status_of(
    source: MirrorSource, topics: Mapping[str, Topic], address: str = ""
) -> dict[str, Any]:
    """Returns the status of one source. address: of this broker, host:port. These keys need an
    explanation:

        away_since_ms: since when the source has not answered; None if it does.
        lag: the sum over all partitions whose lag is known, in records. For stopped partitions it
            is the largest possible number of records that the mirror misses.
        stopped: the topics and partitions that wait for an operator, or the whole source if it
            waits for an operator.
        missed: of those in `stopped`, how many records the source has that are perhaps not here;
            without those of which this is unknown.
        begin_again: for mirror topics and their partitions in `stopped`, the command that deletes
            the topic here, so that the mirror begins it again.
        waiting: partitions whose copying waits, each with the reason.
        left_out: topics that are not mirrored, are no longer mirrored, or could not be created,
            extended or examined.
        unverifiable: partitions whose last batch could not be compared with the source, because
            this batch was deleted in the source or here; each with the offset after the batch.
        gaps: offsets that are missing in the mirror because the source did not have them.
        group: the consumer group in the source whose offsets show how far the mirror has copied.

    All offsets are offsets in the source.
    """
    each = list(source.followed.partitions.values())
    cluster, plan = source.topics.mirroring.cluster, source.topics.plan
    stopped = {**plan.stopped, **_stopped(each)}
    missed = _missed(source, each, plan)
    lags = [_lag(source, x) for x in each if x.replica.partition.topic not in plan.stopped]
    lags += [missed[name] for name in plan.stopped]
    if source.topics.misnamed:
        stopped[cluster] = source.topics.misnamed
    if source.broken:
        stopped[cluster] = source.broken
    reasons = {partition.name: _kept_back_by(source, partition) for partition in each}
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
        "missed": _some({name: n for name, n in missed.items() if n is not None}),
        "begin_again": _some(_commands(source, topics, missed, address)),
        "waiting_count": len(waiting),
        "waiting": _some(waiting),
        "unverifiable": _some(unverifiable),
        "left_out": _some({**plan.left_out, **source.topics.not_done}),
        "gap_count": sum(map(len, named.values())),
        "gaps": _some(named),
        "records": source.followed.records,
        "bytes": source.followed.bytes,
        "group": source.progress.group,
        "group_failures": source.progress.failed,
        "group_failure": source.progress.failure,
        "last_failure": source.last_failure,
    }


def _lag(source: MirrorSource, each: MirrorPartition) -> int | None:
    """Returns how many records of a partition are in the source, but not in the mirror yet; None if
    the number is not known. For a stopped partition, it is the largest possible number.
    """
    follower = each.follower
    if each.is_stopped:
        return source.missed.records(each.tp, follower.same_to)
    watermark = source.positions.watermark(each)
    if watermark == UNKNOWN:
        return None
    # The position is behind the mirror's end if the records in between have expired.
    return max(watermark - max(follower.log_end, follower.position()), 0)


def _kept_back_by(source: MirrorSource, each: MirrorPartition) -> str:
    """Returns why the copying of a followed partition waits. Empty if records are being copied, if
    all records are copied, if the partition is stopped, or if the newest plan does not have the
    partition (`is_paused`).
    """
    follower, fresh = each.follower, source.positions.fresh_watermark(each)
    if each.is_stopped or each.is_paused or follower.position() == follower.log_end == fresh:
        return ""
    if not each.trouble and source.positions.leader(each) is None:
        return "the source has not said which broker leads it"
    return each.trouble


def _stopped(partitions: Iterable[MirrorPartition]) -> dict[str, str]:
    return {each.name: each.follower.reason for each in partitions if each.is_stopped}


def _missed(
    source: MirrorSource, partitions: Iterable[MirrorPartition], plan: Plan
) -> dict[str, int | None]:
    found = {each.name: _lag(source, each) for each in partitions if each.is_stopped}
    for name, tps in plan.unmirrored.items():
        counts = [source.missed.records(tp) for tp in tps]
        known = [count for count in counts if count is not None]
        found[name] = sum(known) if len(known) == len(counts) else None
    return found


def _commands(
    source: MirrorSource, topics: Mapping[str, Topic], stopped: Collection[str], address: str
) -> dict[str, str]:
    found: dict[str, str] = {}
    if not stopped:
        return found
    call, cluster = invocation.of_this_process().call, source.topics.mirroring.cluster
    names = {
        each.name: each.replica.partition.topic for each in [*source.followed.partitions.values()]
    }
    for name in stopped:
        topic = topics.get(names.get(name, name))
        if topic is not None and topic.configs.get(rounds.SOURCE_CLUSTER) == cluster:
            words = f"topics delete {topic.name} --yes --bootstrap-server {address}"
            found[name] = f"{call} {words}"
    return found


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
