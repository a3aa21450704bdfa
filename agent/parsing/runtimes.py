"""The runtimes of containers, as settings name them, and the paths of their logs.

This module does not import Arrow, which takes long to load: the agent's settings import this module
even for commands that do not need Arrow.
"""

from __future__ import annotations

from typing import Final

CRI: Final = "cri"
DOCKER: Final = "docker"

KUBERNETES: Final = (
    r"/pods/(?P<namespace>[^/_]+)_(?P<pod>[^/_]+)_[^/]*/(?P<container>[^/]+)/[^/]+$",
    r"/containers/(?P<pod>[^/_]+)_(?P<namespace>[^/_]+)_(?P<container>[^/]+)-[0-9a-f]{64}\.log$",
)
"""Patterns for the paths of kubelet's logs: in /var/log/pods, and the links in /var/log/containers.
"""
