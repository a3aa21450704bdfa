"""What a broker says about itself: how it was started, and which servers do not answer it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from skidway import invocation
from skidway.audit.topic.program_status import BrokerStatus, Kind, Obstacle
from skidway.broker.settings import BrokerSettings
from skidway.host_name import host_name


def own_status(
    settings: BrokerSettings,
    zookeeper_away_ms: int | None,
    mirrors: Iterable[Mapping[str, Any]],
) -> BrokerStatus:
    """Returns the status of this process. zookeeper_away_ms: since when ZooKeeper does not answer;
    None if it does. mirrors: the status of each mirror (broker.mirror.status)."""
    found = []
    if zookeeper_away_ms is not None:
        name = settings.zookeeper_connect.partition("/")[0]
        found.append(Obstacle(Kind.ZOOKEEPER, name, "", zookeeper_away_ms))
    found += (each for x in mirrors if (each := away(x)) is not None)
    started = invocation.of_this_process()
    clusters = tuple(x.cluster for x in settings.mirror_sources)
    return BrokerStatus("", host_name(settings.host_name), started, tuple(found), clusters)


def away(mirror: Mapping[str, Any]) -> Obstacle | None:
    """Returns the obstacle of a mirror whose source does not answer; None if the source answers, or
    if nobody knows yet whether it does. mirror: its status in /health."""
    if mirror["reachable"] is not False:
        return None
    since = mirror.get("away_since_ms")
    return Obstacle(Kind.CLUSTER, mirror["cluster"], mirror["last_failure"], since)
