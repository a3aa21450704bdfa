"""An address with many jobs does not keep those of others waiting."""

from __future__ import annotations

import threading

from skidway.broker.network.fair_threads import FairThreads

WITHIN_S = 60


def test_addresses_take_turns() -> None:
    """While one job runs, a hundred of one address and one each of two others wait: the others come
    first and third, in whatever order they were submitted."""
    threads = FairThreads("test", 1)
    began, go_on, done = threading.Event(), threading.Event(), threading.Event()
    order: list[str] = []

    def first() -> None:
        began.set()
        assert go_on.wait(WITHIN_S)

    threads.submit(first, "flood")
    assert began.wait(WITHIN_S)
    for number in range(100):
        threads.submit(lambda n=number: order.append(f"flood {n}"), "flood")  # type: ignore[misc]
    threads.submit(lambda: order.append("a"), "a")
    threads.submit(lambda: order.append("b"), "b")
    threads.submit(done.set, "last")
    go_on.set()
    assert done.wait(WITHIN_S)
    threads.close()
    assert order[:3] == ["flood 0", "a", "b"]


def test_threads_that_had_no_job_end() -> None:
    """A broker without clients that come ends."""
    FairThreads("test", 2).close()
