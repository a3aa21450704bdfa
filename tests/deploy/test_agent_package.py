"""The agent can be installed without Ansible on a real Debian host. It can be installed as a Debian
package, or by hand with the commands that `skidway agent install-snippet` prints."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.packaging import deb
from skidway.agent.commands.installation import snippet
from support import hosts
from support.hosts import Host, Run
from support.packages import wheels_of

pytestmark = pytest.mark.deploy

OLD, NEW = "9.8.7rc1", "9.8.7"
UNIT = "skidway-agent.service"
CONFIG = "/etc/skidway/agent.yml"
GOOD = """
bootstrap.servers: 127.0.0.1:1
schema.registry.url: http://127.0.0.1:1
state.dir: /var/lib/skidway/agent
sources:
  - topic: app
    paths: [/var/log/app.log]
"""
REFUSED = GOOD + "    parser: {type: regex, pattern: '(['}\n"
LEFTOVERS = "find / -xdev -name '*skidway*' -not -path '/tmp/*' -not -path '/run/*'"


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with hosts.running(["packaged"]) as running:
        yield running


@pytest.fixture(scope="module")
def host(run: Run) -> Host:
    return next(iter(run.hosts.values()))


def carry(run: Run, host: Host, files: list[Path], folder: str = "/tmp") -> None:
    """Copies files onto the host with scp, as an operator does."""
    command = ["scp", "-q", "-F", str(run.ssh_config), *map(str, files), f"{host.name}:{folder}"]
    subprocess.run(run.inside(command), check=True, stdin=subprocess.DEVNULL)


def state(host: Host, prop: str = "ActiveState") -> str:
    return host.read(f"systemctl show {UNIT} --property={prop} --value")


def configure(host: Host, text: str) -> None:
    host.run(f"cat >{CONFIG}", given=text)


def install(host: Host, package: Path) -> str:
    return host.read(f"dpkg --force-unsafe-io -i /tmp/{package.name} 2>&1", within_s=180)


def test_the_package_from_installation_to_purge(run: Run, host: Host) -> None:
    """The Debian package starts the agent only after the agent is configured. Upgrade and removal
    keep the agent's state, and a purge leaves nothing behind. If the agent refuses its
    configuration, the unit fails, and systemd does not restart it again and again."""
    old, new = (deb.build(version, wheels_of(version)) for version in (OLD, NEW))
    carry(run, host, [old, new])

    said = install(host, old)
    assert "not started" in said
    assert "bootstrap.servers" in said
    assert (state(host), state(host, "UnitFileState")) == ("inactive", "disabled")
    assert host.read(f"stat -c '%a %U:%G' {CONFIG}") == "640 root:skidway-agent"

    configure(host, GOOD)
    host.run(f"skidway agent validate && systemctl enable --now {UNIT}")
    assert state(host) == "active"
    assert state(host, "StatusText").startswith("waiting: ")
    database = host.read("stat -c '%i %U' /var/lib/skidway/agent/agent.db")
    assert database.endswith(" skidway-agent")

    install(host, new)
    assert state(host) == "active"
    assert host.read("skidway --version") == f"skidway {NEW}"
    pid = state(host, "MainPID")
    assert f"/opt/skidway/{NEW}/bin/python" in host.read(f"tr '\\0' ' ' </proc/{pid}/cmdline")
    assert host.read("stat -c '%i %U' /var/lib/skidway/agent/agent.db") == database
    assert host.read(f"cat {CONFIG}") == GOOD.strip()
    assert host.read("ls /opt/skidway") == f"{NEW}\ncurrent"

    configure(host, REFUSED)
    assert host.run(f"systemctl restart {UNIT}", check=False).returncode != 0
    assert (state(host), state(host, "NRestarts")) == ("failed", "0")
    assert state(host, "ExecMainStatus") == "78"
    configure(host, GOOD)
    host.run(f"systemctl reset-failed {UNIT} && systemctl restart {UNIT}")

    host.run(f"systemctl stop {UNIT}")
    install(host, new)
    assert state(host) == "inactive", "what an operator stopped, an upgrade does not start"
    host.run(f"systemctl start {UNIT}")

    host.run("dpkg -r skidway-agent")
    assert state(host) == "inactive"
    assert host.read("stat -c '%i %U' /var/lib/skidway/agent/agent.db") == database
    said = install(host, new)
    assert "not started" not in said
    assert state(host) == "active"

    host.run("dpkg -P skidway-agent")
    assert host.read(LEFTOVERS) == ""
    assert host.run("getent passwd skidway-agent", check=False).returncode != 0


def test_the_snippet_installs_by_hand(run: Run, host: Host) -> None:
    """The three commands of the printed snippet install the agent. An operator runs these commands
    exactly as printed. Before the third command, the operator edits the configuration."""
    wheels = wheels_of(NEW)
    manifest = json.loads((wheels / "wheels.json").read_text())
    host.run("mkdir -m 777 /srv/wheels")
    needed = [*manifest["programs"]["agent"], manifest["pip"], "agent.txt", "wheels.json"]
    carry(run, host, [wheels / name for name in needed], "/srv/wheels")
    printed = snippet(wheels).replace(str(wheels), "/srv/wheels")
    first, second, third = commands(printed)

    host.run(first, within_s=180)
    host.run(second)
    assert host.read(f"stat -c '%a %U:%G' {CONFIG}") == "640 root:skidway-agent"
    assert host.run(third, check=False).returncode == 78, "it refuses what is not edited"
    configure(host, GOOD)
    host.run(third)
    assert (state(host), state(host, "UnitFileState")) == ("active", "enabled")
    assert host.read(f"cat /etc/systemd/system/{UNIT}") in printed.replace("#     ", "").replace(
        "#\n", "\n"
    )
    host.run(second)
    assert host.read(f"cat {CONFIG}") == GOOD.strip(), "a second run leaves it alone"


def commands(printed: str) -> list[str]:
    """Returns the three parts of the snippet. Each part is a comment that begins with a number, and
    a command."""
    blocks = printed.split("\n\n")
    found = [block for block in blocks if block.startswith(("# 1.", "# 2.", "# 3."))]
    assert len(found) == 3
    return found
