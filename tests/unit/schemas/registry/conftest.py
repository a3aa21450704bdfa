"""A fixture: a registry that tests call in their own process, without a network."""

from __future__ import annotations

import pytest

from support.registry_http import Registry


@pytest.fixture
def registry() -> Registry:
    """Returns an empty registry, which stores its schemas in memory."""
    return Registry()
