"""The runtimes of containers, as settings name them, and the paths of their logs.

The agent's settings import this module, even if nothing needs Arrow afterwards. Arrow takes long to
load, so this module does not import it.
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
