"""kazoo's silence as an exception of ours."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from skidway.coordination import UNANSWERED, Coordinator
from skidway.errors import Unreachable


@contextlib.contextmanager
def answered(coordinator: Coordinator) -> Iterator[Any]:
    """kazoo's client, whose silence becomes Unreachable."""
    try:
        yield coordinator.client
    except UNANSWERED as error:
        raise Unreachable(f"ZooKeeper at {coordinator.connect} does not answer") from error
