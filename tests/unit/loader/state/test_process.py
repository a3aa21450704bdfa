"""Whether a process still runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.loader.state.process import Process

ABOVE_ALL_PIDS = 2**22 + 1
"""Linux gives no process a number above 2^22."""


def test_this_process_lives() -> None:
    """A process that runs is seen to run."""
    assert Process.here().is_alive() is True


def test_a_process_that_is_gone() -> None:
    """A number that no process has belongs to a process that is gone."""
    assert replace(Process.here(), pid=ABOVE_ALL_PIDS).is_alive() is False


def test_a_number_that_another_process_got() -> None:
    """If another process has the number now, which began at another time, the process is gone."""
    assert replace(Process.here(), started=1).is_alive() is False


@pytest.mark.parametrize("change", [{"boot": "x"}, {"boot": ""}, {"space": "pid:[1]"}])
def test_a_process_of_another_machine_is_not_judged(change: dict[str, str]) -> None:
    """Nobody can see from here whether a process of another machine, of another container, or of
    the time before a restart runs."""
    assert replace(Process.here(), **change).is_alive() is None  # type: ignore[arg-type]
