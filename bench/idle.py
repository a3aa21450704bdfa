"""Measures what an idle agent, and an idle rsyslog, costs with 20,000 files to which no program
writes.

Compares Skidway's agent with rsyslog's module imfile, which uses inotify. The agent has default
settings, and rsyslog has the settings of `rsyslog.program`. The two programs run one after the
other. Each program is measured only after it has delivered every line and has been idle for a
while. CPU is the process's CPU time over a minute, read from /proc, in percent of one core. imfile
keeps every file open, with two descriptors for each file. So rsyslog gets fewer files than the
agent if this machine's limit of descriptors for a process requires it.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path

import yaml

from bench import rsyslog
from bench.agent import registry
from bench.machine import cpu_seconds, resident_mb
from bench.measure import Row, Table
from bench.produce import create
from bench.scale import scaled
from bench.sites import Program, free_port, ours, skidway
from skidway.kafka.client import LATEST, Client
from skidway.kafka.types import TopicPartition

FILES = scaled(20_000, 200)
DESCRIPTORS_APART, DESCRIPTORS_OF_A_FILE = 500, 2
"""How many file descriptors rsyslog needs for everything except log files, and how many for each
log file."""
DIRECTORIES = 20
LINES = 2
SETTLE_S = scaled(30.0, 2.0)
MEASURE_S = scaled(60.0, 2.0)
"""A measurement lasts this many seconds. The agent checks all files once a minute
(`reconcile.interval.ms`), so a shorter measurement would include this check only by chance.
"""
WITHIN_S = 600.0

Figures = tuple[float, float, float]
"""CPU in percent of a core, resident memory in MiB, and the number of open descriptors."""


def run() -> Table:
    """Measures CPU, memory and descriptors of the agent and of rsyslog while no file changes."""
    rsyslog.provide()
    table = Table(f"idle: {FILES:,} files, tailed and quiet, over {MEASURE_S:.0f} s")
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        write_files(folder / "logs", FILES)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - DESCRIPTORS_APART
        fewer = min(FILES, most // DESCRIPTORS_OF_A_FILE)
        write_files(folder / "fewer", fewer)
        with (
            ours(folder) as (address, _, zookeeper),
            registry(folder, zookeeper.address) as schemas,
        ):
            mine = agent(folder, address, schemas)
            other = peer(folder, address, fewer)
    units = (("CPU", "% of a core"), ("resident memory", "MB"), ("descriptors", ""))
    for (what, unit), own, theirs in zip(units, mine, other, strict=True):
        table.add(Row(what, unit, (own,), (theirs,), f"rsyslog imfile, {fewer:,} files"))
    return table


def write_files(folder: Path, count: int) -> None:
    """Writes files with a few lines each, in directories as on a host with many services."""
    for number in range(count):
        directory = folder / f"service-{number % DIRECTORIES}"
        directory.mkdir(parents=True, exist_ok=True)
        text = "".join(f"line {line} of file {number}\n" for line in range(LINES))
        (directory / f"{number}.log").write_text(text)


def agent(folder: Path, address: str, schemas: str) -> Figures:
    """Measures `skidway agent run` with default settings."""
    topic = "bench-idle-skidway"
    create(address, topic)
    config = folder / "agent.yml"
    settings = {
        "bootstrap.servers": address,
        "schema.registry.url": schemas,
        "state.dir": str(folder / "state"),
        "metrics.listener": f"127.0.0.1:{free_port()}",
        "sources": [{"topic": topic, "paths": [str(folder / "logs" / "*" / "*.log")]}],
    }
    config.write_text(yaml.safe_dump(settings))
    program = Program(skidway("agent", "run", "--config", str(config)), folder / "agent.out")
    program.start()
    try:
        return at_rest(address, topic, program, FILES)
    finally:
        program.stop()


def peer(folder: Path, address: str, files: int) -> Figures:
    """Measures rsyslog with the log files in the folder `fewer`, because rsyslog cannot open as
    many files as the agent gets. files: the number of files in this folder."""
    topic = "bench-idle-rsyslog"
    create(address, topic)
    work = folder / topic
    work.mkdir()
    program = rsyslog.program(work, address, topic, f"{folder}/fewer/*/*.log")
    program.start()
    try:
        return at_rest(address, topic, program, files)
    finally:
        program.kill()


def at_rest(address: str, topic: str, program: Program, files: int) -> Figures:
    """Waits until every line has arrived and the program is idle. Then measures the program, and
    returns its figures."""
    partition = TopicPartition(topic, 0)
    deadline = time.monotonic() + WITHIN_S
    with Client(address) as client:
        while client.list_offsets({partition: LATEST})[partition].offset < files * LINES:
            if not program.running or time.monotonic() > deadline:
                raise RuntimeError(f"{topic}: the lines did not arrive\n{program.output()[-2000:]}")
            time.sleep(0.5)
    time.sleep(SETTLE_S)
    before, begin = cpu_seconds(program.pid), time.monotonic()
    time.sleep(MEASURE_S)
    share = 100 * (cpu_seconds(program.pid) - before) / (time.monotonic() - begin)
    descriptors = len(os.listdir(f"/proc/{program.pid}/fd"))
    return share, resident_mb(program.pid), float(descriptors)
