"""The supervisor of the demo runs the demo's programs as real processes. It stops the programs in
the reverse order of their starts. If it kills a program, it also kills all processes that this
program has started."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.demo.supervisor import ProgramFailed, Stopped, Supervisor, session_members
from support.processes import WITHIN_S, eventually

PROGRAM = """
import os, signal, subprocess, sys
name, log = sys.argv[1:]
def stop(*_):
    open(log, "a").write(name + " ")
    sys.exit()
signal.signal(signal.SIGTERM, stop)
subprocess.Popen(["sleep", "600"], process_group=0)
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    (tmp_path / "a_program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    made = Supervisor(tmp_path)
    yield made
    made.close()


def begin(supervisor: Supervisor, tmp_path: Path, *names: str) -> None:
    for name in names:
        supervisor.log(name).unlink(missing_ok=True)
        supervisor.begin(name, name, str(tmp_path / "order"), module="a_program")
        eventually(lambda: "ready" in supervisor.log(name).read_text(), what=name)  # noqa: B023


def test_programs_stop_in_the_reverse_of_their_first_start(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """The supervisor stops the programs in the reverse order of their first starts. A program that
    was killed and started again keeps its place in this order, so the agent stops before the
    broker."""
    begin(supervisor, tmp_path, "broker", "agent")
    supervisor.kill("broker")
    begin(supervisor, tmp_path, "broker")
    supervisor.close()
    assert (tmp_path / "order").read_text().split() == ["agent", "broker"]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_a_program_has_started_goes_with_it(
    supervisor: Supervisor, tmp_path: Path, how: str
) -> None:
    """If the supervisor kills or stops a program, the program's child processes end, too, even if
    they have their own process groups, as Spark's Python workers do."""
    begin(supervisor, tmp_path, "loader")
    session = supervisor.pid("loader")
    assert len(session_members(session)) == 2
    getattr(supervisor, how)("loader")
    assert not session_members(session)


def test_a_program_that_ends_before_its_time_is_told(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """If a program ends too early, every wait for another event fails with an error that gives the
    program's name and exit status."""
    begin(supervisor, tmp_path, "broker")
    os.kill(supervisor.pid("broker"), signal.SIGKILL)
    with pytest.raises(ProgramFailed, match="broker ended with status -9"):
        supervisor.wait_for(lambda: False, "nothing", WITHIN_S)


def test_a_signal_ends_every_wait(supervisor: Supervisor, tmp_path: Path) -> None:
    """When the supervisor gets a signal, it raises `Stopped` only at its next wait. So it completes
    every start and stop that it has begun."""
    begin(supervisor, tmp_path, "broker")
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Stopped) as stopped:
        supervisor.wait_for(lambda: False, "nothing", WITHIN_S)
    assert stopped.value.number == signal.SIGTERM
    with pytest.raises(Stopped):
        supervisor.ask("topics", "list")
