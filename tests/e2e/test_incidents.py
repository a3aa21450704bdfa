"""Tests incidents with real programs. Each test causes an incident, and asks `skidway audit
why` for the cause, the host, the file and the next command. Then it runs this command, and checks
that the bucket becomes complete or is accepted."""

from __future__ import annotations

import contextlib
import resource
import secrets
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from skidway.demo.site import DATACENTER, OFFLINE
from skidway.kafka.protocol.frames import RequestHeader
from support.incident_site import HOST, TOPICS, Incidents, read
from support.pipeline import AUDIT_TOPIC, source
from support.processes import Program, accepts, eventually, free_port, run_skidway, skidway
from support.proxy import Fault

TIMED = {
    "parser": {"type": "regex", "pattern": r"(?P<time>\S+) (?P<line>.*)"},
    "timestamp": {"fields": ["time"], "format": "rfc3339"},
}
SLOW = """
import sys
from skidway import clock
now = clock.SystemClock.time_ms
clock.SystemClock.time_ms = lambda self: now(self) - 600_000
from skidway.cli.commands import main
sys.exit(main(sys.argv[1:]))
"""
"""A Python program that runs the `skidway` command given by its arguments. The command's clock is
ten minutes behind."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incidents]:
    made = Incidents(tmp_path_factory.mktemp("incidents"))
    try:
        made.pipeline.start()
        yield made
    finally:
        made.pipeline.stop()


@pytest.fixture(autouse=True)
def _all_well(site: Incidents) -> Iterator[None]:
    """After each test, starts the programs that do not run."""
    yield
    site.pipeline.revive()


def test_an_agent_was_killed(site: Incidents) -> None:
    """If an agent was killed, `skidway audit why` names its silent host and a command that starts
    the agent. After the start, the agent reads the remaining lines, and their bucket becomes
    complete."""
    log = site.log("killed-agent")
    log.write("app.log", 10)
    site.settle(log)
    site.wait_host()
    site.pipeline.kill("agent")
    log.write("app.log", 10)
    found = site.cause("killed-agent", "host silent")
    assert (found["host"], found["tier"]) == (HOST, "agent")
    assert (found["command"]["host"], site.started_by(found["command"])) == (HOST, "agent")
    site.run(found["command"])
    site.settle(log)
    site.healed("killed-agent")


def test_a_loader_was_killed(site: Incidents) -> None:
    """If a loader was killed before it loaded some records, `skidway audit why` names the
    partitions and offsets of these records, and the first of their lines. It also names a command
    that loads the records."""
    log = site.log("late-load")
    log.write("app.log", 100)
    site.settle(log)
    site.pipeline.wait_mirrored(["late-load"])
    loader = site.pipeline.loader(["late-load"]).start()
    loader.kill()
    found = site.cause("late-load", "load not run", offsets=100, loads=True)
    assert found["tier"] == "hdfs"
    assert sum(each["end"] - each["first"] for each in found["offsets"]) == 100
    assert found["line"]["text"] == log.lines[0]
    assert found["command"]["line"].endswith(f"load run --config {site.config('loader')}")
    assert site.run(found["command"]).returncode == 0
    site.healed("late-load", loads=True)


def test_a_log_was_deleted_unread(site: Incidents) -> None:
    """If an agent declared a loss, `skidway audit why` names the host, path and file id of the lost
    lines, and the first lost byte. The lines cannot come back, so `why` names a command that
    accepts the bucket."""
    log = site.log("deleted-log")
    path = log.write("app.log", 10)
    site.settle(log)
    read = path.stat().st_size
    site.pipeline.kill("agent")
    log.write("app.log", 10)
    path.unlink()
    site.pipeline.start("agent")
    found = site.cause("deleted-log", "declared loss")
    assert (found["host"], found["path"]) == (HOST, str(path))
    assert found["file"] is not None
    assert found["ranges"] == [{"first": read, "end": None}]
    eventually(lambda: site.cause("deleted-log", "declared loss")["of"]["due"])
    accept_all(site, "deleted-log", "declared loss")
    assert "accepted" in site.why("deleted-log", found["of"]["bucket"])["buckets"][0]["verdict"]


def test_lines_were_rejected(site: Incidents) -> None:
    """If lines were rejected, `skidway audit why` names the host of these lines, shows one of the
    lines, and names a command that shows all of the lines. The audit's web page shows one of the
    lines, too. A person who has looked at the lines can accept the bucket."""
    log = site.log("rejected-lines")
    log.write("app.log", 50)
    log.append("app.log", ["no number here"] * 5)
    site.settle(log)
    site.wait_rejects("rejected-lines")
    found = site.cause("rejected-lines", "rejected")
    assert (found["host"], found["of"]["topic"]) == (HOST, f"{DATACENTER}.rejected-lines.rejected")
    assert (found["line"]["kind"], found["line"]["text"]) == ("rejected", "no number here")
    shown = site.run(found["command"])
    assert "no number here" in shown.stdout, shown
    rejects = site.pipeline.site.url("dashboard") + "/rejects.json"
    eventually(lambda: "no number here" in read(rejects), what="the page's example")
    accept_all(site, "rejected-lines", "rejected")


def test_a_pattern_was_wrong(site: Incidents) -> None:
    """If most lines of a topic are rejected, `skidway audit why` says that the topic's regular
    expression is wrong. It names a command that shows which lines do not match the expression."""
    log = site.log("wrong-pattern")
    log.write("app.log", 50)
    site.settle(log)
    site.wait_rejects("wrong-pattern")
    found = site.cause("wrong-pattern", "wrong pattern")
    assert found["host"] == HOST
    assert found["line"]["text"].startswith("line 0000")
    validate = f"agent validate --config {site.config('agent')}"
    assert found["command"]["host"] == HOST
    assert found["command"]["line"].endswith(validate)
    said = site.run(found["command"])
    assert said.returncode == 1
    assert "line 00000000" in said.stdout + said.stderr, said
    accept_all(site, "wrong-pattern", "wrong pattern")


def test_a_mirror_stopped(site: Incidents) -> None:
    """If nothing arrives from a cluster because the mirror has stopped, `skidway audit why` does
    not say that the cluster's hosts are silent. It names the command that asks the mirror for its
    status, and this status names the cluster from which the mirror does not copy."""
    log = site.log("stopped-mirror")
    log.write("app.log", 10)
    site.settle(log)
    site.healed("stopped-mirror")
    held = site.pipeline.proxy.inject(Fault.HOLD_REQUEST, of_the_mirror)
    log.write("app.log", 10)
    found = site.cause("stopped-mirror", "cluster silent")
    assert (found["host"], found["tier"]) == (HOST, "mirror")
    status_of = f"mirror status --config {site.config('broker-offline')}"
    assert found["command"]["line"].endswith(status_of)
    status = site.run(found["command"])
    assert "dc1" in status.stdout, status
    held.release()
    site.settle(log)
    site.healed("stopped-mirror")


def test_the_registry_is_down(site: Incidents) -> None:
    """An agent with a schema that it does not know waits for the registry. It tells the audit so:
    page, report and `skidway audit why` say that the registry does not answer, wherever they run,
    and name a command that starts the registry. They do not call the host silent."""
    TOPICS["new-schema"] = {"parser": {"type": "regex", "pattern": r"line (?P<first>\d+) .*"}}
    log, new = site.log("no-registry"), site.log("new-schema")
    log.write("app.log", 10)
    site.settle(log)
    for name in ("registry", "agent"):
        site.pipeline.kill(name)
    log.write("app.log", 10)
    new.write("app.log", 10)
    site.rewrite()
    site.pipeline.programs["agent"].start()
    command = site.shows_first("no-registry", "registry away")
    found = site.cause("no-registry", "registry away")
    assert "No schema registry answers" in found["words"]
    assert found["command"] == command
    assert site.started_by(command) == "registry"
    site.run(command)
    site.settle(log)
    site.settle(new)
    site.healed("no-registry")
    site.shows_first("no-registry", None)


def test_an_agent_starts_again_without_registry(site: Incidents) -> None:
    """While the registry is down, an agent that starts again delivers: its state has the ids of its
    schemas."""
    log = site.log("no-registry")
    for name in ("registry", "agent"):
        site.pipeline.kill(name)
    log.write("app.log", 10)
    site.pipeline.programs["agent"].start()
    site.settle(log)
    site.healed("no-registry")


def test_a_broker_is_down(site: Incidents) -> None:
    """If the brokers of a data center are down, page, report and `skidway audit why` say that the
    cluster does not answer, and name the command that starts the broker. They do not say that its
    hosts are silent or that its counter stopped. The mirror's status and the /health of the
    mirroring broker say it, too."""
    log = site.log("stopped-mirror")
    log.write("app.log", 10)
    site.settle(log)
    site.healed("stopped-mirror")
    site.pipeline.kill("broker-dc1")
    log.write("app.log", 10)
    site.shows_first("stopped-mirror", "cluster away")
    command = site.starts_next("broker-dc1")
    assert command["host"] == HOST
    offline = site.pipeline.site.health("broker-offline")
    assert f"Cluster {DATACENTER} does not answer" in read(offline)
    status = run_skidway("mirror", "status", "--config", str(site.config("broker-offline")))
    assert status.returncode == 3
    assert f"away: Cluster {DATACENTER} does not answer" in status.stdout
    page = read(site.pipeline.site.url("dashboard") + "/mirrors")
    assert f"unknown: Cluster {DATACENTER} does not answer" in page
    assert "systemctl start" not in read(site.pipeline.site.url("dashboard") + "/")
    site.run(command)
    site.settle(log)
    site.healed("stopped-mirror")
    site.shows_first("stopped-mirror", None)


def test_the_broker_that_the_audit_reads_is_down(site: Incidents) -> None:
    """If the brokers that the collector reads are down, page, report and `skidway audit why` say so
    first, and name the command that starts them. They call no host silent, because nothing of any
    host can be read."""
    log = site.log("stopped-mirror")
    log.write("app.log", 10)
    site.settle(log)
    site.healed("stopped-mirror")
    site.pipeline.kill("broker-offline")
    command = site.shows_first("stopped-mirror", "cluster away")
    assert site.started_by(command) == "broker-offline"
    site.run(command)
    site.healed("stopped-mirror")
    site.shows_first("stopped-mirror", None)


def test_zookeeper_is_down(site: Incidents) -> None:
    """If ZooKeeper is down, page, report and `skidway audit why` say so first, even if an agent
    waits for the registry because of it."""
    site.pipeline.kill("zookeeper")
    command = site.shows_first("killed-agent", "zookeeper away")
    assert site.started_by(command) == "zookeeper"
    site.run(command)
    site.shows_first("killed-agent", None)


def test_a_log_cannot_be_read(site: Incidents) -> None:
    """If an agent cannot read a log any more, page and report say so first, and `skidway audit why`
    names the file, the reason and a command that shows what is there. If the log can be read again,
    all is well."""
    log, away = site.log("unreadable-log"), site.folder / "elsewhere.log"
    away.write_text("")
    (log.folder / "app.log").symlink_to(away)
    log.write("app.log", 10)
    site.settle(log)
    site.healed("unreadable-log")
    kept = away.rename(site.folder / "kept.log")
    site.shows_first("unreadable-log", "file unreadable")
    found = site.cause("unreadable-log", "file unreadable")
    path = str(log.folder / "app.log")
    assert (found["host"], found["path"]) == (HOST, path)
    assert path in found["words"]
    assert site.run(found["command"]).stdout.rstrip().endswith(str(away))
    kept.rename(away)
    site.healed("unreadable-log")


def test_a_counter_is_down(site: Incidents) -> None:
    """If a counter is down, page, report and `skidway audit why` say so first, and name the command
    that starts it."""
    log = site.log("killed-agent")
    site.pipeline.kill("count-dc1")
    log.write("app.log", 10)
    site.settle(log)
    command = site.shows_first("killed-agent", "counter stopped")
    found = site.cause("killed-agent", "counter stopped", tier="broker")
    assert found["command"] == command
    assert (found["host"], site.started_by(found["command"])) == (HOST, "count-dc1")
    site.run(found["command"])
    site.healed("killed-agent")


def test_the_collector_is_down(site: Incidents) -> None:
    """If the collector is down, reports and `skidway audit why` say so first, at once, and name the
    command that starts it."""
    site.pipeline.kill("audit")
    for verb in (("why",), ("report",)):
        [first, *_] = site.asked(*verb)["causes"]
        assert first["cause"] == "collector stopped"
        assert site.started_by(first["command"]) == "audit"
    site.run(first["command"])
    site.shows_first("killed-agent", None)


def test_a_schema_is_incompatible(site: Incidents) -> None:
    """If the registry refuses an agent's new schema, the agent ends. `skidway audit why` names the
    agent's host and a command that starts the agent. If the agent is started with the new schema,
    it ends again and logs the refusal. If it is started with the old schema, it delivers the
    remaining lines."""
    log, good = site.log("bad-schema"), dict(TOPICS["bad-schema"])
    log.write("app.log", 10)
    site.settle(log)
    site.wait_host()
    site.pipeline.kill("agent")
    log.write("app.log", 10)
    TOPICS["bad-schema"]["parser"] = {"type": "regex", "pattern": r"line (?P<other>\d+) .*"}
    site.rewrite()
    found = site.cause("bad-schema", "host silent")
    assert (found["command"]["host"], site.started_by(found["command"])) == (HOST, "agent")
    program = site.pipeline.programs["agent"].start()
    assert program.wait() == 78
    assert "incompatible" in program.output().splitlines()[-1]
    TOPICS["bad-schema"] = good
    site.rewrite()
    site.run(found["command"])
    site.settle(log)
    site.healed("bad-schema")


def test_a_disk_of_a_broker_is_full(site: Incidents) -> None:
    """If a broker's disk is full, agents wait. If `skidway audit why` runs on an agent's host, it
    quotes the agent's /health, which names the partition."""
    log = site.log("full-disk")
    log.write("app.log", 10)
    site.settle(log)
    site.healed("full-disk")
    with full_disk(site.pipeline.programs["broker-dc1"]):
        log.append("app.log", [secrets.token_hex(100) for _ in range(100)])
        found = site.cause("full-disk", "agent held up")
        assert found["host"] == HOST
        assert "full-disk-" in found["words"], found
        assert found["command"]["line"].startswith("df -h /"), found
        assert "Use%" in site.run(found["command"]).stdout
    site.settle(log)
    site.healed("full-disk")


def test_the_clock_of_a_host_is_wrong(site: Incidents) -> None:
    """If a host's clock is behind, `skidway audit why` says so, and does not say that the host is
    silent."""
    folder = site.folder / "slow-clock"
    config = site.pipeline.site.config("slow")
    settings = yaml.safe_load(site.pipeline.site.config("agent").read_text()) | {
        "host.name": "slow",
        "state.dir": str(site.pipeline.site.data("slow")),
        "metrics.listener": f"127.0.0.1:{free_port()}",
        "sources": [source("slow-clock", folder, **TIMED)],
    }
    config.write_text(yaml.safe_dump(settings))
    arguments = ["agent", "run", "--config", str(config)]
    slow = Program([sys.executable, "-c", SLOW, *arguments], site.folder / "slow.out")
    right = Program(skidway(*arguments), site.folder / "right.out")
    now = datetime.now(UTC)
    site.log("slow-clock").append(
        "app.log", [f"{now:%Y-%m-%dT%H:%M:%SZ} line {n}" for n in range(9)]
    )
    try:
        slow.start()
        found = site.cause("slow-clock", "clock")
        assert (found["host"], found["tier"]) == ("slow", "agent")
        assert found["command"] == {"host": "slow", "line": "timedatectl set-ntp true"}
        slow.kill()
        right.start()
        site.healed("slow-clock")
    finally:
        for program in (slow, right):
            program.kill()


def test_a_partition_was_lost(site: Incidents) -> None:
    """If a broker acknowledged records and then lost them, `skidway audit why` says that these
    records are missing in the tier broker: the broker's counter could not read them. Nothing can
    restore the records, so a person accepts the bucket."""
    log = site.log("lost-partition")
    # These programs are stopped, so that neither the counter nor the mirror reads the records
    # before they are lost.
    for name in ("count-dc1", "broker-offline"):
        site.pipeline.kill(name)
    # A second partition must have records that are not lost. Otherwise the counter would never
    # count the topic, and `why` would name the missing tier instead. The partition of a file
    # depends on its file id, which is random, so files are written until two partitions have
    # records.
    filled: list[Path] = []
    for n in range(100):
        log.write(f"app{n}.log", 10)
        site.settle(log)
        logs = site.pipeline.site.data("broker-dc1").glob("lost-partition-?/*.log")
        filled = [x.parent for x in logs if x.stat().st_size]
        if len(filled) > 1:
            break
    lost, _ = filled
    site.pipeline.kill("broker-dc1")
    away = lost.rename(site.folder / lost.name)
    for name in ("broker-dc1", "broker-offline"):
        port = site.pipeline.site.ports[name]
        site.pipeline.programs[name].start().wait_until(lambda port=port: accepts(port))
    site.pipeline.programs["count-dc1"].start()
    found = site.cause("lost-partition", "records missing", tier="broker")
    assert (found["place"], found["host"]) == (DATACENTER, HOST)

    def shown() -> bool:
        # When the audit knows on which host the mirror runs, `why` names the command that shows the
        # mirror's status.
        command = site.cause("lost-partition", "records missing", tier="broker")["command"]
        is_of_mirror = "mirror status" in command["line"]
        return is_of_mirror and lost.name in site.run(command).stdout

    eventually(shown, every_s=1, what="the mirror names the partition")
    accept_all(site, "lost-partition", None)
    site.pipeline.kill("broker-dc1")
    away.rename(lost)
    site.pipeline.start("broker-dc1")


def test_rows_were_doubled(site: Incidents) -> None:
    """If a Parquet file of the output was copied beside itself, a recount reports the copy.
    `skidway audit why` then names the copy and a command that recounts the rows. After the copy is
    deleted, this command finds no difference."""
    log = site.log("doubled-rows")
    log.write("app.log", 100)
    site.settle(log)
    site.pipeline.wait_mirrored(["doubled-rows", AUDIT_TOPIC])
    site.pipeline.load(["doubled-rows"])
    site.healed("doubled-rows", loads=True)
    [rows] = Path(site.pipeline.site.output, f"{DATACENTER}.doubled-rows").rglob("*.parquet")
    copy = shutil.copy(rows, rows.with_name("copy.parquet"))
    output = ("--output", site.pipeline.site.output, "--topic", f"{DATACENTER}.doubled-rows")
    assert site.asked("recount", *output, "--tell", loads=True)["status"] == 1
    found = site.cause("doubled-rows", "output changed", loads=True)
    assert (found["tier"], found["host"]) == ("hdfs", HOST)
    assert "copy.parquet" in found["words"]
    assert site.run(found["command"]).returncode == 1
    Path(copy).unlink()
    assert site.run(found["command"]).returncode == 0
    site.healed("doubled-rows", loads=True)


@contextlib.contextmanager
def full_disk(program: Program) -> Iterator[None]:
    """While the `with` block runs, no file of the program can grow beyond a few KB, as on a full
    disk."""
    unlimited = resource.prlimit(program.pid, resource.RLIMIT_FSIZE, (4_096, -1))
    try:
        yield
    finally:
        resource.prlimit(program.pid, resource.RLIMIT_FSIZE, unlimited)


def of_the_mirror(header: RequestHeader, body: memoryview) -> bool:
    """Returns whether the offline cluster's mirror has sent this request."""
    return header.client_id == f"skidway-mirror-{OFFLINE}"


def accept_all(site: Incidents, topic: str, cause: str | None) -> None:
    """For each bucket with the cause `cause`, runs the command that `skidway audit why` gives for
    accepting this cause. If `cause` is None, accepts every cause. Repeats this until `why` names no
    bucket.
    """

    def accepted() -> bool:
        document = site.why(topic)
        for bucket in document["buckets"]:
            for each in bucket["causes"]:
                if cause in (None, each["cause"]) and each["accept"] is not None:
                    done = site.run(each["accept"])
                    assert done.returncode in (0, 2), done  # 2: already accepted
        return document["status"] == 0 and not document["buckets"]

    eventually(accepted, every_s=0.5)
