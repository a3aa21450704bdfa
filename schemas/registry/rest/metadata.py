"""Answers the routes about the registry itself: contexts, cluster, version."""

from __future__ import annotations

from importlib import metadata as packages
from typing import Any

from skidway.schemas.registry.answering import Registry
from skidway.schemas.registry.rest.call import Call


def contexts(_registry: Registry, _call: Call) -> Any:
    """Answers GET /contexts."""
    return ["."]


def cluster(_registry: Registry, _call: Call) -> Any:
    """Answers GET /v1/metadata/id."""
    return {"id": "", "scope": {"path": [], "clusters": {"schema-registry-cluster": "skidway"}}}


def version(_registry: Registry, _call: Call) -> Any:
    """Answers GET /v1/metadata/version."""
    return {"version": packages.version("skidway"), "commitId": ""}


def root(_registry: Registry, _call: Call) -> Any:
    """Answers GET /."""
    return {}
