"""What Ansible hands to the filters: the variables of hosts, groups, clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .settings import texts

HostVars = Mapping[str, Any]
"""The variables of a host (an item of `hostvars`)."""
Clusters = Mapping[str, Mapping[str, Any] | None]
"""`skidway_clusters`: by name what is said of a cluster, which may be nothing."""
Groups = Mapping[str, Sequence[str]]
"""`groups`: the names of the hosts; one without hosts may be missing."""


def cluster_of(host: HostVars, clusters: Clusters) -> str:
    """The cluster of a host: its `skidway_cluster`, or else the first one.

    A default of the roles is no variable of other hosts, so it is made again here.
    """
    return str(host.get("skidway_cluster") or next(iter(clusters), ""))


def listed(clusters: Clusters, name: str, key: str) -> list[str]:
    """What is said of a cluster under `mirrors` or `mirrored_topics`.

    A text is read as the programs read one in place of a list; problems.py has a sentence for it.
    """
    value = (clusters.get(name) or {}).get(key)
    return texts(value) if value and isinstance(value, Sequence) else []
