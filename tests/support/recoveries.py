"""A fleet of hosts for tests of the failures that the guide docs/operations.md describes. Two hosts
have an agent each; one host has the broker `dc1`; one has the broker `offline`, which mirrors
`dc1`.

The registry uses https and requires a password, so the inventory contains TLS settings for all
clients of the registry.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from support.certificates import Authority
from support.control_node import WHEELS, ControlNode
from support.hosts import Host, Run
from support.look import await_health, health
from support.processes import run_skidway
from support.recovery_inventory import APPLICATIONS, LINES, OFFLINE, SOURCE, inventory

OLD, NEXT, BROKEN = "0.1.0", "0.1.1", "0.1.2"
NAMES = {"dc1-broker": SOURCE, "offline-broker": OFFLINE}
"""Maps the host name that the guide uses for each cluster's broker to the name of the test host on
which this broker runs."""
MIRROR_TOPIC = "dc1.nginx"
_WRITER = "writer.service"
_ROWS = """
import collections, glob, json, pyarrow.parquet as pq
found = collections.Counter()
for path in glob.glob("{root}/dc1.nginx/dt=*/hour=*/*.parquet"):
    found.update(pq.ParquetFile(path).read(["line"]).column("line").to_pylist())
print(json.dumps(found))
"""


class Recoveries:
    """The four hosts of the fleet, and the TLS files and passwords of the current inventory."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.control = ControlNode(run)
        self.source, self.offline = run.hosts[SOURCE], run.hosts[OFFLINE]
        self.applications = [run.hosts[name] for name in APPLICATIONS]
        self._secrets = run.folder / "secrets.json"
        self.version = self.applications[0].read("readlink /opt/skidway/current/agent || :")[3:]
        self.files: dict[str, str] = {}
        self.authorities = self.user = ""
        if self._secrets.exists():
            self.files, self.authorities, self.user = json.loads(self._secrets.read_text())
        for host in run.hosts.values():
            self.name_brokers(host)

    def name_brokers(self, host: Host) -> None:
        """Adds lines to /etc/hosts on a host: the host names that the guide uses for the
        brokers."""
        for name, ours in NAMES.items():
            line = f"{self.run.hosts[ours].address} {name}"
            host.run(f"grep -qx '{line}' /etc/hosts || echo {line} >>/etc/hosts")

    # Changes of the inventory

    def certify(self, authority: Authority) -> None:
        """Makes a certificate for the registry, signed by `authority`. The next inventory contains
        this certificate and its key."""
        pair = authority.sign("registry", OFFLINE)
        for name, path in {"registry.pem": pair.certificate, "registry.key": pair.key}.items():
            self.files[name] = path.read_text()

    def write(self, **changes: Any) -> dict[str, Any]:
        """Writes the Ansible inventory with the current TLS files and passwords, and with the given
        changes."""
        made = inventory(
            self.version or OLD,
            WHEELS,
            registry_files=self.files,
            authorities=self.authorities,
            user=self.user,
            **changes,
        )
        self.control.write(made)
        self._secrets.write_text(json.dumps([self.files, self.authorities, self.user]))
        return made

    # Questions to the programs, as an operator asks them

    def mirror(self) -> dict[str, Any]:
        """Returns the state of the only mirror that the offline broker runs. The state comes from
        the broker's /health."""
        found: list[dict[str, Any]] = health(self.offline, "broker").get("mirrors", [])  # type: ignore[assignment]
        return found[0] if found else {}

    def mirror_status(self) -> tuple[int, str]:
        """Runs `skidway mirror status` on the offline broker's host. Returns the exit status and
        the output."""
        return self.say(self.offline, "broker", "skidway mirror status")

    def say(
        self, host: Host, program: str, command: str, within_s: float = 300.0
    ) -> tuple[int, str]:
        """Runs one command as the operating-system user of a program. Returns the exit status and
        the output, even if the command fails."""
        words = f"/opt/skidway/current/{program}/bin/{command.strip()}"
        shell = f"cd /; sudo -u skidway-{program} {words} 2>&1"
        done = host.run(shell, check=False, within_s=within_s)
        return done.returncode, done.stdout

    def end(self, broker: str, topic: str) -> int:
        """Returns the high watermark of a topic, summed over its partitions."""
        return sum(int(each["high_watermark"]) for each in self._partitions(broker, topic))

    def begin(self, broker: str, topic: str) -> int:
        """Returns the log start offset of a topic, summed over its partitions."""
        return sum(int(each["log_start_offset"]) for each in self._partitions(broker, topic))

    def _partitions(self, broker: str, topic: str) -> list[dict[str, Any]]:
        command = f"skidway topics describe {topic} --json --bootstrap-server {broker}:9092"
        status, said = self.say(self.source, "broker", command)
        assert status == 0, said
        found: list[dict[str, Any]] = json.loads(said)[0]["partitions"]
        return found

    def proven(self, *hosts: Host, tiers: str = "agent,broker,mirror", within_s: int = 240) -> None:
        """Waits until the audit has proven that all lines that these hosts wrote before this call
        have arrived in the given tiers."""
        since = self.offline.read("date -u +%Y-%m-%dT%H:%M:%SZ")
        named = " ".join(f"--host {host.name}" for host in hosts or self.applications)
        words = f"skidway audit wait {named} --since {since} --tiers {tiers} --timeout-s {within_s}"
        status, said = self.say(self.offline, "audit", words, within_s + 60.0)
        assert status == 0, said

    def log(self, host: Host, program: str) -> str:
        """Returns all log lines of a program in the journal of its host."""
        unit = f"skidway-{program}"
        return host.read(f"journalctl --namespace=skidway --no-pager -o cat -u {unit}")

    def rows(self, root: str = "/srv/lake") -> dict[str, int]:
        """Returns, for each line, how many rows below the output `root` contain the line."""
        python = "/opt/skidway/current/loader/bin/python"
        found: dict[str, int] = json.loads(
            self.offline.run(f"{python} -", given=_ROWS.format(root=root)).stdout
        )
        return found

    def healthy(self, *names: str) -> None:
        """Waits until these programs are healthy. A name looks like `broker@dc1`."""
        for name in names:
            program, _, host = name.partition("@")
            await_health(self.run.hosts[host], program)

    # Log lines that the tests write

    def start_writing(self, *hosts: Host) -> None:
        """Starts to write ten lines a second to a log on each host. Each line contains the host's
        name and the line's number in the log. If the log already has lines, the numbers continue
        after them."""
        for host in hosts or self.applications:
            loop = (
                f"n=$(wc -l <{LINES}); while sleep 0.1; do n=$((n+1)); "
                f"echo {host.name} $n >>{LINES}; done"
            )
            host.run(f"touch {LINES}")
            host.run(f"systemd-run --quiet --collect --unit={_WRITER} sh -c {shlex.quote(loop)}")

    def stop_writing(self, *hosts: Host) -> dict[str, int]:
        """Stops the writing. Returns, for each host, the number of lines in its log."""
        chosen = hosts or self.applications
        for host in chosen:
            host.run(f"systemctl stop {_WRITER}", check=False)
        return {host.name: int(host.read(f"wc -l <{LINES}")) for host in chosen}


def hashed(user_info: str) -> str:
    """Returns the line for one user in the registry's file of users. `user_info` is the user's name
    and password as `name:password`."""
    user, _, password = user_info.partition(":")
    done = run_skidway("registry", "hash-password", user, input_text=f"{password}\n")
    assert done.returncode == 0, done.stderr
    return done.stdout
