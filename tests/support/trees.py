"""Source trees of other versions of Skidway, made from this source tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("skidway", "schemas", "audit", "agent", "broker", "loader")
IGNORED = shutil.ignore_patterns("__pycache__")
_VERSION = re.compile(r"^PRESS_VERSION: Final = (\d+)$", re.MULTILINE)


def with_another_press(tree: Path) -> Path:
    """Copies this source tree to `tree`, and raises the version number of the press in the copy.
    The press is the code that turns lines into record batches. So the copy's agent has another
    press version, although it makes the same records."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=IGNORED)
    versions = tree / "agent" / "batches" / "program_versions.py"
    text = versions.read_text()
    found = _VERSION.search(text)
    assert found is not None
    other = int(found[1]) + 1
    versions.write_text(_VERSION.sub(f"PRESS_VERSION: Final = {other}", text))
    module = "skidway.agent.batches.program_versions"
    question = f"from {module} import program_version; print(program_version())"
    env = {**os.environ, "PYTHONPATH": str(tree)}
    command = [sys.executable, "-c", question]
    said = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, check=True)
    assert f"press-{other}" in said.stdout
    return tree
