"""Builds the Ansible collection and the wheels of an older version of Skidway from that version's
own source tree.

COMMIT is a version that operators could have installed. Its messages differ from the messages of
the current version, because its agents' seals have no field `final`. The first released version
will replace COMMIT.
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

COMMIT = "af66a2e284e1eb053eb48e8c4054b3c295da973a"
VERSION = "0.0.9"


def make(folder: Path) -> Path:
    """Adds the older wheels to the wheels on the control node. Returns the folder of the older
    collection."""
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
