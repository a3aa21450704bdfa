"""Asks each leader for log start and high watermark of its partitions.

A partition is not loaded if it has no leader, or if its leader does not answer. The other
partitions are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.client.cluster import Cluster
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition
from skidway.loader.planning.plan import Bounds


@dataclass(slots=True)
class Asked:
    """The answers of partition leaders that were asked for the bounds (log start and high
    watermark) of their partitions. away: for each partition whose leader returned no bounds, the
    error."""

    bounds: dict[TopicPartition, Bounds] = field(default_factory=dict)
    away: dict[TopicPartition, SkidwayError] = field(default_factory=dict)


def ask(client: Client, cluster: Cluster, tps: Iterable[TopicPartition]) -> Asked:
    """Returns the bounds that the partitions have now. Raises Unreachable if no leader returns any
    bounds, and at least one leader does not answer."""
    leaders: dict[object, list[TopicPartition]] = {}
    for tp in tps:
        leaders.setdefault(cluster.leader(tp), []).append(tp)
    asked = Asked()
    for leader, group in leaders.items():
        _ask_group(client, group, asked, each=leader is not None)
    silent = [error for error in asked.away.values() if isinstance(error, Unreachable)]
    if silent and not asked.bounds:
        raise silent[0]
    return asked


def _ask_group(
    client: Client, group: Sequence[TopicPartition], asked: Asked, *, each: bool
) -> None:
    """Asks one leader for the bounds of the partitions in `group`. each: whether to ask for each
    partition separately if the leader refuses the request for the group.
    """
    try:
        starts = client.list_offsets(dict.fromkeys(group, EARLIEST))
        ends = client.list_offsets(dict.fromkeys(group, LATEST))
    except Unreachable as error:
        asked.away.update(dict.fromkeys(group, error))
    except KafkaError as error:
        if each and len(group) > 1:
            for tp in group:
                _ask_group(client, [tp], asked, each=False)
        else:
            asked.away.update(dict.fromkeys(group, error))
    else:
        for tp in group:
            asked.bounds[tp] = Bounds(tp.partition, starts[tp].offset, ends[tp].offset)
