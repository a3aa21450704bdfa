"""Tests how the agent knows the latest time that an unread line may have. If the clock was set
back, this is the time that the clock showed just before it was set back."""

from __future__ import annotations

from skidway.agent.accounts.set_backs import SetBacks
from support.promises import promise

TOPICS = ["logs", "auth"]


def _read(found: SetBacks, *readings_ms: int) -> None:
    for now_ms in readings_ms:
        found.read(now_ms, TOPICS)


def test_a_clock_that_only_goes_on_says_the_present() -> None:
    """If the clock was never set back, no unread line has a time after the present time."""
    found = SetBacks()
    _read(found, 10, 20, 30)
    assert found.greatest("logs", 30) == 30


@promise("clocks reach of a loss")
def test_what_it_said_before_it_was_set_back_holds_until_a_seal_that_was_noted_later() -> None:
    """A seal says that all earlier lines are counted. After the clock was set back, an unread line
    of a topic may have the later time that the clock showed just before it was set back. The agent
    no longer expects such a line when it has scanned the files again and has sent the topic's seal
    for this scan."""
    found = SetBacks()
    _read(found, 10)
    found.noted("logs")
    _read(found, 90, 20)
    found.sealed("logs")
    assert found.greatest("logs", 20) == 90
    found.noted("logs")
    found.sealed("logs")
    assert found.greatest("logs", 20) == 20
    assert found.greatest("auth", 20) == 90, "of this topic nothing was sealed since"


def test_of_several_times_the_greatest_counts() -> None:
    """If the clock was set back several times since a topic's last seal, it has several times shown
    a time that is now in the future. An unread line may have the latest of these times."""
    found = SetBacks()
    _read(found, 90, 50, 60, 20)
    assert found.greatest("logs", 20) == 90
