"""Threads for jobs of clients, whose addresses take turns: one with many jobs does not keep others
waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable

from skidway.holders import Holders

Job = Callable[[], None]


class FairThreads:
    """The threads, which begin with the first job. Nobody submits a job that still waits."""

    def __init__(self, name: str, count: int) -> None:
        self._waiting: Holders[Job] = Holders(0)
        self._changed = threading.Condition()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        self._is_begun = self._is_closed = False

    def submit(self, job: Job, address: str) -> None:
        """Lets a thread do a job, which must not raise an exception, for a client of this
        address."""
        with self._changed:
            self._waiting.hold(job, address, 1)
            self._changed.notify()
            is_first, self._is_begun = not self._is_begun, True
        if is_first:
            for each in self._threads:
                each.start()

    def close(self) -> None:
        """Ends the threads after their present jobs."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._is_begun:
            for each in self._threads:
                each.join()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            job()

    def _next(self) -> Job | None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or len(self._waiting))
            if self._is_closed:
                return None
            return self._waiting.take_first(next(iter(self._waiting.addresses())))
