"""The audit's roster and its gate work with a real agent, broker, counter and collector. The roster
is the list of hosts that the audit expects, and the gate is the command `skidway audit wait`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from support.processes import (
    call_skidway,
    eventually,
    free_port,
)
from support.promises import promise
from support.small_fleet import APP1, APP2, Fleet, small_fleet


@pytest.fixture
def fleet(zookeeper: str, tmp_path: Path) -> Iterator[Fleet]:
    with small_fleet(zookeeper, tmp_path) as made:
        yield made


@promise("6 gate")
def test_waiting_ends_when_the_agent_has_sealed_and_not_without_it(fleet: Fleet) -> None:
    """A seal is a message which says that an agent's counts are final up to a given time. `skidway
    audit wait` exits with status 0 as soon as the host's agent has sent a seal, even if the host
    has no new lines. `wait` can read the seal from the audit topic or from the collector's store.
    If the agent is stopped, or if the counter does not count, `wait` exits with status 1."""
    fleet.start_counter()
    fleet.write(0)  # the log exists: a source that never had a file would hold the gate
    fleet.agent.start()
    assert fleet.wait("--bootstrap-server", fleet.address)[0] == 0, "it has written nothing"
    fleet.write(1_000)
    status, said = fleet.wait("--bootstrap-server", fleet.address)
    assert status == 0, said
    assert "1 host sealed past the bucket of" in said
    fleet.start_collector()
    status, said = fleet.wait("--json")
    assert status == 0, said
    assert fleet.counter.stop() == 0
    since = this_second()
    fleet.write(10)
    eventually(lambda: "broker main is short by 10 of 10" in fleet.reasons(), what="it is missed")
    status, said = fleet.ask(
        "wait", "--config", str(fleet.config), "--host", "app1", "--since", since,
        "--timeout-s", "5",
    )  # fmt: skip
    assert status == 1
    assert "app1 (main): " in said
    assert "is incomplete: broker main is short by 10 of 10" in said
    fleet.start_counter()
    status, said = fleet.ask(
        "wait", "--config", str(fleet.config), "--host", "app1", "--since", since
    )
    assert status == 0, said
    assert fleet.agent.program.stop() == 0
    status, said = fleet.wait(timeout_s=3)
    assert status == 1
    assert "app1 (main): " in said
    assert "topic logs is sealed only to" in said


def this_second() -> str:
    """Returns the current time in whole seconds, in UTC, in the format that operators use, such as
    2026-01-02T03:04:05Z."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def test_hosts_that_nobody_heard_and_clusters_that_nobody_reaches(fleet: Fleet) -> None:
    """`skidway audit wait` exits with status 1 if the audit expects the host, but no message of the
    host's agent was ever received. The roster is the list of expected hosts. If the host is not in
    the roster, `wait` exits with status 2, because this is a mistake of the caller. If the cluster
    does not answer, the exit status is 3."""
    fleet.write_roster(APP1, APP2)
    status, said = fleet.wait(host="app2", timeout_s=1)
    assert (status, "app2 (main): no agent of it was ever heard." in said) == (1, True), said
    status, said = fleet.wait(host="app3")
    assert (status, "no roster names this host" in said) == (2, True), said
    nobody = f"127.0.0.1:{free_port()}"
    assert fleet.wait("--bootstrap-server", nobody)[0] == 3


@promise("6 newer version")
def test_a_message_of_a_newer_version_is_told_by_name_and_nothing_is_complete(
    fleet: Fleet,
) -> None:
    """If the audit topic contains a message with an unknown schema, no bucket (time window of a
    topic) is complete, a metric counts the message, and the collector logs the schema once. The
    verdicts, /health, `skidway audit wait` and `skidway audit hosts` name the unknown schema."""
    fleet.start_counter()
    fleet.agent.start()
    fleet.write(100)
    fleet.start_collector()
    assert fleet.wait()[0] == 0
    fleet.publish(b"\xc3\x01fromnext" + b"whatever it says")
    name = b"fromnext".hex()
    eventually(lambda: fleet.health()[0] == 503, what="it is seen")
    assert name in fleet.health()[1]["schemas"]
    eventually(lambda: fleet.metric("skidway_audit_unread_messages") == 1, what="it is counted")
    eventually(lambda: name in fleet.reasons(), what="the buckets are judged with it")
    eventually(lambda: "complete" not in fleet.verdicts(), what="no bucket is complete")
    status, said = fleet.wait(timeout_s=5)
    assert (status, name in said) == (1, True), said
    assert name in fleet.ask("hosts", "--config", str(fleet.config))[1]
    status, said = fleet.wait("--bootstrap-server", fleet.address, timeout_s=5)
    assert (status, name in said) == (1, True), said
    assert fleet.collector.output().count("audit_schema_unknown") == 1
    assert fleet.collector.stop() == 0


@promise("6 expected hosts")
def test_the_collector_takes_a_roster_that_changes(fleet: Fleet) -> None:
    """The collector loads a changed roster without a restart. If the new roster is invalid, the
    collector keeps the old roster and logs the error once. /health shows the error until the roster
    is valid. The audit no longer expects a host if the roster says that the host is retired. If the
    roster no longer says so, the audit expects the host again."""
    fleet.start_counter()
    fleet.agent.start()
    fleet.write(100)
    fleet.start_collector()
    eventually(lambda: fleet.health()[0] == 200, what="healthy")
    assert fleet.wait()[0] == 0
    assert "app2" not in fleet.reasons()
    fleet.write_roster(APP1, APP2)
    words = "host app2 is expected, but no agent of it reported yet"
    eventually(lambda: words in fleet.reasons(), what="app2 is expected")
    fleet.write_roster(text="hosts:\n  - {host: app1}\n")
    eventually(lambda: fleet.health()[0] == 503, what="the roster is refused")
    assert "the key 'hosts[0].cluster' is missing" in fleet.health()[1]["roster"]
    assert words in fleet.reasons(), "the last good one holds"
    assert fleet.collector.output().count("roster_refused") == 1
    fleet.write_roster(APP1, {"host": "app2", "cluster": "main", "retired": True})
    eventually(lambda: fleet.health()[0] == 200, what="healthy again")
    eventually(lambda: words not in fleet.reasons(), what="app2 is retired")
    fleet.write_roster(APP1, APP2)
    eventually(lambda: words in fleet.reasons(), what="app2 is expected again")
    eventually(lambda: fleet.metric("skidway_audit_never_heard_hosts") == 1, what="it is counted")
    assert fleet.metric("skidway_audit_expected_hosts") == 2
    assert fleet.metric("skidway_audit_silent_hosts") == 0
    assert fleet.collector.stop() == 0
    fleet.write_roster(text="hosts: no")
    assert fleet.collector.start().wait() == 78
    assert "hosts must be a list" in fleet.collector.output()


def test_hosts_are_listed_with_their_state(fleet: Fleet) -> None:
    """`skidway audit hosts` exits with status 1 while an expected host is silent or has never sent
    a message. Otherwise it exits with status 0.
    """
    fleet.agent.start()
    hosts = ["hosts", "--json", "--config", str(fleet.config)]

    def reporting() -> bool:
        return fleet.ask(*hosts)[0] == 0

    eventually(reporting, every_s=0.5, what="app1 reports")
    fleet.write_roster(APP1, APP2, {"host": "app7", "cluster": "main", "retired": True})
    done = call_skidway("audit", *hosts)
    states = {x["host"]: x["state"] for x in json.loads(done.stdout)["hosts"]}
    assert done.returncode == 1
    assert states == {"app1": "reporting", "app2": "never heard", "app7": "retired"}
    fleet.write_roster(APP1)
    fleet.agent.program.kill()
    eventually(lambda: not reporting(), every_s=0.5, what="app1 is silent")
    status, said = fleet.ask("hosts", "--config", str(fleet.config))
    assert status == 1
    assert "silent since" in said
    assert "1 of 1 expected hosts does not report (silent: app1)." in said


@promise("6 last word")
@pytest.mark.quick
def test_a_host_that_left_for_good_is_complete(fleet: Fleet) -> None:
    """If a host is retired but not drained, the verdict on its last buckets stays "unknown". A
    bucket is a time window of a topic. After the host has been drained with `skidway agent drain`,
    these buckets are complete. If the host's agent is started again, the audit waits for the agent
    as before, and counts the agent's new lines."""
    fleet.agent.settings["seal.interval.ms"] = 600_000
    # A bucket is due `lateness.ms` after its end. This setting is so large that even a slow drain
    # ends before the bucket of the drained lines is due. An ordinary seal proves a bucket complete
    # only if it is made after the bucket is due. So only a last word (the final message of a
    # drained agent) can prove this bucket complete.
    fleet.settings["lateness.ms"] = 10_000
    fleet.config.write_text(yaml.safe_dump(fleet.settings))
    fleet.start_counter()
    fleet.start_collector()
    fleet.agent.start()
    fleet.write(100)
    log = fleet.folder / "log" / "a.log"
    eventually(lambda: fleet.agent.settled({log: log.stat().st_size}), what="all delivered")
    assert fleet.agent.program.stop() == 0
    fleet.write(10)  # only the drain reads these ten lines, because the agent is stopped
    fleet.write_roster({**APP1, "retired": True})
    eventually(lambda: "app1 (retired): the agent is silent: unknown since" in fleet.reasons())
    done = call_skidway("agent", "drain", "--config", str(fleet.agent.config))
    assert done.returncode == 0, done.stderr
    eventually(lambda: fleet.verdicts() == {"complete"}, what="complete to its end")
    fleet.write_roster(APP1)
    eventually(lambda: "the agent is silent: unknown since" in fleet.reasons(), what="expected")
    fleet.agent.settings["seal.interval.ms"] = 500
    fleet.agent.start()
    fleet.write(10)
    eventually(lambda: fleet.counted() == 120, what="what came then")
    eventually(lambda: fleet.verdicts() == {"complete"}, what="complete with what came then")
