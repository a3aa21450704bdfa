"""The control node of the test hosts. It runs Ansible in the hosts' network, with an inventory on
disk.

The control node uses the Ansible collection of this source tree (deploy/ansible). The collection is
in a directory in which ansible-playbook looks for collections. Ansible reaches the hosts as an
operator does, that is, by ssh with an account that may use sudo.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.hosts import Run
from support.processes import Program

ROOT = Path(__file__).resolve().parents[2]
COLLECTION = ROOT / "deploy" / "ansible"
WHEELS = ROOT / "dist" / "wheels"
PLAY_MAX_S = 1500.0
"""The time limit of a playbook in seconds. The longest playbook takes five minutes on an idle
machine with two cores."""

_RECAP = re.compile(r"^(\S+)\s+: (ok=\d+ .*)$", re.MULTILINE)
_CONFIG = """\
[defaults]
collections_path = {collections}
inventory = {inventory}
local_tmp = {folder}/ansible
forks = 5
interpreter_python = /usr/bin/python3
host_key_checking = true
retry_files_enabled = false
vault_password_file = {folder}/vault-password
callback_result_format = yaml
nocows = true
log_path = {folder}/ansible.log

[inventory]
host_pattern_mismatch = ignore

[ssh_connection]
pipelining = true
control_path_dir = {folder}
ssh_args = -F {ssh_config}
"""


@dataclass(frozen=True, slots=True)
class Played:
    """The result of one run of a playbook."""

    returncode: int
    output: str
    seconds: float

    @property
    def recap(self) -> dict[str, dict[str, int]]:
        """Returns, for each host, how many tasks were ok, changed, unreachable, failed, skipped or
        rescued."""
        found = {}
        for host, counts in _RECAP.findall(self.output):
            pairs = (each.split("=") for each in counts.split())
            found[host] = {name: int(count) for name, count in pairs}
        return found

    @property
    def changed(self) -> list[str]:
        """The names of the tasks that changed something on a host."""
        tasks = self.output.split("\nTASK [")[1:]
        return [task.splitlines()[0] for task in tasks if re.search(r"^changed: ", task, re.M)]


class ControlNode:
    """The node from which the operator runs playbooks."""

    def __init__(self, run: Run) -> None:
        self._run, self._plays = run, 0
        self.inventory = run.folder / "inventory.yml"
        self._config = run.folder / "ansible.cfg"
        collections = run.folder / "collections"
        self._collection = collections / "ansible_collections" / "skidway" / "fleet"
        self._collection.parent.mkdir(parents=True, exist_ok=True)
        if not self._collection.is_symlink():
            self._collection.symlink_to(COLLECTION)
        (run.folder / "vault-password").write_text("a password of the operator\n")
        self._config.write_text(
            _CONFIG.format(
                collections=collections,
                inventory=self.inventory,
                folder=run.folder,
                ssh_config=run.ssh_config,
            )
        )

    def use(self, collection: Path) -> None:
        """Makes all later calls run the playbooks of this collection."""
        self._collection.unlink()
        self._collection.symlink_to(collection)

    def write(self, inventory: Mapping[str, Any]) -> None:
        """Writes the inventory file."""
        self.inventory.write_text(yaml.safe_dump(inventory, sort_keys=False))

    def encrypt(self, path: Path) -> None:
        """Encrypts a file with the operator's password, by ansible-vault."""
        vault = Path(sys.executable).with_name("ansible-vault")
        subprocess.run(
            [vault, "encrypt", path], env={**os.environ, "ANSIBLE_CONFIG": str(self._config)},
            check=True, capture_output=True,
        )  # fmt: skip

    def play(self, playbook: str, *arguments: str) -> Played:
        """Runs a playbook of the collection to its end, whether it succeeds or fails."""
        ansible = Path(sys.executable).with_name("ansible-playbook")
        self._plays += 1
        log = self._run.folder / f"{self._plays:02}-{playbook}.log"
        started = time.monotonic()
        program = Program(
            self._run.inside([str(ansible), f"skidway.fleet.{playbook}", *arguments]),
            log,
            env={"ANSIBLE_CONFIG": str(self._config)},
            cwd=self._run.folder,
            session=True,
        ).start()
        try:
            returncode = program.wait(PLAY_MAX_S)
        finally:
            program.kill_session()
        return Played(returncode, program.output(), time.monotonic() - started)

    def succeed(self, playbook: str, *arguments: str) -> Played:
        """Runs a playbook. If the playbook fails, raises AssertionError with the end of its
        output."""
        played = self.play(playbook, *arguments)
        assert played.returncode == 0, f"{playbook}: {played.output[-6000:]}"
        return played
