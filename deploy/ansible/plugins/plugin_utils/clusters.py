"""Finds the hosts of a cluster, the clusters that it mirrors, and the audit's counters for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .addresses import LOOPBACK
from .inventory import Clusters, HostVars, cluster_of, listed
from .settings import Settings


def of_cluster(
    names: Iterable[str], hosts: Mapping[str, HostVars], cluster: str, clusters: Clusters
) -> list[str]:
    """Returns those of the hosts `names` that belong to the cluster."""
    return [name for name in names if cluster_of(hosts[name], clusters) == cluster]


def mirror_sources(clusters: Clusters, cluster: str, servers: Mapping[str, str]) -> list[Settings]:
    """Returns the value of the setting `mirror.sources` for the brokers of a cluster: one entry for
    each cluster that this cluster mirrors. Raises ValueError if a mirrored cluster is not in
    `servers`, which has the bootstrap servers of each cluster."""
    found = []
    for source in listed(clusters, cluster, "mirrors"):
        if source not in servers:
            raise ValueError(f"{cluster} mirrors {source}, which has no brokers")
        each: Settings = {"cluster": source, "bootstrap.servers": servers[source]}
        topics = listed(clusters, source, "mirrored_topics")
        if topics:
            each["topics"] = topics
        found.append(each)
    return found


def counters(
    clusters: Clusters,
    servers: Mapping[str, str],
    first_port: int,
    agents: Iterable[HostVars] = (),
    bind_address: str = LOOPBACK,
) -> dict[str, Settings]:
    """Returns {name of a counter: its settings} for the audit's counters (programs that count the
    records in the topics of a cluster).

    Each cluster in `servers` has a first counter. If the cluster mirrors other clusters, the first
    counter counts the mirrored topics. Otherwise the first counter counts the topics to which
    agents of the cluster publish. A cluster that mirrors other clusters and has agents of its own
    also gets a second counter, `<cluster>.broker`. All first counters get their ports before the
    second counters do. So a second counter does not change the port of a first counter. All
    counters serve /metrics and /health on `bind_address`. servers: the bootstrap servers, by
    cluster; a cluster that is missing here gets no counter.
    """
    published = {cluster_of(agent, clusters) for agent in agents}
    mirrors = [name for name in clusters if listed(clusters, name, "mirrors")]
    places = [(name, name, "mirror" if name in mirrors else "broker") for name in clusters]
    places += [(f"{name}.broker", name, "broker") for name in mirrors if name in published]
    return {
        name: {
            "bootstrap.servers": servers[cluster],
            "cluster.name": cluster,
            "tier": tier,
            "state.dir": f"/var/lib/skidway/audit-count-{name}",
            "metrics.listener": f"{bind_address}:{int(first_port) + number}",
        }
        for number, (name, cluster, tier) in enumerate(places)
        if cluster in servers
    }
