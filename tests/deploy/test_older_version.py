"""A fleet can be upgraded from an older version of Skidway to the version of this source tree, and
can be changed back. The two versions have different code and settings.

The older version's own playbooks install the fleet. Lines are written during
all tests. Each test continues where the previous test ended.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.packaging import wheels
from support import hosts
from support.control_node import COLLECTION, ROOT, WHEELS
from support.fleet import NEXT, PRESS, Fleet
from support.fleet_inventory import HOSTS
from support.fleet_verdict import loaded_to_the_end, pressed_once
from support.hosts import Host

pytestmark = pytest.mark.operations

COMMIT = "6301fd012248373796c542131af30f1a2cf51557"
"""The last commit whose forms of messages and states are today's forms, or can be read today.
Whoever changes a form moves COMMIT forward and runs `make test-operations ARGS="-k
test_older_version"` once."""
OLDER = "0.0.9"
DIFFERENCES = (
    ("audit/settings.py", '"exempt.hdfs"', '"exempt.former"'),
    ("deploy/ansible/roles/audit/vars/main.yml", '  exempt: "{{ audit_exempt }}"\n', ""),
)
"""How the older version differs from COMMIT: each entry has a file, a text in this file, and the
text that replaces it in the older version. So the older version lacks a setting that the current
Ansible roles write."""
LINES = "through-versions"
AUDIT_LOG = "journalctl --namespace=skidway -u skidway-audit --no-pager"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Three hosts with the older version. Lines are written on these hosts until the tests end."""
    collection = older_collection(tmp_path_factory.mktemp("versions"))
    wheels.collect(NEXT)
    with hosts.running(HOSTS) as run:
        found = Fleet(run)
        found.control.use(collection)
        change_version(found, OLDER)
        found.control.succeed("site")
        found.control.use(COLLECTION)
        found.start_press(LINES)
        yield found


def change_version(fleet: Fleet, version: str) -> None:
    """Changes the version in the inventory, as an operator does before an upgrade. The older
    version signs nothing, and has no settings for it."""
    fleet.inventory["all"]["vars"] |= {"skidway_version": version, "skidway_signatures": "off"}
    fleet.control.write(fleet.inventory)


def all_have(fleet: Fleet, version: str) -> bool:
    """Returns whether every program on every host has this version and lines are still being
    written."""
    found = {each for host in fleet.run.hosts.values() for each in fleet.versions(host).values()}
    pressing = [host.read(f"systemctl is-active {PRESS}") for host in fleet.applications]
    return found == {version} and pressing == ["active"] * len(pressing)


def test_what_the_older_version_wrote_is_loaded_by_it(fleet: Fleet) -> None:
    """Before the upgrade, the fleet works with the older version: its loader loads the lines, and
    its audit reports them as complete."""
    assert all_have(fleet, OLDER)
    loaded_to_the_end(fleet)


def test_it_comes_to_this_version(fleet: Fleet) -> None:
    """This tree's upgrade.yml upgrades the fleet that the older playbooks installed, and the audit
    confirms each wave. A wave is a group of hosts that are upgraded together."""
    change_version(fleet, NEXT)
    fleet.control.succeed("upgrade")
    assert all_have(fleet, NEXT)
    loaded_to_the_end(fleet)


def test_what_the_older_version_does_not_know_is_refused_by_name(fleet: Fleet) -> None:
    """If the audit's configuration contains a setting that only this tree's roles write, the older
    version's audit does not start, and its error names the setting. On the way to an older version,
    the playbook upgrade.yml changes the audit last. When the older audit does not start, the
    playbook fails, and changes the audit back to the newer version."""
    change_version(fleet, OLDER)
    played = fleet.control.play("upgrade")
    assert played.returncode != 0
    assert "unknown key 'exempt.hdfs'" in " ".join(played.output.replace("''", "'").split())
    assert "The audit is back at the version before." in played.output
    assert fleet.versions(fleet.server)["audit"] == NEXT
    assert fleet.audit("hosts")[0] == 0


def test_it_goes_back_and_the_audit_goes_last(fleet: Fleet) -> None:
    """If the inventory contains no setting that the older version refuses, the older version starts
    and can read the state that the newer version has written. The playbook upgrade.yml changes the
    audit after the agents, so that the older audit never gets a message from a newer agent."""
    fleet.control.succeed("upgrade", "-e", '{"audit_exempt": {}}')
    assert all_have(fleet, OLDER)
    agents = [started_at(host, "skidway-agent") for host in fleet.applications]
    assert started_at(fleet.server, "skidway-audit") > max(agents)
    assert "message_refused" not in fleet.server.read(AUDIT_LOG)
    loaded_to_the_end(fleet)


def started_at(host: Host, unit: str) -> int:
    """Returns the time at which a unit was started, in microseconds. Times of different test hosts
    can be compared, because all of them use the clock of this machine."""
    return int(host.read(f"systemctl show -P ExecMainStartTimestampMonotonic {unit}"))


def test_it_comes_again_and_no_line_was_lost_or_doubled(fleet: Fleet) -> None:
    """Each line that was written during the three changes of the version is exactly one row."""
    change_version(fleet, NEXT)
    fleet.control.succeed("upgrade")
    assert all_have(fleet, NEXT)
    last = fleet.stop_press()
    loaded_to_the_end(fleet)
    pressed_once(fleet, LINES, last)


def older_collection(folder: Path) -> Path:
    """Builds the wheels of the older version and puts them beside the current wheels, where the
    control node finds them. Returns the folder of the older Ansible collection."""
    tree = folder / "older"
    _unpack(tree)
    command = [sys.executable, "-m", "deploy.packaging.wheels", "--version", OLDER]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(WHEELS / OLDER, ignore_errors=True)
    shutil.copytree(tree / "dist" / "wheels" / OLDER, WHEELS / OLDER)
    return tree / "deploy" / "ansible"


def _unpack(tree: Path) -> None:
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", COMMIT], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tree, filter="data")
    for name, current, older in DIFFERENCES:
        text = (tree / name).read_text()
        assert text.count(current) == 1, name
        (tree / name).write_text(text.replace(current, older))
