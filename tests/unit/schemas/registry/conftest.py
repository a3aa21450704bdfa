"""A registry without a network."""

from __future__ import annotations

import pytest

from support.registry_http import Registry


@pytest.fixture
def registry() -> Registry:
    """An empty registry with its own log."""
    return Registry()
