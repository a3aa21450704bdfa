"""The runtimes of containers, as settings name them, and the paths of their logs.

The module of the settings imports this module before it is known whether the settings need Arrow.
So this module does not import Arrow, which takes long to load.
"""

from __future__ import annotations

from typing import Final

CRI: Final = "cri"
DOCKER: Final = "docker"

KUBERNETES: Final = (
    r"/pods/(?P<namespace>[^/_]+)_(?P<pod>[^/_]+)_[^/]*/(?P<container>[^/]+)/[^/]+$",
    r"/containers/(?P<pod>[^/_]+)_(?P<namespace>[^/_]+)_(?P<container>[^/]+)-[0-9a-f]{64}\.log$",
)
"""Patterns for the two places of kubelet's logs: /var/log/pods, and the links in
/var/log/containers.
"""
