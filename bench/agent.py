"""Compares Skidway's agent (raw, and parsed into six fields) with rsyslog: each sends a file of log
lines to a broker.

The agent and rsyslog read the same file and write to one partition of the same Skidway broker, with
acknowledgements. rsyslog does not parse lines. The CPU seconds of each program include its start.
The benchmark reads them from /proc when the last line has arrived. The agent also does the rest of
its usual work: it records what it is about to send (its intents) and how far it has read (its
checkpoints), and sends the counts for the audit.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from bench.machine import cpu_seconds, resident_mb
from bench.measure import Row, Table, in_turn
from bench.produce import create
from bench.scale import scaled
from bench.sites import Program, answers, free_port, ours, running, skidway

LINES = scaled(4_000_000, 40_000)
ROUNDS = scaled(3, 1)
PATTERN = (
    r"(?P<date>\S+) (?P<time>\S+) (?P<pid>\S+) (?P<level>\S+) (?P<component>[^ ]+): (?P<content>.*)"
)
DEBIAN = ("rsyslog", "rsyslog-kafka")


def run() -> Table:
    """Measures lines per CPU second; the agent and rsyslog take turns."""
    provide_rsyslog()
    table = Table("agent: 144-byte lines from a file to an acknowledged record")
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        log = folder / "bench.log"
        write_lines(log, LINES)
        with (
            ours(folder) as (address, _, zookeeper),
            registry(folder, zookeeper.address) as schemas,
        ):

            def shipped(parser: str) -> Callable[[], float]:
                return lambda: agent(folder, address, schemas, log, parser)

            found = in_turn(
                {
                    "raw": shipped("raw"),
                    "regex": shipped("regex"),
                    "rsyslog": lambda: rsyslog(folder, address, log),
                },
                ROUNDS,
            )
        for parser in ("raw", "regex"):
            table.add(
                Row(
                    f"{parser} lines per CPU second",
                    "lines",
                    found[parser],
                    found["rsyslog"],
                    "rsyslog, unparsed",
                )
            )
    return table


def write_lines(path: Path, count: int) -> None:
    """Writes `count` lines of 144 bytes each. The lines are similar to HDFS's own log lines."""
    with path.open("w") as out:
        for i in range(count):
            head = (
                f"081109 {i % 240000:06d} {i % 977} INFO dfs.DataNode$PacketResponder: Received "
                f"block blk_{i * 7919} of size 67108864 from /10.251.{i % 256}."
            )
            out.write(head.ljust(143, "x")[:143] + "\n")


@contextlib.contextmanager
def registry(folder: Path, zookeeper: str) -> Iterator[str]:
    """Runs a schema registry inside the block, and yields its URL."""
    port, metrics = free_port(), free_port()
    program = Program(
        skidway(
            "registry",
            "run",
            "--set",
            f"listeners=http://127.0.0.1:{port}",
            "--set",
            f"zookeeper.connect={zookeeper}",
            "--set",
            f"metrics.listener=127.0.0.1:{metrics}",
        ),
        folder / "registry.out",
    )
    with running(program, lambda: answers(f"http://127.0.0.1:{metrics}/health")):
        yield f"http://127.0.0.1:{port}"


def agent(folder: Path, address: str, schemas: str, log: Path, parser: str) -> float:
    """Lines per CPU second of `skidway agent run`, with a new state directory for each run."""
    topic = f"bench-{parser}-{time.time_ns()}"
    create(address, topic)
    state, metrics = folder / f"state-{topic}", free_port()
    config = folder / f"{topic}.yml"
    config.write_text(
        yaml.safe_dump(
            {
                "bootstrap.servers": address,
                "schema.registry.url": schemas,
                "state.dir": str(state),
                "metrics.listener": f"127.0.0.1:{metrics}",
                "sources": [
                    {
                        "topic": topic,
                        "paths": [str(log)],
                        "parser": {"type": "raw"}
                        if parser == "raw"
                        else {"type": "regex", "pattern": PATTERN},
                    }
                ],
            }
        )
    )
    program = Program(skidway("agent", "run", "--config", str(config)), folder / f"{topic}.out")
    program.start()
    try:
        return until_arrived(address, topic, program)
    finally:
        program.stop()
        shutil.rmtree(state, ignore_errors=True)


def rsyslog(folder: Path, address: str, log: Path) -> float:
    """Lines per CPU second of rsyslog, which reads with imfile and sends with omkafka."""
    topic = f"bench-rsyslog-{time.time_ns()}"
    create(address, topic)
    work = folder / topic
    work.mkdir()
    config = work / "rsyslog.conf"
    config.write_text(f"""
global(workDirectory="{work}")
module(load="imfile" mode="inotify")
module(load="omkafka")
template(name="line" type="string" string="%msg%")
main_queue(queue.type="LinkedList" queue.size="200000" queue.dequeueBatchSize="4096")
input(type="imfile" File="{log}" Tag="bench" ruleset="ship" reopenOnTruncate="on")
ruleset(name="ship") {{
  action(type="omkafka" broker=["{address}"] topic="{topic}" template="line"
         confParam=["linger.ms=20", "acks=1", "queue.buffering.max.messages=1000000"])
}}
""")
    program = Program(["rsyslogd", "-n", "-f", str(config), "-i", str(work / "pid")], work / "out")
    program.start()
    try:
        return until_arrived(address, topic, program)
    finally:
        program.kill()


def until_arrived(address: str, topic: str, program: Program) -> float:
    """Waits until every line is in the topic, and returns lines per CPU second of the program."""
    from skidway.kafka.client import LATEST, Client
    from skidway.kafka.types import TopicPartition

    partition = TopicPartition(topic, 0)
    deadline = time.monotonic() + 300
    with Client(address) as client:
        while client.list_offsets({partition: LATEST})[partition].offset < LINES:
            if not program.running or time.monotonic() > deadline:
                raise RuntimeError(f"{topic}: the lines did not arrive\n{program.output()[-2000:]}")
            time.sleep(0.05)
    cpu = cpu_seconds(program.pid)
    print(f"  {topic}: {cpu:.1f} CPU s, {resident_mb(program.pid):.0f} MB", flush=True)
    return LINES / cpu


def provide_rsyslog() -> None:
    """Installs rsyslog with its Kafka output from Debian's packages if it is missing."""
    if shutil.which("rsyslogd") and list(Path("/usr/lib").glob("*/rsyslog/omkafka.so")):
        return
    subprocess.run(["apt-get", "update", "-q"], check=True, stdin=subprocess.DEVNULL)
    subprocess.run(
        ["apt-get", "install", "-q", "-y", "--no-install-recommends", *DEBIAN],
        check=True,
        stdin=subprocess.DEVNULL,
    )
