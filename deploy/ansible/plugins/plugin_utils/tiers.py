"""Finds the topics that the audit must not expect in the tier `mirror`, because no cluster mirrors
them, or in the tier `hdfs`, because no loader loads them.

The result is a list of patterns that match whole names `<cluster>.<topic>`. The patterns depend on
the clusters' settings, and not on the topics to which the agents publish now, because the audit
also checks topics to which no agent publishes any more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .inventory import Clusters, Groups, HostVars, cluster_of, listed
from .settings import flat, texts

_NAME = re.compile(r"[A-Za-z0-9._-]+")
"""If an entry of the loader's setting `topics` has this form, the loader reads it as the name of a
topic. It reads any other entry as a pattern."""


def exempt_topics(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars]
) -> dict[str, list[str]]:
    """Returns, for each of the tiers `mirror` and `hdfs`, the patterns for the audit's setting
    `exempt.<tier>`. The result leaves out a tier if no topic is exempt from it, or if the site does
    not have this tier.

    A cluster that mirrors other clusters has topics of its own only if it has agents.
    """
    published = _published(clusters, (hosts[name] for name in groups.get("agents", [])))
    loaders = [hosts[name] for name in groups.get("loaders", [])]
    exempt: dict[str, list[str]] = {"mirror": [], "hdfs": []}
    for name in clusters:
        if name in published or not _mirrors(clusters, name):
            exempt["mirror"] += _unmirrored(clusters, name)
            exempt["hdfs"] += _unloaded(clusters, name, loaders, published)
    there = {"mirror": any(_mirrors(clusters, name) for name in clusters), "hdfs": bool(loaders)}
    return {tier: patterns for tier, patterns in exempt.items() if patterns and there[tier]}


def topics_to_load(clusters: Clusters, cluster: str, agents: Iterable[HostVars] = ()) -> list[str]:
    """Returns patterns of the topics that a loader of this cluster loads by default. If the cluster
    mirrors other clusters and has no agents of its own, these are the mirrored topics. In all other
    cases, these are all topics."""
    return _topics_to_load(clusters, cluster, _published(clusters, agents))


def _topics_to_load(clusters: Clusters, cluster: str, published: Collection[str]) -> list[str]:
    mirrored = [rf"{source}\..*" for source in _mirrors(clusters, cluster)]
    return mirrored if mirrored and cluster not in published else [".*"]


def _published(clusters: Clusters, agents: Iterable[HostVars]) -> set[str]:
    return {cluster_of(agent, clusters) for agent in agents}


def lost_tiers_problem(
    in_use: Mapping[str, Any] | None, wanted: Iterable[str] | str, retired: Iterable[str] | str
) -> str:
    """Returns a message if the running audit compares counts of a tier that the new settings lack,
    else "".

    `in_use` has the settings of the running audit; it is None if there is no running audit.
    `wanted` has the tiers of the new settings. `retired` has the tiers that the new settings are
    allowed to lack.
    """
    before = texts(flat(in_use or {}).get("tiers") or [])
    lost = [tier for tier in before if tier not in {*texts(wanted), *texts(retired)}]
    if not lost:
        return ""
    return (
        f"The audit in use waits for the tiers {', '.join(before)}, and by this inventory it would "
        f"not for {', '.join(lost)} any more (hdfs: the group loaders; mirror: mirrors in "
        "skidway_clusters). If the inventory is whole and that is meant, run again with "
        f"-e audit_retired_tiers={','.join(lost)}. The audit was not changed."
    )


def _mirrors(clusters: Clusters, cluster: str) -> list[str]:
    return listed(clusters, cluster, "mirrors")


def _unmirrored(clusters: Clusters, name: str) -> list[str]:
    """Returns patterns of those topics of a cluster that no other cluster mirrors."""
    if not any(name in _mirrors(clusters, other) for other in clusters):
        return [_everything(name)]
    topics = listed(clusters, name, "mirrored_topics") or [".*"]
    return _all_but(name, [rf"{name}\.(?:{topic})" for topic in topics])


def _unloaded(
    clusters: Clusters, name: str, loaders: Iterable[HostVars], published: Collection[str]
) -> list[str]:
    """Returns patterns of the topics of a cluster that no loader loads, neither from this cluster
    nor from a cluster that mirrors it."""
    by_loader = []
    for loader in loaders:
        here = cluster_of(loader, clusters)
        given = [_pattern(text) for text in _given(loader)]
        taken = given or _topics_to_load(clusters, here, published)
        if here == name:
            by_loader.append(_all_but(name, [rf"{name}\.(?:{topic})" for topic in taken]))
        elif name in _mirrors(clusters, here):
            by_loader.append([*_unmirrored(clusters, name), *_all_but(name, taken)])
    return _in_each(name, by_loader)


def _given(loader: HostVars) -> list[str]:
    settings = loader.get("loader_settings") or {}
    return texts(settings.get("topics") or loader.get("loader_topics") or [])


def _pattern(text: str) -> str:
    """Returns an entry of a loader's setting `topics` as a regular expression. The expression for
    the name of a topic also matches `<name>.rejected`, the topic of the rejected records."""
    return text.replace(".", r"\.") + r"(?:\.rejected)?" if _NAME.fullmatch(text) else text


def _everything(name: str) -> str:
    return rf"{name}\..+"


def _all_but(name: str, patterns: Sequence[str]) -> list[str]:
    whole = {".*", ".+"}
    whole |= {name + rest for rest in (".*", "..*", r"\..*", r"\..+", r"\.(?:.*)", r"\.(?:.+)")}
    if whole & set(patterns):
        return []
    return (
        [f"(?!(?:{'|'.join(patterns)})$){_everything(name)}"] if patterns else [_everything(name)]
    )


def _in_each(name: str, lists: Iterable[Sequence[str]]) -> list[str]:
    """Returns patterns of those topics of the cluster `name` that match a pattern in each of
    `lists`. If `lists` is empty, the result matches all topics of the cluster."""
    narrow = [each for each in dict.fromkeys(map(tuple, lists)) if _everything(name) not in each]
    if () in narrow:
        return []
    if not narrow:
        return [_everything(name)]
    *others, last = narrow
    if not others:
        return list(last)
    both = "".join(f"(?=(?:{'|'.join(each)})$)" for each in others)
    return [f"{both}(?:{'|'.join(last)})"]
