"""The guide docs/operations.md describes tasks for the time after the installation. An operator can
do these tasks on hosts that Ansible has installed.

The tests run the commands of the guide itself (see support.recipes). Lines are written to one log
during all tests, and at the end each line has arrived once. Each test continues where the previous
test ended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from deploy.packaging import wheels
from support import hosts
from support.look import await_health, health
from support.operations_inventory import AUDIT, FIRST, HOSTS, SECOND, TOPIC
from support.processes import eventually
from support.recipes import give, recipe
from support.second_day import VERSION, SecondDay

pytestmark = pytest.mark.operations

THREE_SERVE = ["follower", "follower", "leader"]
MOVE = "Move a partition to another broker"
BACK_UP = "Back up ZooKeeper and the registry"
RESTORE = "Restore ZooKeeper"
MOVED = {"nginx-3": f"{TOPIC}-0"}
REGISTRY = {"registry1": AUDIT}
KEYS = "Replace a master key"


@pytest.fixture(scope="module")
def site() -> Iterator[SecondDay]:
    """A site with one ZooKeeper server, one broker, the registry, the audit, and an agent that
    publishes lines until the tests end."""
    if "SKIDWAY_HOSTS" not in os.environ:
        wheels.collect(VERSION)
    with hosts.running(HOSTS) as run:
        found = SecondDay(run)
        found.write()
        found.control.succeed("site")
        found.start_writing()
        yield found


def test_one_server_becomes_three_and_one_broker_two(site: SecondDay) -> None:
    """site.yml can extend one ZooKeeper server to an ensemble, which keeps the server's data. It
    can also extend one broker to a cluster of two brokers. The new broker then leads its share of
    the new partitions."""
    site.write(zookeeper=HOSTS, brokers=(FIRST, SECOND))
    site.control.succeed("site")
    assert site.modes() == THREE_SERVE
    assert site.leaders() == ["1"]
    more = recipe("Add a broker", names={"nginx": TOPIC, "--partitions 8": "--partitions 3"})
    give(site.first, "broker", more)
    eventually(lambda: set(site.leaders()) == {"1", "2"}, what="both lead")


def test_a_partition_moves_while_lines_are_written(site: SecondDay) -> None:
    """The guide's commands move a partition to another broker while lines are written. The old
    broker reports the partition as handed over, and the new broker leads the partition with the
    next leader epoch. In the end both brokers are healthy."""
    give(site.first, "broker", recipe(MOVE, 1, MOVED))
    assert "was handed over" in str(health(site.first, "broker")["stopped_partitions"])
    site.pipe(recipe(MOVE, 2, {"OLD": FIRST, "NEW": SECOND, **MOVED}))
    give(site.second, "broker", recipe(MOVE, 4, MOVED))
    for host in (site.first, site.second):
        await_health(host, "broker")
    moved = site.partitions()[0]
    assert (moved["leader"], moved["epoch"]) == ("2", "1")


def test_a_member_without_data_takes_it_from_the_others(site: SecondDay) -> None:
    """If a ZooKeeper server loses its data, it gets the data from the other two servers. Then all
    three servers answer clients again."""
    give(site.second, "zookeeper", recipe("Replace a member"))
    eventually(lambda: site.modes() == THREE_SERVE, within_s=90, every_s=1, what="three serve")


def test_zookeeper_is_restored_from_a_copy(site: SecondDay) -> None:
    """If all ZooKeeper servers lose their data, the operator can restore the data from a copy of
    one server's data and from the registry's dump."""
    give(site.audit, "registry", recipe(BACK_UP, 0, REGISTRY))
    follower = next(host for host in site.hosts if health(host, "zookeeper")["mode"] == "follower")
    give(follower, "zookeeper", recipe(BACK_UP, 1))
    await_health(follower, "zookeeper")
    date, before = follower.read("date +%F"), site.leaders()

    site.audit.run("systemctl stop skidway-audit-count@dc1 skidway-registry")
    for host in (site.first, site.second):
        host.run("systemctl stop skidway-broker")
    copy = f"zookeeper-{date}.tar"
    for host in {*site.hosts} - {follower}:
        site.pipe(
            f"ssh {follower.name} sudo tar -C /backup -c {copy} | "
            f"ssh {host.name} 'sudo mkdir -p /backup && sudo tar -C /backup -x'"
        )
    stop, *place = recipe(RESTORE, 0, {"2026-11-20": date}).splitlines()
    for commands in (stop, "\n".join(place), "systemctl start skidway-zookeeper"):
        for host in site.hosts:
            give(host, "zookeeper", commands)
    eventually(lambda: site.modes() == THREE_SERVE, within_s=90, every_s=1, what="three serve")
    change = "sed -i 's/^mode.mutability: {}$/mode.mutability: {}/' /etc/skidway/registry.yml"
    site.audit.run(change.format("false", "true"))
    site.audit.run("systemctl start skidway-registry")
    await_health(site.audit, "registry")
    give(site.audit, "registry", recipe(RESTORE, 1, {"2026-11-20": date, **REGISTRY}))
    site.audit.run(change.format("true", "false"))
    site.audit.run("systemctl restart skidway-registry")
    await_health(site.audit, "registry")
    for host in (site.first, site.second):
        host.run("systemctl start skidway-broker")
        await_health(host, "broker")
    site.audit.run("systemctl start skidway-audit-count@dc1")
    assert site.leaders() == before


def test_no_broker_is_stopped_while_another_is_sick(site: SecondDay) -> None:
    """rolling_restart.yml does not stop a broker while another broker is unhealthy, and its error
    names the unhealthy broker. When all brokers are healthy, the playbook restarts them."""
    started = "systemctl show -P ExecMainStartTimestamp skidway-broker"
    before = site.first.read(started)
    site.second.run("systemctl stop skidway-broker")
    refused = site.control.play(
        "rolling_restart", "--tags", "broker", "-e", "skidway_health_retries=2"
    )
    assert refused.returncode != 0
    assert f"that of {SECOND} is not healthy" in refused.output
    assert site.first.read(started) == before
    site.second.run("systemctl start skidway-broker")
    await_health(site.second, "broker")
    site.control.succeed("rolling_restart", "--tags", "broker")
    assert site.first.read(started) != before


def test_a_master_key_is_replaced_while_lines_are_written(site: SecondDay) -> None:
    """The guide's commands replace the master key while lines are written, and the agent, the
    counter and the collector are killed after each step. In the end all of them sign with the new
    key, and no message was refused."""
    give(site.audit, "audit", recipe(KEYS, 0))
    kill_all(site)
    site.control.succeed("site", "--tags", "audit_keys")
    kill_all(site)
    eventually(lambda: set(signing(site)) == {"1 0", "2 2"}, within_s=90, every_s=1, what="new key")
    site.wait_for_verdict()
    give(site.audit, "audit", recipe(KEYS, 2))
    kill_all(site)
    assert signing(site) == ["2 2"]
    site.wait_for_verdict()
    assert health(site.audit, "audit")["messages_refused"] == 0


def kill_all(site: SecondDay) -> None:
    """Kills each program that signs, or checks signatures, and waits until it runs again."""
    units = {"agent": "skidway-agent", "audit": "skidway-audit skidway-audit-count@dc1"}
    for program, names in units.items():
        site.audit.run(f"systemctl kill --signal=KILL {names}")
        await_health(site.audit, program)


def signing(site: SecondDay) -> list[str]:
    """Returns the number of each master key, and how many senders signed with it last."""
    listed = give(site.audit, "audit", recipe(KEYS, 1)).splitlines()[1:]
    return [" ".join(line.split()[:2]) for line in listed]


def test_every_line_arrived_once(site: SecondDay) -> None:
    """After all tasks of the tests above, the audit's verdict is "complete", and it has counted
    each line that was written once. The topic has no other records but those that a killed agent
    sent again."""
    written = site.stop_writing()
    site.wait_for_verdict("60m")
    report = json.loads(give(site.audit, "audit", "skidway audit report --json || :"))
    (topic,) = report["topics"]
    assert topic["records"] == written
    ends = sum(int(each["end"]) for each in site.partitions())
    assert ends == written + topic["repeats"]


def test_a_host_is_taken_away(site: SecondDay) -> None:
    """uninstall.yml, limited to one host, removes the programs of this host but not its data. The
    programs of the other hosts continue to run."""
    site.control.succeed("uninstall", "--limit", SECOND)
    assert not site.second.read("ls -d /opt/skidway /etc/skidway 2>/dev/null || :")
    assert TOPIC in site.second.read("ls /var/lib/skidway/broker")
    await_health(site.first, "broker")
    assert site.modes() == ["", "follower", "leader"]
