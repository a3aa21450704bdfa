"""The data that Ansible passes to the filters: the variables of hosts, groups and clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .settings import texts

HostVars = Mapping[str, Any]
"""The variables of a host (an item of `hostvars`)."""
Clusters = Mapping[str, Mapping[str, Any] | None]
"""The variable `skidway_clusters`: for each cluster, its settings, or None if the cluster has no
settings."""
Groups = Mapping[str, Sequence[str]]
"""Ansible's `groups`: for each group, the names of its hosts. Ansible may leave out a group without
hosts."""


def cluster_of(host: HostVars, clusters: Clusters) -> str:
    """Returns the cluster of a host: its `skidway_cluster`, or else the first cluster of
    `clusters`.

    Defaults of a role are not visible in the variables of other hosts, so this function repeats the
    default of `skidway_cluster`.
    """
    return str(host.get("skidway_cluster") or next(iter(clusters), ""))


def listed(clusters: Clusters, name: str, key: str) -> list[str]:
    """Returns the list that the cluster `name` has under `key` (`mirrors` or `mirrored_topics`); an
    empty list if the cluster does not have the key.

    A value that is a text instead of a list is a mistake, which problems.py reports. This function
    splits the text in the same way as the programs split a text in their settings.
    """
    value = (clusters.get(name) or {}).get(key)
    return texts(value) if value and isinstance(value, Sequence) else []
