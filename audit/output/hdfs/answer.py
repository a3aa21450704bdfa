"""Calls the HDFS client, and waits for its answer for a limited time.

The client has no limit for an answer. It waits for ever for a frozen NameNode, which still takes
connections, and for an hsync of a block that has a dead DataNode.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

ANSWER_S: Final = 120.0
"""Longer than whatever ends well: a failover takes 30 s, a silent KDC holds a connection 54 s."""
LOOK_S: Final = 1.0


class Answers:
    """The answers of one client. If one has not come in `ANSWER_S`, the client counts as silent:
    it would ask the same frozen server again, so no answer of it is waited for any more."""

    def __init__(self) -> None:
        self._is_silent = False

    def get(self, call: Callable[[], T], within_s: float | None = None) -> T:
        """Returns what `call` returns, and raises what it raises. Raises TimeoutError if the client
        is silent, or if the call takes longer than `within_s` seconds; then the client counts as
        silent only if no `within_s` was given. The call's thread then still waits; because it is a
        daemon thread, the program can end nevertheless."""
        if self._is_silent:
            raise TimeoutError("no answer to an earlier request")
        results: list[T] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(call())
            except BaseException as error:  # noqa: BLE001 - the caller raises it
                errors.append(error)

        limit_s = ANSWER_S if within_s is None else within_s
        until = time.monotonic() + limit_s
        thread = threading.Thread(target=run, name="hdfs", daemon=True)
        thread.start()
        while thread.is_alive() and not self._is_silent and (left := until - time.monotonic()) > 0:
            thread.join(min(left, LOOK_S))
        if errors:
            raise errors[0]
        if not results:
            self._is_silent = self._is_silent or within_s is None
            raise TimeoutError(f"no answer within {limit_s:.0f} s")
        return results[0]
