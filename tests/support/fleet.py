"""The fleet of test hosts for a long deployment test, its control node, and methods that run the
commands with which an operator looks at a fleet.
"""

from __future__ import annotations

import copy
import hashlib
import json
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

from deploy.packaging import wheels
from support.control_node import WHEELS, ControlNode
from support.fleet_inventory import APPLICATIONS, OUTPUT, SERVER, inventory
from support.hosts import Host, Run
from support.processes import eventually

SCRIPTS = Path(__file__).resolve().parents[1] / "deploy" / "on_hosts"
SKIDWAY = "/opt/skidway/current/audit/bin/skidway"
PRESS = "press.service"
OLD, NEXT, BROKEN = "0.1.0", "0.1.1", "0.1.2"
BROKEN_PROGRAM = """
def run(*_arguments):
    raise RuntimeError("this version cannot run")
"""


class Fleet:
    """Two application hosts and a server."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.control = ControlNode(run)
        self.applications = [run.hosts[name] for name in APPLICATIONS]
        self.server = run.hosts[SERVER]
        self.inventory = inventory(self._version() or OLD, WHEELS)
        self.control.write(self.inventory)

    def _version(self) -> str:
        """Returns the version of the agent that an earlier run of the test has installed on these
        hosts. If the hosts are new, returns an empty text.
        """
        look = "readlink /opt/skidway/current/agent || :"
        return self.applications[0].read(look).rpartition("/")[2]

    def change(self, **variables: Any) -> dict[str, Any]:
        """Changes Ansible variables of the agents in the inventory file, as an operator would.
        Returns the changed inventory.
        """
        changed = copy.deepcopy(self.inventory)
        changed["all"]["children"]["agents"]["vars"].update(variables)
        self.control.write(changed)
        return changed

    def versions(self, host: Host) -> dict[str, str]:
        """Returns the version of each program on a host. The version is part of the target of the
        program's symbolic link."""
        listed = host.read("cd /opt/skidway/current && for each in *; do readlink $each; done; ls")
        words = listed.split()
        half = len(words) // 2
        return dict(zip(words[half:], [each.split("/")[-1] for each in words[:half]], strict=True))

    # Questions to the audit

    def audit(self, *words: str, within_s: float = 330.0) -> tuple[int, str]:
        """Runs `skidway audit WORDS` on the server, and returns its exit status and output."""
        done = self.server.run(f"{SKIDWAY} audit {' '.join(words)}", check=False, within_s=within_s)
        return done.returncode, done.stdout + done.stderr

    def report(self, words: str) -> dict[str, Any]:
        """Runs `skidway audit WORDS --json` on the server and returns its output, whatever the
        verdict is."""
        said = self.server.run(f"{SKIDWAY} audit {words} --json", check=False).stdout
        found: dict[str, Any] = json.loads(said)
        return found

    def now(self) -> str:
        """Returns the current time of the server in the format of RFC 3339."""
        return self.server.read("date -u +%Y-%m-%dT%H:%M:%SZ")

    def milliseconds(self, moment: str) -> int:
        """Converts an RFC 3339 time to milliseconds since 1970."""
        return int(datetime.fromisoformat(moment).timestamp() * 1000)

    def wait_for_verdict(self, tiers: str = "agent,broker") -> str:
        """Waits until the audit proves that all lines that the application hosts wrote before this
        call have arrived in the given tiers. Returns the time of the call."""
        moment = self.now()
        named = " ".join(f"--host {host.name}" for host in self.applications)
        status, said = self.audit(f"wait {named} --since {moment} --tiers {tiers} --timeout-s 300")
        assert status == 0, said
        return moment

    def load(self) -> None:
        """Starts the loader's service, as its timer does at night, and waits until the load has
        ended."""
        self.server.run("systemctl start skidway-loader.service", within_s=900)

    def rows(self) -> dict[str, dict[str, list[str]]]:
        """Returns the rows that the loader has written, by topic and host, in the order of the
        lines in the log files. Of each row, returns only the value of one column: the whole line,
        or for nginx the request.
        """
        python = "/opt/skidway/current/loader/bin/python"
        script = (SCRIPTS / "rows.py").read_text()
        found: dict[str, dict[str, list[str]]] = json.loads(
            self.server.run(f"{python} - {OUTPUT}", given=script).stdout
        )
        return found

    # Lines that nginx writes

    def start_press(self, name: str) -> None:
        """Starts to send the requests GET /NAME/1, GET /NAME/2 and so on, where NAME is `name`, to
        nginx on every application host."""
        for host in self.applications:
            host.run("cat >/var/tmp/press.py", given=(SCRIPTS / "press.py").read_text())
            host.run(
                f"systemd-run --quiet --collect --unit={PRESS} python3 /var/tmp/press.py {name}"
            )

    def stop_press(self) -> dict[str, int]:
        """Stops the requests. Returns the number of each host's last request."""
        for host in self.applications:
            host.run(f"systemctl stop {PRESS}")
        return {h.name: int(h.read("cat /var/tmp/press.last")) for h in self.applications}

    def lines(self, host: Host) -> int:
        """Returns how many lines nginx has written on a host."""
        return int(host.read("cat /var/log/nginx/access.log* | wc -l"))

    def pressed(self, host: Host, more_than: int = 0) -> None:
        """Waits until nginx on the host has written more than `more_than` lines."""
        eventually(lambda: self.lines(host) > more_than, within_s=120, what="nginx writes")


def make_versions() -> None:
    """Makes the wheels of two versions, and of a third version whose agent cannot run."""
    for version in (OLD, NEXT, BROKEN):
        wheels.collect(version)
    break_agent(BROKEN)


def break_agent(version: str) -> None:
    """Replaces the agent in the wheels of a version by an agent that cannot run."""
    folder = WHEELS / version
    wheel = next(folder.glob("skidway-*.whl"))
    before = hashlib.sha256(wheel.read_bytes()).hexdigest()
    with zipfile.ZipFile(wheel) as sound:
        files = {name: sound.read(name) for name in sound.namelist()}
    assert "skidway/agent/program.py" in files
    files["skidway/agent/program.py"] = BROKEN_PROGRAM.encode()
    wheel.unlink()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as broken:
        for name, content in files.items():
            broken.writestr(name, content)
    after = hashlib.sha256(wheel.read_bytes()).hexdigest()
    for listed in folder.glob("*.txt"):
        listed.write_text(listed.read_text().replace(before, after))
