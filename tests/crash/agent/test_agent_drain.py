"""`skidway agent drain` works with real files and a real broker. Normally it delivers all lines and
sends the last word of each topic. A last word is a final message to the audit, which says that the
host leaves for good. If there are obstacles, drain prints a sentence for each obstacle and sends no
last word."""

import collections
import contextlib
import os
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skidway.audit.topic import messages, topic
from skidway.audit.topic.messages import Seal
from skidway.clock import SystemClock
from skidway.kafka.client import Client, Fetcher
from support.agent_process import AgentProcess, rows
from support.brokers import SkidwayBroker
from support.processes import Program, eventually, skidway
from support.promises import promise
from support.proxy import Fault, Proxy, produces

Make = Callable[..., AgentProcess]
LOGS = "logs"
UNPRIVILEGED = (
    ("setpriv", "--bounding-set", "-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
)
"""The beginning of a command line that drops capabilities. Without these capabilities even root
cannot open a file whose mode forbids opening."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    return folder / "a.log"


def source(log: Path, name: str = LOGS, pattern: str = "*.log") -> dict[str, Any]:
    return {"topic": name, "paths": [str(log.parent / pattern)]}


def write(log: Path, first: int, count: int) -> None:
    with log.open("a") as out:
        out.writelines(f"line {number}\n" for number in range(first, first + count))


def drain(
    agent: AgentProcess, timeout_s: float = 100, *prefix: str
) -> subprocess.CompletedProcess[str]:
    command = skidway(
        "agent", "drain", "--config", str(agent.config), "--timeout-s", str(timeout_s),
        "--log-level", "error",
    )  # fmt: skip
    return subprocess.run(
        [*prefix, *command], capture_output=True, text=True, timeout=300, check=False
    )


def arrived(broker: SkidwayBroker, count: int) -> None:
    """Asserts that the topic has each of the first `count` lines exactly once, not counting
    repeated records."""
    found = collections.Counter(line for line, _, _ in rows(broker.address, LOGS))
    assert found == collections.Counter(f"line {number}" for number in range(count))


def last_words(broker: SkidwayBroker) -> set[str]:
    """Returns the topics whose newest seal in the audit topic is a last word (the final seal of an
    agent that leaves). A seal gives the time up to which the agent has counted all lines of a
    topic."""
    newest: dict[str, tuple[int, bool]] = {}
    with Client(broker.address) as client:
        bounds = topic.bounds(client, [messages.TOPIC])
        for _, _, value, _ in topic.read(client, Fetcher(client), bounds, SystemClock()):
            message = messages.decode(value)
            for sealed in message.topics if isinstance(message, Seal) else ():
                known = newest.get(sealed.source.topic, (0, False))
                newest[sealed.source.topic] = max(known, (message.number, sealed.final))
    return {name for name, (_, final) in newest.items() if final}


@contextmanager
def written_to(log: Path, first: int, *, every_s: float = 0.01) -> Iterator[list[int]]:
    """Appends lines to the file during the `with` block. `first` is the number of lines that the
    file has already. Yields a list whose only item is the current number of lines in the file."""
    over, written = threading.Event(), [first]

    def append() -> None:
        while not over.wait(every_s):
            write(log, written[0], 1)
            written[0] += 1

    writer = threading.Thread(target=append)
    writer.start()
    try:
        yield written
    finally:
        over.set()
        writer.join()


def test_drained_and_started_again(agent: Make, log: Path, own_broker: SkidwayBroker) -> None:
    """A drain delivers the lines that the stopped agent had not read, and sends the last word,
    which is the agent's final message to the audit. A second drain succeeds as well. When the agent
    is started again, it withdraws the last word and continues. Each line arrives once."""
    process = agent(source(log))
    write(log, 0, 1_000)
    process.start()
    eventually(lambda: list(rows(own_broker.address, LOGS)), what="the first lines")
    assert process.program.stop() == 0
    write(log, 1_000, 20_000)
    for _ in range(2):
        done = drain(process)
        assert (done.returncode, done.stdout) == (
            0, "drained: the last word is said, 1 topics, nothing lies unread\n"
        ), done.stderr  # fmt: skip
        arrived(own_broker, 21_000)
        assert last_words(own_broker) == {LOGS, "logs.rejected"}
    process.start()
    eventually(lambda: not last_words(own_broker), what="the last word taken back")
    write(log, 21_000, 10)
    eventually(lambda: process.settled({log: log.stat().st_size}), what="the new lines")
    assert process.program.stop() == 0
    assert last_words(own_broker) == set()
    arrived(own_broker, 21_010)


def test_drained_while_lines_are_appended(
    agent: Make, log: Path, own_broker: SkidwayBroker
) -> None:
    """The last word is the agent's final message to the audit. While a program still writes to a
    file, drain does not send the last word. After the writing has stopped, drain sends the last
    word."""
    process = agent(source(log))
    write(log, 0, 5_000)
    process.start()
    eventually(lambda: process.settled({log: log.stat().st_size}))
    assert process.program.stop() == 0
    with written_to(log, 5_000) as written:
        done = drain(process, 3)
        assert done.returncode == 1
        assert "not drained: not everything could be delivered in time\ntopic logs: " in done.stderr
        assert "topic logs: buckets of this host that were not due at 2" in done.stderr
        assert last_words(own_broker) == set()
        assert unsettled(process) == 0, "what was read is acknowledged, counted and said"
    done = drain(process)
    assert done.returncode == 0, done.stderr
    assert last_words(own_broker) == {LOGS, "logs.rejected"}
    arrived(own_broker, written[0])


def unsettled(agent: AgentProcess) -> int:
    """Returns the number of unsettled rows in the agent's state. There are three kinds: intents,
    counts that are not yet in a message to the audit, and messages that are not delivered yet."""
    uri = f"file:{agent.state / 'agent.db'}?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=60)) as state:
        counts = (
            state.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("intents", "sums", "outbox")
        )
        return sum(counts)


@promise("6 last word")
def test_killed_in_the_middle_and_drained_again(
    proxy: Proxy, agent: Make, log: Path, own_broker: SkidwayBroker
) -> None:
    """A drain first stores which lines it is going to send (intents), and then sends them. If the
    drain is killed after the first step or during the second, it sends no last word. (A last word
    is the agent's final message to the audit.) The next drain delivers the remaining lines, each
    once, and sends the last word."""
    process = agent(source(log))
    write(log, 0, 10)
    process.start()
    eventually(lambda: process.settled({log: log.stat().st_size}))
    assert process.program.stop() == 0
    lines = 10
    for fault in (Fault.HOLD_REQUEST, Fault.HOLD_ANSWER):
        write(log, lines, 30_000)
        lines += 30_000
        held = proxy.inject(fault, produces(LOGS))
        command = skidway("agent", "drain", "--config", str(process.config))
        draining = Program(command, log.parent / "drain.out").start()
        held.wait_for_hit()
        draining.kill()
        held.drop()
        assert last_words(own_broker) == set()
    done = drain(process)
    assert done.returncode == 0, done.stderr
    arrived(own_broker, lines)
    assert last_words(own_broker) == {LOGS, "logs.rejected"}


def test_brokers_that_are_away(agent: Make, log: Path, own_broker: SkidwayBroker) -> None:
    """If no broker can be reached, drain ends within its time limit, with status 3. It sends no
    last word. (A last word is the agent's final message to the audit.)"""
    process = agent(source(log))
    write(log, 0, 10)
    process.start()
    eventually(lambda: process.settled({log: log.stat().st_size}))
    assert process.program.stop() == 0
    write(log, 10, 10)
    own_broker.program.kill()
    done = drain(process, 2)
    assert done.returncode == 3
    assert "not drained: " in done.stderr
    assert "topic logs: buckets of this host that were not due at 2" in done.stderr
    own_broker.start()
    assert last_words(own_broker) == set()
    assert drain(process).returncode == 0
    arrived(own_broker, 20)


def test_a_file_that_cannot_be_read(agent: Make, log: Path, own_broker: SkidwayBroker) -> None:
    """A last word is the agent's final message to the audit about a topic. If a file cannot be
    read, `drain` prints the file's path, and sends no last word for the file's topic. It sends the
    last words of all other topics. After the file has become readable, the next drain delivers the
    file's lines and sends the topic's last word. If the file then grows and becomes unreadable
    again, the next drain withdraws this last word."""
    hidden = log.parent / "hidden.txt"
    process = agent(source(log), source(log, "other", "*.txt"))
    write(log, 0, 10)
    process.start()
    eventually(lambda: process.settled({log: log.stat().st_size}))
    assert process.program.stop() == 0
    write(hidden, 0, 10)
    hidden.chmod(0)
    done = drain(process, 3, *UNPRIVILEGED)
    assert done.returncode == 1
    assert "topic other: buckets of this host that were not due at 2" in done.stderr
    assert "topic logs: " not in done.stderr
    assert f"topic other: {hidden} cannot be read: Permission denied" in done.stderr
    assert last_words(own_broker) == {LOGS, "logs.rejected"}
    hidden.chmod(0o600)
    assert drain(process).returncode == 0
    assert last_words(own_broker) == {LOGS, "logs.rejected", "other", "other.rejected"}
    assert len(list(rows(own_broker.address, "other"))) == 10
    write(hidden, 10, 5)
    hidden.chmod(0)
    assert drain(process, 3, *UNPRIVILEGED).returncode == 1
    assert last_words(own_broker) == {LOGS, "logs.rejected"}


def test_an_agent_that_still_runs_is_not_drained(agent: Make, log: Path) -> None:
    """While the agent runs, `skidway agent drain` prints one sentence and does nothing. The agent
    continues."""
    process = agent(source(log)).start()
    done = drain(process)
    assert done.returncode == 65
    assert f"is in use by process {process.program.pid}" in done.stderr
    assert "stop that one first" in done.stderr
    assert process.program.stop() == 0


def test_a_host_without_a_state_has_nothing_to_drain(agent: Make, log: Path) -> None:
    """If the agent's state directory does not exist, `skidway agent drain` prints the directory's
    path and exits with status 65. If the directory is empty, the command says that no agent ever
    ran with this directory, creates no file, and exits with status 0."""
    process = agent(source(log))
    process.command()
    done = drain(process)
    assert done.returncode == 65
    assert f"there is no directory {process.state}" in done.stderr
    process.state.mkdir()
    done = drain(process)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("drained: no agent ever ran with the state ")
    assert list(process.state.iterdir()) == []
