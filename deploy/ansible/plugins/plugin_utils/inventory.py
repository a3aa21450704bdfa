"""What Ansible hands to the filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HostVars = Mapping[str, Any]
"""The variables of a host (an item of `hostvars`)."""
Clusters = Mapping[str, Mapping[str, Any] | None]
"""`skidway_clusters`: by name what is said of a cluster, which may be nothing."""
Groups = Mapping[str, Sequence[str]]
"""`groups`: the names of the hosts; one without hosts may be missing."""
