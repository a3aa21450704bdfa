"""A consumer's lease is the time for which the consumer may rely on its ZooKeeper session after an
answer from ZooKeeper."""

from __future__ import annotations

from skidway.consumer.lease import Lease


def test_a_lease_runs_from_the_question_and_ends_before_the_session() -> None:
    """A consumer's lease is the time for which it may rely on its ZooKeeper session. The lease
    begins when the consumer sends a request to ZooKeeper, not when the answer comes. It ends before
    the session can end."""
    lease = Lease(10.0)
    assert not lease.holds(0.0)
    lease.proven(100.0)
    assert lease.holds(107.4)
    assert not lease.holds(107.5)
    assert 100.0 < lease.renew_at < lease.until


def test_answers_out_of_order_do_not_shorten_it() -> None:
    """A late answer to an older request does not shorten a consumer's lease (the time for which it
    may rely on its ZooKeeper session)."""
    lease = Lease(10.0)
    lease.proven(100.0)
    lease.proven(95.0)
    assert lease.holds(107.0)
    lease.end()
    assert not lease.holds(100.0)
