"""The demo runs its programs as real processes. It stops them in the reverse order of their starts.
If it kills a program, it also kills all processes that this program has started."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.demo.programs import ProgramFailed, Programs, Stopped, session_members
from skidway.demo.site import Site
from support.processes import eventually

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
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    (tmp_path / "a_program.py").write_text(PROGRAM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Programs(Site(tmp_path, {}, ""), print) as made:
        yield made


def begin(programs: Programs, tmp_path: Path, *names: str) -> None:
    for name in names:
        programs.log(name).unlink(missing_ok=True)
        programs.begin(name, name, str(tmp_path / "order"), module="a_program")
        eventually(lambda: "ready" in programs.log(name).read_text(), what=name)  # noqa: B023


def test_programs_stop_in_the_reverse_of_their_first_start(
    programs: Programs, tmp_path: Path
) -> None:
    """The demo stops the programs in the reverse order of their first starts. A program that
    was killed and started again keeps its place in this order, so the agent stops before the
    broker."""
    begin(programs, tmp_path, "broker", "agent")
    programs.kill("broker")
    begin(programs, tmp_path, "broker")
    programs.__exit__()
    assert (tmp_path / "order").read_text().split() == ["agent", "broker"]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_what_a_program_has_started_goes_with_it(
    programs: Programs, tmp_path: Path, how: str
) -> None:
    """If the demo kills or stops a program, the program's child processes end, too, even if
    they have their own process groups, as Spark's Python workers do."""
    begin(programs, tmp_path, "loader")
    session = programs._running["loader"].pid
    assert len(session_members(session)) == 2
    getattr(programs, how)("loader")
    assert not session_members(session)


def test_a_program_that_ends_before_its_time_is_told(programs: Programs, tmp_path: Path) -> None:
    """If a program ends too early, every wait for another event fails with an error that gives the
    program's name and exit status."""
    begin(programs, tmp_path, "broker")
    os.kill(programs._running["broker"].pid, signal.SIGKILL)
    with pytest.raises(ProgramFailed, match="broker ended with status -9"):
        programs.until(lambda: False, "nothing")


def test_a_signal_ends_every_wait(programs: Programs, tmp_path: Path) -> None:
    """When the demo gets a signal, it raises `Stopped` only at its next wait. So it completes every
    start and stop that it has begun."""
    begin(programs, tmp_path, "broker")
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(Stopped) as stopped:
        programs.until(lambda: False, "nothing")
    assert stopped.value.args == (signal.SIGTERM,)
    with pytest.raises(Stopped):
        programs.ask("audit", "audit", "report")
