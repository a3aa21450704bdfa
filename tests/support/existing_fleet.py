"""The test hosts of an operator who already runs ZooKeeper, Apache Kafka, a registry, HDFS and
Spark, and methods with which tests use these hosts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from support.control_node import WHEELS, ControlNode
from support.existing_inventory import APPLICATION, EDGE, LINES, SERVER, TOPIC, inventory
from support.existing_services import ExistingServices
from support.hosts import Run
from support.processes import skidway

SCRIPTS = Path(__file__).resolve().parents[1] / "deploy" / "on_hosts"
SKIDWAY = "/opt/skidway/current/audit/bin/skidway"
LINES_AT_ONCE = 1_000
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
        self.install(version)

    def install(self, version: str) -> None:
        """Writes the Ansible inventory, with `version` as Skidway's version. Runs no playbook."""
        address = self.server.address
        self.control.write(inventory(version, WHEELS, self.services, server_address=address))

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
        self.server.run("systemctl start skidway-loader.service", within_s=300)

    def rows(self) -> dict[str, list[str]]:
        """Returns the lines that the loader has written to HDFS, by the host that wrote them."""
        found: dict[str, list[str]] = json.loads(
            self.server.run(
                f"/opt/skidway/current/loader/bin/python - {self.services.output} {TOPIC}",
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
