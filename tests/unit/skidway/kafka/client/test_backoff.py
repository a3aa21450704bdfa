"""After a failure, for example of a connection, a client waits before it tries again. The wait
grows with each further failure."""

from __future__ import annotations

import pytest

from skidway.kafka.client.backoff import Backoff


def test_waits_double_up_to_a_second() -> None:
    """After a failure the client first waits 50 ms. Each further wait is twice as long, up to a
    second. After a success the next wait is 50 ms again."""
    backoff = Backoff(lambda: 0.5)
    waits = [backoff.next_s() for _ in range(8)]
    assert waits == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0])
    backoff.reset()
    assert backoff.next_s() == pytest.approx(0.05)


def test_jitter_is_a_fifth_either_way() -> None:
    """Each wait is up to a fifth longer or shorter, so that clients that failed together do not try
    again together."""
    assert Backoff(lambda: 0.0).next_s() == pytest.approx(0.04)
    assert Backoff(lambda: 1.0).next_s() == pytest.approx(0.06)
