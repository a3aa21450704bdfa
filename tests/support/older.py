"""Builds the Ansible collection and the wheels of an older version of Skidway from that version's
own source tree.

The programs of both versions must be able to read the same messages and states. COMMIT is the last
commit whose forms of messages and states are today's forms, or can be read today. Whoever changes a
form moves COMMIT forward and runs `make test-operations ARGS="-k test_older_version"` once. This
module changes the commit's source tree by DIFFERENCES, so that the older version lacks a setting
that the current Ansible roles write.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from support.control_node import ROOT, WHEELS

COMMIT = "e2bac09a10f2c601242653453eab5594ff7f4f70"
VERSION = "0.0.9"
DIFFERENCES = (
    ("audit/settings.py", '"exempt.hdfs"', '"exempt.former"'),
    ("deploy/ansible/roles/audit/vars/main.yml", '  exempt: "{{ audit_exempt }}"\n', ""),
)
"""How the older version differs from COMMIT: each entry has a file, a text in this file, and the
text that replaces it in the older version."""


def make(folder: Path) -> Path:
    """Builds the wheels of the older version and puts them beside the current wheels, where the
    control node finds them. Returns the folder of the older Ansible collection."""
    tree = folder / "older"
    _unpack(tree)
    command = [sys.executable, "-m", "deploy.packaging.wheels", "--version", VERSION]
    done = subprocess.run(
        command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(WHEELS / VERSION, ignore_errors=True)
    shutil.copytree(tree / "dist" / "wheels" / VERSION, WHEELS / VERSION)
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
