"""Skidway can be installed at a site whose operator already has ZooKeeper, Apache Kafka, a
registry, HDFS with Kerberos and Spark.

The inventory names these services. On Debian 12 hosts, the playbooks install the missing programs:
an agent, the audit, a loader, and the broker of another cluster. Each test continues where the
previous test ended.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.packaging import wheels
from support import hosts
from support.control_node import WHEELS, ControlNode
from support.existing_inventory import APPLICATION, EDGE, HOSTS, LINES, SERVER, TOPIC, inventory
from support.existing_services import KEYTAB, LOADER, ExistingServices
from support.fleet import NEXT, OLD
from support.hosts import Run
from support.processes import eventually, skidway

pytestmark = pytest.mark.operations

PROGRAMS = {APPLICATION: {"agent"}, SERVER: {"audit", "loader"}, EDGE: {"broker"}}
UNITS = {
    APPLICATION: ["skidway-agent"],
    SERVER: ["skidway-audit", "skidway-audit-count@dc1", "skidway-audit-count@edge"],
    EDGE: ["skidway-broker"],
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExistingFleet]:
    """Bare hosts, the operator's services in the hosts' network, and a control node with Skidway's
    wheels (Python packages)."""
    for version in (OLD, NEXT):
        wheels.collect(version)
    with hosts.running(HOSTS) as run:
        services = ExistingServices(run, tmp_path_factory.mktemp("existing"))
        with services.running():
            yield ExistingFleet(run, services, OLD)


def test_one_playbook_installs_what_is_missing_and_uses_what_is_there(fleet: ExistingFleet) -> None:
    """site.yml installs the missing programs and uses the existing services, and a second run
    changes nothing. No host gets a ZooKeeper, a registry, or a broker for the cluster that Apache
    Kafka serves."""
    fleet.write("before")
    fleet.control.succeed("site")
    for name, programs in PROGRAMS.items():
        host = fleet.run.hosts[name]
        assert set(host.read("ls /opt/skidway/current").split()) == programs
        running = host.read(f"systemctl is-active {' '.join(UNITS[name])}").split()
        assert running == ["active"] * len(UNITS[name])
    again = fleet.control.succeed("site")
    assert not again.changed
    assert {counts["changed"] for counts in again.recap.values()} == {0}


def test_lines_become_rows_and_are_complete(fleet: ExistingFleet) -> None:
    """The application's lines go through the operator's Apache Kafka and Spark into the operator's
    HDFS. The files there belong to the loader's user and contain every line once and in order. The
    audit reports the host as complete in the tiers agent, broker and hdfs."""
    fleet.services.await_hadoop()
    fleet.write("first")
    loaded_to_the_end(fleet)
    assert fleet.services.spark.executors() == 1
    owners = {owner for owner, _ in fleet.services.hdfs.files("/logs").values()}
    assert owners == {LOADER}
    fleet.server.run("systemctl start skidway-recount.service", within_s=120)
    assert fleet.server.read(f"stat -c '%U %a' {KEYTAB}") == f"{LOADER} 400"


def loaded_to_the_end(fleet: ExistingFleet) -> None:
    """Loads all records. Asserts that the rows are the written lines, that the audit's verdict is
    "complete", and that each tier has counted all lines."""
    fleet.wait_for_verdict()
    fleet.load()
    assert fleet.rows() == {APPLICATION: fleet.lines}
    eventually(lambda: not fleet.unfinished(), within_s=180, every_s=1, what="complete")
    assert fleet.counted() == {
        (TOPIC, APPLICATION, tier): len(fleet.lines) for tier in ("agent", "broker", "hdfs")
    }


def test_a_broker_of_ours_keeps_to_its_part_of_the_operators_zookeeper(
    fleet: ExistingFleet,
) -> None:
    """In the operator's ZooKeeper, all znodes of our broker's cluster are below the chroot that the
    inventory gives."""
    assert fleet.in_zookeeper("/") == ["company", "registry", "zookeeper"]
    assert fleet.in_zookeeper("/company") == ["edge"]
    assert fleet.in_zookeeper("/company/edge/brokers/ids") == ["1"]
    fleet.edge.run(
        "/opt/skidway/current/broker/bin/skidway topics create t"
        f" --bootstrap-server {fleet.edge.address}:9092"
    )
    assert "t" in fleet.in_zookeeper("/company/edge/brokers/topics")


def test_a_rolling_restart_waits_for_none_of_them(fleet: ExistingFleet) -> None:
    """Even if HDFS and Spark answer no requests, rolling_restart.yml restarts each of our programs
    and finds each program healthy."""
    where = [(fleet.run.hosts[name], unit) for name, units in UNITS.items() for unit in units]
    before = [host.read(f"systemctl show -P MainPID {unit}") for host, unit in where]
    with fleet.services.without_hadoop():
        fleet.control.succeed("rolling_restart")
    after = [host.read(f"systemctl show -P MainPID {unit}") for host, unit in where]
    assert all(old != new for old, new in zip(before, after, strict=True))


def test_an_upgrade_is_judged_by_what_apache_kafka_has(fleet: ExistingFleet) -> None:
    """upgrade.yml upgrades each of our programs to the next version. The audit confirms that the
    upgraded agents deliver their lines to Apache Kafka. No line is lost or doubled during the
    upgrade."""
    fleet.write("on the way")
    fleet.install(NEXT)
    with fleet.services.without_hadoop():
        played = fleet.control.succeed("upgrade")
    assert "nobody says whether this wave delivers" not in played.output
    for host in fleet.run.hosts.values():
        linked = host.read("readlink /opt/skidway/current/*").splitlines()
        assert set(linked) == {f"../{NEXT}"}
    fleet.write("second")
    loaded_to_the_end(fleet)


def test_uninstalling_takes_nothing_of_theirs(fleet: ExistingFleet) -> None:
    """Even if an operator tells uninstall.yml to remove our data, it does not remove rows, topics,
    subjects or znodes from the operator's services. These services continue to run."""
    before = fleet.theirs()
    assert TOPIC in before["topics"]
    fleet.control.succeed("uninstall", "-e", "skidway_remove_data=true")
    for host in fleet.run.hosts.values():
        assert not host.read("ls -d /opt/skidway /etc/skidway /var/lib/skidway 2>/dev/null || :")
    assert fleet.theirs() == before
    assert all(program.running for program in fleet.services.programs)


SCRIPTS = Path(__file__).resolve().parents[1] / "deploy" / "on_hosts"
SKIDWAY = "/opt/skidway/current/audit/bin/skidway"
LINES_AT_ONCE = 1_000
HADOOP_USER = f"HADOOP_CONF_DIR=/etc/hadoop/conf KRB5_CLIENT_KTNAME={KEYTAB} KRB5CCNAME=MEMORY:"
"""Variables of a user of HDFS who is not Skidway."""
_CHILDREN = """
import sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1])
client.start()
print(*sorted(client.get_children(sys.argv[2])))
client.stop()
"""


class ExistingFleet:
    """An application host, a server with the audit and the loader, and a host with the broker of
    another cluster."""

    def __init__(self, run: Run, services: ExistingServices, version: str) -> None:
        self.run, self.services = run, services
        self.control = ControlNode(run)
        self.application, self.server, self.edge = (
            run.hosts[name] for name in (APPLICATION, SERVER, EDGE)
        )
        self.lines: list[str] = []
        self._keytab = run.folder / "encrypted.keytab"
        shutil.copy(services.kdc.folder / f"{LOADER}.keytab", self._keytab)
        self.control.encrypt(self._keytab)
        for path, source in services.client_files.items():
            self.server.run(f"mkdir -p $(dirname {path}) && cat >{path}", given=source.read_text())
        self.install(version)

    def install(self, version: str) -> None:
        """Writes the Ansible inventory, with `version` as Skidway's version. Runs no playbook."""
        address = self.server.address
        self.control.write(
            inventory(version, WHEELS, self.services, server_address=address, keytab=self._keytab)
        )

    def write(self, name: str) -> None:
        """Makes the application write lines that begin with `name` to its log."""
        more = [f"{name} {number}" for number in range(LINES_AT_ONCE)]
        self.application.run(f"cat >>{LINES}", given="".join(f"{line}\n" for line in more))
        self.lines += more

    # Questions to the audit

    def report(self, words: str) -> dict[str, Any]:
        """Runs `skidway audit WORDS --json` on the server and returns its output, whatever the
        verdict is."""
        said = self.server.run(f"{SKIDWAY} audit {words} --json", check=False).stdout
        found: dict[str, Any] = json.loads(said)
        return found

    def wait_for_verdict(self) -> None:
        """Waits until the audit has proven that all lines that the application host has written so
        far are in Apache Kafka."""
        since = "--since $(date -u +%Y-%m-%dT%H:%M:%SZ)"
        asked = f"wait --host {APPLICATION} {since} --tiers agent,broker --timeout-s 300"
        self.server.run(f"{SKIDWAY} audit {asked}", within_s=330)

    def unfinished(self) -> list[str]:
        """Returns the buckets (time windows of topics) that are not complete in every tier."""
        return [
            f"{each['time']}: {each['reasons']}"
            for each in self.report("report")["buckets"]
            if each["verdict"] != "complete"
        ]

    def counted(self) -> dict[tuple[str, str, str], int]:
        """Returns the number of records that the audit has counted, by topic, host and tier."""
        sums: Counter[tuple[str, str, str]] = Counter()
        for each in self.report("report")["buckets"]:
            for agent in each["agents"]:
                for place in agent["places"]:
                    sums[each["topic"], agent["host"], place["tier"]] += place["count"]
        return dict(sums)

    # The first of the next methods runs a load. The others return what the operator's services
    # contain.

    def load(self) -> None:
        """Starts the loader's service, as its timer does at night, and waits until the load has
        ended."""
        self.server.run(
            "systemctl start skidway-loader.service"
            " || { journalctl --namespace='*' -u skidway-loader -n 20; exit 1; }",
            within_s=300,
        )

    def rows(self) -> dict[str, list[str]]:
        """Returns the lines that the loader has written to HDFS, by the host that wrote them."""
        found: dict[str, list[str]] = json.loads(
            self.server.run(
                f"{HADOOP_USER} /opt/skidway/current/loader/bin/python"
                f" - {self.services.output} {TOPIC}",
                given=(SCRIPTS / "hdfs_lines.py").read_text(),
            ).stdout
        )
        return found

    def in_zookeeper(self, path: str) -> list[str]:
        """Returns the names below a path in the operator's ZooKeeper. The path begins at
        ZooKeeper's root and not at a chroot."""
        address = self.services.zookeeper.address
        return self._on_control_node(sys.executable, "-c", _CHILDREN, address, path).split()

    def theirs(self) -> dict[str, Any]:
        """Returns what the operator's services contain: Kafka's topics, the registry's subjects,
        HDFS's files and ZooKeeper's znodes.
        """
        hdfs, registry = self.services.hdfs, self.services.registry
        kafka = ("--bootstrap-server", self.services.kafka.address)
        return {
            "topics": self._on_control_node(*skidway("topics", "list", *kafka)),
            "subjects": self.services.place.read(f"{registry.url}/subjects"),
            "files": hdfs.files("/logs"),
            "znodes": self.in_zookeeper("/company/edge/brokers/topics"),
        }

    def _on_control_node(self, *command: str) -> str:
        asked = self.services.place.command(command)
        return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout
