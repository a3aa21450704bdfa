"""Tests the check whether a process still runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.loader.state.process import Process

ABOVE_ALL_PIDS = 2**22 + 1
"""On Linux no process has an id above 2^22."""


def test_this_process_lives() -> None:
    """A process that runs is reported as alive."""
    assert Process.here("web1").is_alive() is True


def test_a_process_that_is_gone() -> None:
    """If no process has the stored process id, the process is reported as gone."""
    assert replace(Process.here("web1"), pid=ABOVE_ALL_PIDS).is_alive() is False


def test_a_number_that_another_process_got() -> None:
    """If a running process has the stored id, but began at another time than the stored time, it is
    another process. The original process is reported as gone."""
    assert replace(Process.here("web1"), started=1).is_alive() is False


@pytest.mark.parametrize("change", [{"boot": "x"}, {"boot": ""}, {"space": "pid:[1]"}])
def test_a_process_of_another_machine_is_not_judged(change: dict[str, str]) -> None:
    """For a process of another machine or container, or from before a restart of this machine, it
    is unknown whether the process is alive."""
    assert replace(Process.here("web1"), **change).is_alive() is None  # type: ignore[arg-type]
