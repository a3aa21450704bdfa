from __future__ import annotations

import pytest

from skidway.consumer.membership import (
    CLAIM_AGAIN_S,
    LOOK_LATEST_S,
    QUIET_S,
    Claim,
    Look,
    Membership,
    Release,
)
from skidway.kafka.types import TopicPartition

ALONE = {"me": frozenset({"t"})}
TWO = {"me": frozenset({"t"}), "you": frozenset({"t"})}
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def member(random: float = 0.5) -> Membership:
    found = Membership(lambda: random, look_every_s=60.0)
    found.registered("me", 0.0)
    return found


def owning(now: float = 1.0, random: float = 0.5) -> Membership:
    """Returns a member that is alone in its group and owns both partitions of the topic."""
    found = member(random)
    assert found.next_step(now) == Look()
    assert found.looked(ALONE, {"t": 2}, now)
    for tp in (P0, P1):
        assert found.next_step(now) == Claim(tp)
        found.claimed(tp)
    assert found.next_step(now) is None
    assert found.is_settled
    return found


def test_looks_once_it_has_been_quiet() -> None:
    """There may be many changes in the group (members and partitions that come and go). A member
    does not read the group's state in ZooKeeper after each change, but once, when the changes have
    stopped. Even if the changes never stop, the member reads the state after a limited time."""
    found = member()
    assert found.next_step(QUIET_S) is None
    for tenth in range(1, 40):
        found.changed(tenth / 10)
    assert found.next_step(LOOK_LATEST_S - 0.01) is None
    assert found.next_step(LOOK_LATEST_S) == Look()


def test_what_goes_to_another_is_released_and_the_rest_kept() -> None:
    """A new member gets its share of the partitions. The former owner releases only this share, and
    continues to read its other partitions."""
    found = owning()
    assert found.looked(TWO, {"t": 2}, 2.0)
    assert found.next_step(2.0) == Release(P1)
    assert found.owned == {P0, P1}
    found.released(P1)
    assert found.next_step(2.0) is None
    assert found.is_settled


def test_a_partition_that_is_held_is_claimed_when_its_owner_has_gone() -> None:
    """A partition that is assigned to a member may still have another owner. The member claims the
    partition again when a watch reports that the owner has gone. Without such a report the member
    claims the partition again after a while."""
    found = member()
    assert found.looked(ALONE, {"t": 1}, 1.0)
    found.held(P0, 1.0)
    assert found.next_step(1.1) is None
    found.vacated(P0, 1.2)
    assert found.next_step(1.2) == Claim(P0)
    found.held(P0, 1.2)
    assert found.next_step(1.2 + 0.8 * CLAIM_AGAIN_S) is None
    assert found.next_step(1.2 + 1.2 * CLAIM_AGAIN_S) == Claim(P0)
    assert found.wake_at() <= 1.2 + 1.2 * CLAIM_AGAIN_S


def test_a_release_that_was_begun_is_ended() -> None:
    """If a member's release of a partition is not answered, the member repeats the release, even if
    the partition has been assigned to the member again."""
    found = owning()
    assert found.looked(TWO, {"t": 2}, 2.0)
    assert found.next_step(2.0) == Release(P1)
    found.unanswered(Release(P1), 2.0)
    assert found.next_step(2.0) is None
    assert found.looked(ALONE, {"t": 2}, 3.0)
    assert not found.is_settled
    assert found.next_step(4.5) == Release(P1)
    found.released(P1)
    assert found.next_step(4.5) == Claim(P1)


def test_a_claim_that_was_not_answered_is_taken_back_when_it_is_anothers() -> None:
    """If ZooKeeper does not answer a member's claim of a partition, the claim may still have
    created an owner node. If the partition is then assigned to another member, the first member
    removes this owner node."""
    found = member()
    assert found.looked(ALONE, {"t": 2}, 1.0)
    found.unanswered(Claim(P1), 1.0)
    assert found.looked(TWO, {"t": 2}, 1.0)
    assert found.next_step(5.0) == Release(P1)


def test_after_a_lost_registration_nothing_is_done() -> None:
    """If a member's registration is lost, `Membership` says which partitions the member must stop
    reading. It does nothing more until the member is registered again."""
    found = owning()
    assert found.lost() == {P0, P1}
    assert found.next_step(1e6) is None
    assert found.wake_at() == float("inf")
    found.registered("me again", 10.0)
    assert found.next_step(11.0) == Look()
    assert not found.looked(ALONE, {"t": 2}, 11.0)
    assert found.looked({"me again": frozenset({"t"})}, {"t": 1}, 11.0)


@pytest.mark.parametrize(("random", "share"), [(0.0, 0.9), (0.5, 1.0), (1.0, 1.1)])
def test_looks_again_without_a_watch(random: float, share: float) -> None:
    """Even if no watch fires, a member reads the group's state again and again. The time between
    two reads is random, and differs from the setting by at most a tenth."""
    found = owning(random=random)
    now = 1.0
    for _ in range(2):
        assert found.next_step(now + share * 60 - 0.1) is None
        now += share * 60 + 0.1
        assert found.next_step(now) == Look()
        assert found.looked(ALONE, {"t": 2}, now)
