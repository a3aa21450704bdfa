"""Each write of a consumer to ZooKeeper also writes a new token to the consumer's registration
node, in one transaction. If a write is not answered, the token in the node shows later whether the
write was done."""

from __future__ import annotations

from skidway.consumer.guard import Guard


def test_an_unanswered_write_was_done_where_its_token_stands() -> None:
    """If the registration node contains the token of an unanswered write, the write was done, and
    `was_done` returns True for it once. If another unanswered write expected the same version of
    the node, ZooKeeper has not done it and cannot do it any more, because the version has
    changed."""
    guard = Guard("me", {"t": 1}, 0)
    first, second = guard.next_token(), guard.next_token()
    guard.unanswered(first, "release")
    guard.unanswered(second, "other")
    guard.found(guard.document(first), 1)
    assert guard.version == 1
    assert guard.was_done("release")
    assert not guard.was_done("release")
    assert not guard.was_done("other")


def test_a_write_that_succeeds_ends_what_was_not_answered() -> None:
    """If a write is not answered, and the next write succeeds, the first write was not done. Both
    writes expected the same version of the registration node, so ZooKeeper can have done only one
    of them."""
    guard = Guard("me", {"t": 1}, 0)
    guard.unanswered(guard.next_token(), "release")
    guard.succeeded()
    assert guard.version == 1
    guard.found(guard.document(1), 2)
    assert not guard.was_done("release")


def test_nothing_may_be_done_twice_without_a_name() -> None:
    """An unanswered write has a name, for example "release". With this name the caller asks
    `was_done` whether the write was done. A write that can be repeated without harm has no name
    (None). Such a write is never reported as done, even if its token is in the node."""
    guard = Guard("me", {"t": 1}, 0)
    token = guard.next_token()
    guard.unanswered(token, None)
    guard.found(guard.document(token), 1)
    assert not guard.was_done(None)
