"""Skidway can be installed at a site whose operator already has ZooKeeper, Apache Kafka, a
registry, HDFS and Spark.

The inventory names these services. On Debian 12 hosts, the playbooks install the missing programs:
an agent, the audit, a loader, and the broker of another cluster. Each test continues where the
previous test ended.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deploy.packaging import wheels
from support import hosts
from support.existing_fleet import ExistingFleet
from support.existing_inventory import APPLICATION, EDGE, HOSTS, SERVER, TOPIC
from support.existing_services import LOADER, ExistingServices
from support.fleet import NEXT, OLD
from support.processes import eventually

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
        "/opt/skidway/current/broker/bin/skidway topics create t --bootstrap-server 127.0.0.1:9092"
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
