"""Describes this machine in one line, which is printed below every table of results, and measures
the CPU time and memory of processes."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import tempfile
from pathlib import Path

from skidway.demo.programs import session_members


def describe() -> str:
    """One line about this machine: processor, cores, memory, kernel, and Python version."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB, "
        f"Linux {platform.release()}, Python {platform.python_version()}"
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def cpu_seconds(pid: int) -> float:
    """The user and system CPU time that a process and its threads have used so far, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def family_cpu_seconds(pid: int) -> float:
    """The CPU time, in seconds, of a process and all its running descendants, such as a JVM that a
    start script runs."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process ended meanwhile
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    children = [each for each, parent in parents.items() if parent == pid]
    return cpu_seconds(pid) + sum(map(family_cpu_seconds, children))


class Family:
    """A program that runs in a POSIX session of its own, and all other processes of that session.
    If a process has ended, `cpu_seconds` still counts its CPU time, as read by the last call of
    `cpu_seconds` before the process ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._cpu_s: dict[int, float] = {}

    def cpu_seconds(self) -> float:
        """The CPU time that all processes have used so far, in seconds."""
        for pid in session_members(self.process.pid):
            with contextlib.suppress(OSError):  # the process ended meanwhile
                self._cpu_s[pid] = cpu_seconds(pid)
        return sum(self._cpu_s.values())

    def kill(self) -> None:
        """Kills every process that still runs."""
        for pid in session_members(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def resident_mb(self) -> float:
        """Resident memory of all processes now, in MiB."""
        total = 0.0
        for pid in session_members(self.process.pid):
            with contextlib.suppress(OSError):
                total += resident_mb(pid)
        return total


def resident_mb(pid: int) -> float:
    """Resident memory of a process now, in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def warm_memory(size_bytes: int) -> None:
    """Fills memory (the page cache) with a temporary file, and deletes the file. For the next
    second or two, the virtual machine on which the benchmark runs then really has this memory.

    A virtual machine returns free memory to its host. When the virtual machine uses a returned page
    again, the host has a page fault. On this machine the page cache then fills at about 200 MB/s
    instead of 3 GB/s. So without this function, a benchmark that writes would measure the host, not
    the broker.
    """
    block = bytes(1 << 20)
    with tempfile.TemporaryFile() as file:
        for _ in range(size_bytes // len(block)):
            file.write(block)
