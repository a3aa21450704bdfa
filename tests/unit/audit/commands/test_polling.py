"""Tests how `skidway audit wait` repeats its check until all given hosts are proven complete, and
what the command does while it cannot reach a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from skidway.audit.commands.polling import POLL_S, patiently
from skidway.audit.judgement.host_proofs import Proof
from skidway.audit.judgement.hosts import HostState, HostStatus
from skidway.cli.output import Progress
from skidway.errors import SkidwayError, Unreachable
from support.clock import ManualClock

STATE = HostState("dc1", "app1", HostStatus.REPORTING, expected=True)
SHORT, GOOD = [Proof(STATE, ("late",))], [Proof(STATE, ())]
AWAY = Unreachable("nobody answers")


class Looks:
    """Stands for the check that `wait` repeats until all hosts are proven complete. The method
    `look` makes the check: it returns the results that the constructor got, one after the other,
    and then the last result again and again. Each call takes `takes_s` seconds."""

    def __init__(self, *found: list[Proof] | Exception, takes_s: float = 0.0) -> None:
        self.found: Iterator[list[Proof] | Exception] = iter(found)
        self.last: list[Proof] | Exception = []
        self.clock, self.takes_s = ManualClock(), takes_s
        self.pauses: list[float] = []

    def look(self) -> list[Proof]:
        self.clock.advance(self.takes_s)
        self.last = next(self.found, self.last)
        if isinstance(self.last, Exception):
            raise self.last
        return self.last

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)

    def patiently(self, timeout_s: float) -> list[Proof]:
        return patiently(self.look, self.clock, self.pause, timeout_s, Progress("hosts", 1))


def test_it_ends_with_the_first_good_look() -> None:
    """`wait` pauses between its checks, and ends when a check finds that all hosts are proven
    complete."""
    looks = Looks(SHORT, SHORT, GOOD)
    assert looks.patiently(60) == GOOD
    assert looks.pauses == [POLL_S, POLL_S]


def test_it_ends_when_the_time_is_over() -> None:
    """When the allowed time is over, `wait` ends and says which hosts are not proven complete
    yet, and why. It makes at least one check, even if the allowed time is zero."""
    looks = Looks(SHORT)
    assert looks.patiently(2.5) == SHORT
    assert looks.pauses == [1.0, 1.0, 0.5]
    assert (looks := Looks(SHORT)).patiently(0) == SHORT
    assert looks.pauses == []


def test_long_looks_are_rare() -> None:
    """After a check that took long, the pause of `wait` is longer too, so that the command does not
    spend all its time on checks of a large fleet."""
    looks = Looks(SHORT, GOOD, takes_s=10)
    assert looks.patiently(100) == GOOD
    assert looks.pauses == [20]


def test_a_cluster_that_is_away_at_first_is_told_at_once() -> None:
    """If `wait` cannot reach a cluster for its first check, it fails at once, because the address
    may be wrong."""
    with pytest.raises(Unreachable):
        (looks := Looks(AWAY)).patiently(60)
    assert looks.pauses == []


def test_a_cluster_that_goes_away_may_come_back() -> None:
    """If `wait` cannot reach a cluster for its second or a later check, it continues, because the
    brokers may be restarting. It fails only if the cluster is still unreachable when the allowed
    time is over."""
    assert Looks(SHORT, AWAY, AWAY, GOOD).patiently(60) == GOOD
    with pytest.raises(Unreachable):
        Looks(SHORT, AWAY).patiently(3)


def test_a_mistake_is_no_reason_to_wait() -> None:
    """Any error other than an unreachable cluster ends `wait` at once."""
    with pytest.raises(SkidwayError, match="no roster"):
        Looks(SHORT, SkidwayError("no roster names it")).patiently(60)


def test_each_host_that_it_waits_for_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    """`wait` shows the hosts for which it still waits. Without a terminal it prints a line only if
    this list has changed, so that the log of an Ansible playbook stays short."""
    other = [Proof(replace(STATE, host=name), ("late",)) for name in ("b", "a", "d", "c")]
    looks = Looks(*[other] * 20, *[SHORT] * 20, GOOD)
    patiently(looks.look, looks.clock, looks.pause, 99, Progress("hosts", 4, plain_every_s=0))
    said = [line.split("4  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert said == ["waiting for a, b, c and 1 more", "waiting for app1"]
