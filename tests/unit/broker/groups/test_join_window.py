"""Tests how long a rebalance waits for members to join (KIP-134)."""

from __future__ import annotations

from skidway.broker.groups.join_window import JoinWindow


def test_a_group_that_was_empty_waits_as_long_as_members_come() -> None:
    """An empty group waits for more members for one delay (`group.initial.rebalance.delay.ms`). If
    a new member joined during the delay, the group waits for one more delay, and so on. The group
    always waits for one delay. It waits for further delays only until the longest rebalance timeout
    of its members has passed since the wait began."""
    window = JoinWindow(3.0)
    window.open(100.0, 8.0, was_empty=True)
    assert window.is_delaying
    ends = []
    while True:
        ends.append(window.until)
        window.arrived()
        if not window.is_prolonged(window.until):
            break
    assert ends == [103.0, 106.0, 108.0]


def test_nobody_new_is_the_end_of_the_delay() -> None:
    """An empty group waits for members for one delay (`group.initial.rebalance.delay.ms`). If no
    new member joins during the delay, the wait is over. Members that had joined before the delay
    began do not count as new."""
    window = JoinWindow(3.0)
    window.arrived()
    window.open(100.0, 8.0, was_empty=True)
    assert not window.is_prolonged(103.0)


def test_who_came_prolongs_the_delay_once() -> None:
    """An empty group waits for members for one delay (`group.initial.rebalance.delay.ms`). If
    members join during the delay, the group waits for one more delay. If no new member joins during
    this second delay, the wait is over."""
    window = JoinWindow(3.0)
    window.open(100.0, 60.0, was_empty=True)
    window.arrived()
    assert window.is_prolonged(103.0)
    assert window.until == 106.0
    assert not window.is_prolonged(106.0)


def test_members_are_waited_for_as_long_as_the_most_patient_asks() -> None:
    """A rebalance of a group that had members waits until all of them have joined again, but not
    longer than the longest of their rebalance timeouts. A new member does not prolong this wait."""
    window = JoinWindow(3.0)
    window.open(100.0, 8.0, was_empty=False)
    window.arrived()
    assert window.until == 108.0
    assert not window.is_delaying
    assert not window.is_prolonged(108.0)


def test_a_timeout_shorter_than_the_delay_does_not_prolong() -> None:
    """If the rebalance timeouts of all members are shorter than `group.initial.rebalance.delay.ms`,
    an empty group waits for exactly this delay."""
    window = JoinWindow(3.0)
    window.open(100.0, 1.0, was_empty=True)
    window.arrived()
    assert window.until == 103.0
    assert not window.is_prolonged(103.0)
