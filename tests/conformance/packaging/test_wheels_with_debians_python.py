"""`make wheels`, the first command of the fleet guide, works with Debian's own Python, whose pip is
older than that of other Pythons."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.packages import VERSION, run
from support.peers import ROOT

PYTHON = Path("/usr/bin/python3")

pytestmark = [pytest.mark.foreign, pytest.mark.slow]


def test_wheels_are_made_with_the_python_of_the_distribution(tmp_path: Path) -> None:
    """In a fresh copy of the tree, `make wheels` with /usr/bin/python3 collects the wheels of all
    programs, PySpark's among them, which pip must build from sources."""
    tree = copied_tree(tmp_path / "tree")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env["PIP_CACHE_DIR"] = str(cache_without_wheels(tmp_path / "cache"))
    command = ["make", "--no-print-directory", "wheels", f"PYTHON={PYTHON}", f"VERSION={VERSION}"]
    said = run(command, cwd=tree, env=env)
    folder = tree / "dist" / "wheels" / VERSION
    assert said.splitlines()[-1].endswith(f"lists of them in {folder}")
    manifest = json.loads((folder / "wheels.json").read_text())
    used = run([str(PYTHON), "-c", "import sysconfig; print(sysconfig.get_python_version())"])
    assert manifest["python"] == used.strip()
    needed = {file for files in manifest["programs"].values() for file in files}
    assert needed <= {each.name for each in folder.glob("*.whl")}
    assert any(file.startswith("pyspark-") for file in needed)


def copied_tree(target: Path) -> Path:
    """Copies the files of this tree that git tracks or would track."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
    target.mkdir()
    archive = subprocess.run(
        ["tar", "c", "--null", "-T", "-"], cwd=ROOT, input=names, capture_output=True, check=True
    )
    subprocess.run(["tar", "x", "-C", str(target)], input=archive.stdout, check=True)
    return target


def cache_without_wheels(target: Path) -> Path:
    """Makes a cache for pip that has everything that pip has ever downloaded here, but no wheel
    that another pip has built."""
    known = Path(run([sys.executable, "-m", "pip", "cache", "dir"]).strip())
    target.mkdir()
    for each in known.glob("http*"):
        (target / each.name).symlink_to(each)
    return target
