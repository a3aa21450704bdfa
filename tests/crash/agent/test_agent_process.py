"""A real agent loses no lines if it is killed, stopped or restarted, or lacks resources."""

import collections
import contextlib
import itertools
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.agent_process import AgentProcess, records, rows
from support.brokers import SkidwayBroker
from support.processes import NotReady, eventually, run_skidway
from support.promises import promise
from support.registry import Registry
from support.small_disks import KINDS, small_disk

Make = Callable[..., AgentProcess]


class Lines:
    """Writes lines that are all different, and keeps a list of these lines."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.written: list[str] = []

    def write(self, name: str, count: int, end: str = "\n") -> Path:
        path = self.folder / name
        with path.open("a") as out:
            for _ in range(count):
                line = f"line {len(self.written):07} of {name} {'x' * (len(self.written) % 60)}"
                self.written.append(line)
                out.write(line + end)
        return path

    def sizes(self) -> dict[Path, int]:
        return {path: path.stat().st_size for path in self.folder.iterdir()}

    def expect(self, found: list[str]) -> None:
        wanted, have = collections.Counter(self.written), collections.Counter(found)
        assert not wanted - have, f"lost: {list((wanted - have).elements())[:5]}"
        assert not have - wanted, f"doubled: {list((have - wanted).elements())[:5]}"


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    return Lines(tmp_path / "log")


def source(lines: Lines, pattern: str = "*", **others: Any) -> dict[str, Any]:
    return {"topic": "logs", "paths": [str(lines.folder / pattern)], **others}


def arrived(agent: AgentProcess, lines: Lines, broker: SkidwayBroker) -> None:
    """Waits until the agent has settled every byte of the files that `lines` has written. Then
    asserts that every line is in the topic `logs` once, not counting repeated records."""
    eventually(lambda: agent.settled(lines.sizes()), every_s=0.3, what="all settled")
    lines.expect([line for line, _, _ in rows(broker.address, "logs")])


@pytest.mark.quick
def test_kill_9_at_any_moment(agent: Make, lines: Lines, own_broker: SkidwayBroker) -> None:
    """Every line arrives once, even if the agent is killed again and again, at random moments."""
    process = agent(source(lines))
    moments = random.Random(7)
    for _ in range(6):
        lines.write("a.log", 20_000)
        lines.write("b.log", 500)
        process.start()
        with contextlib.suppress(NotReady):
            eventually(lambda: False, within_s=moments.uniform(0.0, 0.5))
        process.program.kill()
    process.start()
    lines.write("a.log", 10)
    arrived(process, lines, own_broker)


def test_an_orderly_end_leaves_nothing_to_send_again(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """When the agent has exited after SIGTERM, the broker has acknowledged everything that the
    agent sent. So the agent repeats no record after its next start."""
    process = agent(source(lines))
    lines.write("a.log", 30_000)
    process.start()
    eventually(lambda: list(rows(own_broker.address, "logs")), what="the first records")
    assert process.program.stop() == 0
    process.start()
    arrived(process, lines, own_broker)
    assert all(keep for _, keep, *_ in records(own_broker.address, "logs"))
    assert process.program.stop() == 0


def test_rotations_while_the_agent_stands_still(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """If a log is rotated fifty times by rename while the agent is suspended, the agent reads all
    rotated files when it continues."""
    process = agent(source(lines))
    lines.write("app.log", 200)
    process.start()
    eventually(lambda: process.settled(lines.sizes()), what="the first lines")
    process.program.signal(signal.SIGSTOP)
    for number in range(50):
        lines.write("app.log", 50)
        (lines.folder / "app.log").rename(lines.folder / f"app.log.{number}")
        lines.write("app.log", 5)
    process.program.signal(signal.SIGCONT)
    arrived(process, lines, own_broker)
    eventually(
        lambda: any(file["state"] == "closed" for file in process.ledger()),
        what="the file that was known before its rotation to be closed",
    )


def rotate(lines: Lines, *, keep: int = 99) -> None:
    """Renames app.log to app.log.1, app.log.1 to app.log.2 and so on. At most `keep` rotated files
    stay."""
    last = 1
    while (lines.folder / f"app.log.{last}").exists() and last < keep:
        last += 1
    for number in range(last, 1, -1):
        (lines.folder / f"app.log.{number - 1}").rename(lines.folder / f"app.log.{number}")
    (lines.folder / "app.log").rename(lines.folder / "app.log.1")


def rotations(lines: Lines, count: int = 6, *, every_s: float = 0.05, keep: int = 99) -> None:
    """Rotates the files, writes 100 lines to the new app.log, and waits `every_s`. Does all this
    `count` times."""
    for _ in range(count):
        rotate(lines, keep=keep)
        lines.write("app.log", 100)
        with contextlib.suppress(NotReady):
            eventually(lambda: False, within_s=every_s, every_s=every_s)


@promise("1 generations")
@pytest.mark.quick
@pytest.mark.parametrize("how", ["running", "standing still", "killed"])
def test_rotations_out_of_the_pattern(
    agent: Make, lines: Lines, own_broker: SkidwayBroker, how: str
) -> None:
    """The agent's pattern does not match the names of the rotated files. Still the agent reads each
    rotated file once, even a file that was rotated before the agent could see it under the log's
    own name."""
    process = agent(source(lines, "app.log"))
    lines.write("app.log", 100)
    process.start()
    eventually(lambda: process.settled(lines.sizes()), what="the first lines")
    if how == "standing still":
        process.program.signal(signal.SIGSTOP)
    elif how == "killed":
        process.program.kill()
    rotations(lines)
    if how == "standing still":
        process.program.signal(signal.SIGCONT)
    elif how == "killed":
        process.start()
    rotations(lines)
    arrived(process, lines, own_broker)
    assert "generations_unseen" not in process.program.output()


@pytest.mark.parametrize("how", ["running", "standing still", "killed"])
def test_generations_that_were_deleted_unread_are_declared(
    agent: Make, lines: Lines, own_broker: SkidwayBroker, how: str
) -> None:
    """If only two rotated files are kept, and files are deleted before the agent has read them, the
    agent declares the loss of their lines. It sends no line twice."""
    process = agent(source(lines, "app.log"))
    lines.write("app.log", 100)
    process.start()
    eventually(lambda: process.settled(lines.sizes()), what="the first lines")
    if how == "standing still":
        process.program.signal(signal.SIGSTOP)
    elif how == "killed":
        process.program.kill()
    rotations(lines, keep=2)
    if how == "standing still":
        process.program.signal(signal.SIGCONT)
    elif how == "killed":
        process.start()
    eventually(lambda: process.settled(lines.sizes()), what="what is still there")

    def found() -> collections.Counter[str]:
        return collections.Counter(line for line, _, _ in rows(own_broker.address, "logs"))

    def is_declared() -> bool:
        return "generations_unseen" in process.program.output()

    if how == "running":  # the agent may still read files that it opened before their deletion
        eventually(
            lambda: is_declared() or len(found()) == len(lines.written),
            every_s=0.2, what="all lines, or a declared loss",
        )  # fmt: skip
    else:
        assert is_declared()
        assert len(found()) < len(lines.written)
    assert max(found().values()) == 1
    assert found().keys() <= set(lines.written)


def test_a_partial_line_that_is_completed_after_a_kill(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """If a line without a line terminator stops growing, the agent sends the line's bytes as a
    record. If the agent is then killed and the rest of the line is written, the agent sends the
    rest as a second record. No byte is sent twice."""
    process = agent(source(lines))
    lines.write("a.log", 1, end="")
    process.start()
    eventually(lambda: list(rows(own_broker.address, "logs")), what="the partial line")
    process.program.kill()
    with (lines.folder / "a.log").open("a") as out:
        out.write(" and more\n")
    lines.written.append(" and more")
    process.start()
    arrived(process, lines, own_broker)


def test_the_broker_is_killed_while_it_takes(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """If the broker is killed while it receives batches, the agent waits, sends the batches again
    and continues. No line is lost or doubled."""
    process = agent(source(lines))
    lines.write("a.log", 40_000)
    process.start()
    own_broker.crash()
    lines.write("a.log", 40_000)
    own_broker.crash()
    arrived(process, lines, own_broker)


def test_the_registry_is_down_at_start(
    agent: Make, lines: Lines, own_broker: SkidwayBroker, registry: Registry
) -> None:
    """If the registry is down when the agent starts, the agent reads no lines and says why. After
    the registry has started, all lines arrive."""
    process = agent(source(lines))
    lines.write("a.log", 100)
    registry.program.kill()
    process.start(ready=False)
    eventually(lambda: "registry" in str(process.health().get("reason", "")), what="the reason")
    assert process.health()["ok"] is False
    assert process.ledger() == []
    registry.program.start().wait_until(registry.ready)
    process.program.wait_until(process.healthy)
    arrived(process, lines, own_broker)


class Page(BaseHTTPRequestHandler):
    """A proxy that answers each request with a page, with the next of several statuses."""

    statuses = itertools.cycle((301, 302, 401, 403, 404, 200))

    def do_POST(self) -> None:
        self.send_response(next(self.statuses))
        self.send_header("Location", "https://sso.example.com/login?from=here")
        self.send_header("Content-Length", "17")
        self.end_headers()
        self.wfile.write(b"<html>no</html>\r\n")

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None: ...


def test_a_proxy_answers_for_the_registry_at_start(
    agent: Make, lines: Lines, own_broker: SkidwayBroker, registry: Registry
) -> None:
    """While a proxy answers for the registry, with a page or a redirect, an agent that starts waits
    and says so. After the registry has answered, all lines arrive."""
    process = agent(source(lines))
    lines.write("a.log", 100)
    registry.program.kill()
    with ThreadingHTTPServer(("127.0.0.1", registry.port), Page) as proxy:
        threading.Thread(target=proxy.serve_forever).start()
        process.start(ready=False)
        told = "schema.registry.url"
        eventually(lambda: told in str(process.health().get("reason", "")), what="the reason")
        proxy.shutdown()
    registry.program.start().wait_until(registry.ready)
    process.program.wait_until(process.healthy)
    arrived(process, lines, own_broker)


def test_the_registry_is_down_at_the_next_start(
    agent: Make, lines: Lines, own_broker: SkidwayBroker, registry: Registry
) -> None:
    """If the registry is down when an agent starts again, the agent delivers: its state has the ids
    of its schemas. Its /health says that the registry did not answer."""
    process = agent(source(lines))
    lines.write("a.log", 100)
    process.start()
    arrived(process, lines, own_broker)
    process.program.kill()
    registry.program.kill()
    lines.write("a.log", 100)
    process.start()
    arrived(process, lines, own_broker)
    assert "No schema registry answers" in process.health()["registry"]
    registry.program.start().wait_until(registry.ready)


def test_many_files_with_few_descriptors(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """If there are more files than `max.open.files`, the agent reads all of them without reaching
    the kernel's limit on open files."""
    process = agent(source(lines))
    process.settings["max.open.files"] = 32
    for number in range(300):
        lines.write(f"{number}.log", 3)
    process.start()
    _, hard = resource.prlimit(process.program.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.program.pid, resource.RLIMIT_NOFILE, (80, hard))
    for number in range(300):
        lines.write(f"{number}.log", 2)
    arrived(process, lines, own_broker)
    assert len(os.listdir(f"/proc/{process.program.pid}/fd")) < 80


def test_one_agent_to_a_state(agent: Make, lines: Lines) -> None:
    """While an agent runs, a second agent with the same state directory refuses to start, and its
    error names the process of the first agent."""
    process = agent(source(lines)).start()
    again = run_skidway("agent", "run", "--config", str(process.config))
    assert again.returncode == 65
    assert f"process {process.program.pid}" in again.stderr


@promise("2 corrupt state")
@pytest.mark.quick
def test_a_damaged_state_stops_the_agent_with_a_sentence(agent: Make, lines: Lines) -> None:
    """If an agent's state is damaged, the agent prints one sentence and exits. It never begins with
    a new state on its own."""
    process = agent(source(lines))
    lines.write("a.log", 10)
    process.start()
    assert process.program.stop() == 0
    database = process.state / "agent.db"
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = bytearray(database.read_bytes())
    content[4096:8192] = os.urandom(4096)
    database.write_bytes(content)
    done = run_skidway("agent", "run", "--config", str(process.config))
    assert done.returncode == 65
    assert "cannot be used" in done.stderr or "damaged" in done.stderr
    assert bytes(content) == database.read_bytes()


@pytest.mark.root
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_an_agent_that_starts_without_room_says_so_and_goes_on_with_room(
    agent: Make, lines: Lines, own_broker: SkidwayBroker, tmp_path: Path, kind: str, end: str
) -> None:
    """If the disk of its state has not one free byte when the agent starts, the agent ends with one
    sentence, and with a status after which systemd starts it again. If the disk becomes full while
    the agent runs, the agent waits and says so. When there is space, it sends every line once."""
    process = agent(source(lines))
    with small_disk(kind, tmp_path, 4 << 20) as disk:
        process.settings["state.dir"] = str(disk.path / "state")
        process.state = disk.path / "state"
        lines.write("a.log", 500)
        process.start()
        eventually(lambda: process.settled(lines.sizes()), what="all settled")
        getattr(process.program, end)()
        disk.fill()
        lines.write("a.log", 500)
        before = len(process.program.output())
        status = process.start(ready=False).program.wait()
        said = [each for each in process.program.output()[before:].splitlines() if each[0] != "{"]
        assert (status, len(said)) == (1, 1), said
        assert f"the disk of {process.state / 'agent.db'} is full" in said[0]
        disk.make_room()
        process.start()
        eventually(lambda: process.settled(lines.sizes()), what="all settled")
        disk.fill()
        lines.write("a.log", 30_000)
        eventually(lambda: "full" in str(process.health().get("status")), what="it waits")
        disk.make_room()
        arrived(process, lines, own_broker)
        assert process.program.stop() == 0


def test_brokers_that_are_away_are_named(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """While no broker acknowledges the records of a partition, /health answers 503 and names the
    partition."""
    process = agent(source(lines))
    lines.write("a.log", 10)
    process.start()
    eventually(lambda: process.settled(lines.sizes()))
    own_broker.program.kill()
    lines.write("a.log", 10)
    said = eventually(lambda: process.health().get("troubles"), what="it says who is away")
    assert isinstance(said, dict)
    assert "no broker has acknowledged anything for" in said["logs-0"]
    assert not process.health()["ok"]
    assert "brokers_silent" in process.program.output()
    own_broker.start()
    eventually(lambda: process.settled(lines.sizes()))
    eventually(lambda: process.health()["ok"], what="well again")
    assert process.program.stop() == 0


def test_a_wrong_pattern_is_named(agent: Make, lines: Lines) -> None:
    """If a source's pattern is wrong, so that its lines are rejected, /health answers 503 and names
    the topic. The agent's log says how many lines of how many files were rejected, and names the
    file and the position of the first."""
    wrong = {**source(lines), "parser": {"type": "regex", "pattern": r"(?P<none>[A-Z]{40})"}}
    process = agent(wrong)
    lines.write("a.log", 100)
    process.start(ready=False)
    said = eventually(lambda: process.health().get("rejecting"), what="it says who rejects")
    assert isinstance(said, dict)
    assert "100 of the last 100 lines did not fit" in said[wrong["topic"]]
    assert not process.health()["ok"]
    eventually(lambda: "lines_rejected" in process.program.output(), what="the log says so")
    (told,) = (
        found
        for each in process.program.output().splitlines()
        if (found := json.loads(each))["event"] == "lines_rejected"
    )
    told.pop("time")
    assert told == {
        "level": "warning", "program": "agent", "event": "lines_rejected",
        "topic": wrong["topic"], "lines": 100, "reasons": {"no-match": 100},
        "files": 1, "path": str(lines.folder / "a.log"), "position": 0,
    }  # fmt: skip
    assert process.program.stop() == 0


def test_people_read_what_an_agent_wrote(
    agent: Make, lines: Lines, own_broker: SkidwayBroker, registry: Registry
) -> None:
    """`skidway consume` decodes records with the registry's schemas and prints them as JSON.
    `skidway rejected show` prints each rejected line with the reason, and with its position in the
    log file."""
    number = {"type": "regex", "pattern": r"line (?P<number>[0-9]+) (?P<rest>.*)"}
    process = agent(source(lines, parser=number, **{"max.line.bytes": 100}))
    path = lines.write("a.log", 3)
    with path.open("a") as out:
        out.write("a line\twithout a number\n")
    process.start()
    eventually(lambda: process.settled(lines.sizes()))
    assert process.program.stop() == 0
    at = ("--topic", "logs", "--max", "3", "--bootstrap-server", own_broker.address)
    done = run_skidway("consume", *at, "--from-beginning", "--registry", registry.url)
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"number": line.split()[1], "rest": line.split(" ", 2)[2]} for line in lines.written
    ], done.stderr
    done = run_skidway("consume", *at, "--since", "1h", "--json", "--registry", registry.url)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["value"]["number"] for row in rows] == ["0000000", "0000001", "0000002"]
    assert {row["schema_id"] for row in rows} == {1}
    dead = "http://127.0.0.1:1"
    done = run_skidway("consume", *at, "--from-beginning", "--registry", dead)
    assert done.returncode == 3
    done = run_skidway("consume", *at, "--from-beginning", "--raw", "--registry", dead)
    assert done.returncode == 0
    shown = run_skidway("rejected", "show", "logs", *at[-2:])
    head, row = shown.stdout.splitlines()
    assert head.split() == ["TIME", "REASON", "HOST", "FILE", "POSITION", "LINE"]
    assert row.split()[1:2] == ["no-match:"]
    position = sum(len(line) + 1 for line in lines.written)
    assert row.endswith(f"{path}  {position:>8}  a line\\twithout a number")
    (found,) = json.loads(run_skidway("rejected", "show", "logs", "--json", *at[-2:]).stdout)
    assert (found["line"], found["position"]) == ("a line\twithout a number", position)
    assert run_skidway("rejected", "show", "logs.rejected", *at[-2:]).stdout == shown.stdout


def test_a_disk_that_moved_to_another_machine(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """If a disk is moved to another machine, the agent refuses to start there. After an operator
    has run `skidway agent state adopt`, the agent continues at its old positions in the files, and
    every line arrives once."""
    process = agent(source(lines))
    lines.write("a.log", 1000)
    process.start()
    eventually(lambda: process.settled(lines.sizes()))
    assert process.program.stop() == 0
    lines.write("a.log", 1000)
    with contextlib.closing(sqlite3.connect(process.state / "agent.db")) as state:
        state.execute("UPDATE meta SET value = 'another' WHERE key = 'machine'")
        state.commit()
    process.start(ready=False)
    assert process.program.wait() == 65
    assert "belongs to another machine (another, here is" in process.program.output()
    adopt = ("agent", "state", "adopt", "--config", str(process.config))
    done = run_skidway(*adopt)
    assert done.returncode == 0, done.stderr
    assert "belongs to this machine now, in epoch 2" in done.stdout
    process.start()
    arrived(process, lines, own_broker)
    assert process.program.stop() == 0


@promise("1 adopted copy")
def test_an_older_copy_that_is_adopted_takes_no_line_for_another(
    agent: Make, lines: Lines, own_broker: SkidwayBroker
) -> None:
    """If the agent's state and a log are restored from an older snapshot, the lines that are
    written afterwards are delivered. They do not count as repeats of the lines that were at the
    same positions before."""
    process = agent(source(lines))
    path = lines.write("a.log", 500)
    process.start()
    eventually(lambda: process.settled(lines.sizes()))
    assert process.program.stop() == 0
    copy, size = process.state.with_name("copy"), path.stat().st_size
    shutil.copytree(process.state, copy)
    process.start()
    lines.write("a.log", 300)
    eventually(lambda: process.settled(lines.sizes()))
    assert process.program.stop() == 0
    shutil.rmtree(process.state)
    copy.rename(process.state)
    os.truncate(path, size)
    with path.open("a") as out:
        out.writelines(f"another {number}\n" for number in range(500))
    process.start(ready=False)
    assert process.program.wait() == 65
    assert "is an older copy of itself" in process.program.output()
    run_skidway("agent", "state", "adopt", "--new-epoch", "--config", str(process.config))
    process.start()
    wanted = {*lines.written, *(f"another {number}" for number in range(500))}

    def there() -> set[str]:
        return {line for line, _, _ in rows(own_broker.address, "logs")}

    eventually(lambda: there() >= wanted, every_s=0.3, what="every line arrives")
    assert process.program.stop() == 0
    by_origin = collections.defaultdict[tuple[int, int], set[str]](set)
    for line, file, first in rows(own_broker.address, "logs"):
        by_origin[file, first].add(line)
    assert all(len(found) == 1 for found in by_origin.values())
    assert there() == wanted
