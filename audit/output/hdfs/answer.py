"""Calls the HDFS client, and waits for its answer for a limited time.

The client has no limit for an answer. It waits for ever for a frozen NameNode, which still takes
connections, and for an hsync of a block that has a dead DataNode.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

ANSWER_S: Final = 120.0
"""Longer than whatever ends well: a failover takes 30 s, a silent KDC holds a connection 54 s."""


def in_time(call: Callable[[], T], within_s: float | None = None) -> T:
    """Returns what `call` returns, and raises what it raises. Raises TimeoutError if it takes
    longer than `within_s` seconds (if not given, `ANSWER_S`). Its thread then still waits; because
    it is a daemon thread, the program can end nevertheless."""
    within_s = ANSWER_S if within_s is None else within_s
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            errors.append(error)

    thread = threading.Thread(target=run, name="hdfs", daemon=True)
    thread.start()
    thread.join(within_s)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {within_s:.0f} s")
    return results[0]
