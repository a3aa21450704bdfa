"""A fleet of hosts and a control node, for tests of what an operator does after the installation
(docs/operations.md)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from support.control_node import WHEELS, ControlNode
from support.hosts import Host, Run
from support.look import health
from support.operations_inventory import HOSTS, LINES, TOPIC, inventory
from support.recipes import give, recipe

VERSION = "0.1.0"
BROKER = "dc1-broker"
"""The host name that the commands of docs/operations.md give to a broker of dc1."""
WRITER = "writer.service"


class SecondDay:
    """Hosts with one server of each kind. Tests add more servers through the inventory."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.control = ControlNode(run)
        self.first, self.second, self.audit = (run.hosts[name] for name in HOSTS)
        self.hosts: Sequence[Host] = (self.first, self.second, self.audit)
        for host in self.hosts:
            host.run(f"echo {self.first.address} {BROKER} >>/etc/hosts")

    def write(self, **groups: Sequence[str]) -> None:
        """Writes the Ansible inventory with the given hosts in its groups."""
        self.control.write(inventory(VERSION, WHEELS, **groups))

    def pipe(self, commands: str) -> None:
        """Runs commands on the control node, which has ssh access to the hosts. Raises
        AssertionError if the commands fail."""
        ours = commands.replace("ssh ", f"ssh -F {self.run.ssh_config} ")
        shell = self.run.inside(["bash", "-e", "-o", "pipefail", "-c", ours])
        done = subprocess.run(shell, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr

    def modes(self) -> list[str]:
        """The sorted modes (leader, follower ...) of all ZooKeeper servers, with an empty string
        for each server that does not serve requests."""
        asked = [health(host, "zookeeper") for host in self.hosts]
        return sorted(str(each.get("mode", "")) if each.get("ok") else "" for each in asked)

    def partitions(self) -> list[dict[str, str]]:
        """The partitions of the topic to which the agent sends its lines. Each has its leader,
        leader epoch and high watermark."""
        command = f"skidway topics describe {TOPIC} --bootstrap-server {BROKER}:9092"
        table = give(self.first, "broker", command).partition("PARTITION ")[2].splitlines()[1:]
        names = ("partition", "leader", "epoch", "replicas", "isr", "start", "end")
        return [
            dict(zip(names, line.replace(",", "").split(), strict=False)) for line in table if line
        ]

    def leaders(self) -> list[str]:
        """For each partition of the agent's topic, the id of the broker that leads the
        partition."""
        return [each["leader"] for each in self.partitions()]

    def wait_for_verdict(self, since: str = "5m") -> None:
        """Waits until the audit calls what the host sent in this last time complete."""
        wait = recipe("Add a host", 1, {"app1": self.audit.name, "5m": since})
        assert "complete since then" in give(self.audit, "audit", wait, within_s=320)

    def start_writing(self) -> None:
        """Starts to write ten lines a second into the log file that the agent reads."""
        loop = f"n=0; while sleep 0.1; do n=$((n+1)); echo line $n >>{LINES}; done"
        self.audit.run(f"systemd-run --quiet --unit={WRITER} sh -c '{loop}'")

    def stop_writing(self) -> int:
        """Stops the writing, and returns the number of lines in the log file."""
        self.audit.run(f"systemctl stop {WRITER}")
        return int(self.audit.read(f"wc -l <{LINES}"))
