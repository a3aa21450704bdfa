"""Finds what the tests of modules that decide do not notice: cosmic-ray changes such a module, one
change (a mutant) after the other, and for each mutant the unit and model tests of the module run.

    python -m support.mutants                              every module of MODULES
    python -m support.mutants agent/parsing/framing.py     one module

Works in a copy of the files that git knows. Prints each mutant that survived, as a difference of
the module's text, and the number of all mutants. The exit status is 1 if the tests fail without a
mutant.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "loader/state/commit.py": ("unit/loader/state/test_commit.py", "model/test_loader_commit.py"),
    "loader/state/chain.py": ("unit/loader/state", "model/test_loader_commit.py"),
    "loader/planning/plan.py": ("unit/loader/planning", "model/test_loader_marks.py"),
    "audit/counts/marks.py": ("unit/audit/counts/test_marks.py", "model/test_loader_marks.py"),
    "broker/groups/group.py": ("unit/broker/groups", "model/test_groups.py"),
    "broker/log/segment.py": ("unit/broker/log", "model/test_partition_log.py"),
    "broker/log/recovery.py": ("unit/broker/log", "model/test_partition_log.py"),
    "broker/log/partition_log.py": ("unit/broker/log", "model/test_partition_log.py"),
    "audit/judgement/rules/equation.py": ("unit/audit/judgement", "model/test_audit.py"),
    "audit/judgement/rules/seals.py": ("unit/audit/judgement", "model/test_audit.py"),
    "audit/judgement/verdict.py": ("unit/audit/judgement",),
    "schemas/compatibility.py": ("unit/schemas/test_compatibility.py",),
    "agent/values/intents.py": ("unit/agent/delivery", "unit/agent/state", "model/test_agent.py"),
    "agent/delivery/progress.py": (
        "unit/agent/delivery",
        "unit/agent/test_figures.py",
        "model/test_agent.py",
    ),
    "agent/parsing/framing.py": (
        "unit/agent/parsing",
        "unit/agent/test_nul_runs.py",
        "model/test_agent_turns.py",
    ),
}
"""For each module, the tests below tests/ that must notice its mutants."""
TIMEOUT_S = 120.0
"""The time for the tests of one mutant. A mutant that makes the tests endless counts as noticed."""

_DECIDES_NOTHING = re.compile(r"^-(?!--).*(?:\| None\b|@dataclass\()", re.MULTILINE)
"""Mutants of an annotation or of a decorator, which no test can notice, are not counted."""


def survivors(module: str, tree: Path) -> tuple[list[str], int]:
    """Tries the mutants of a module in `tree`, a copy of the repository. Returns the differences of
    those that no test noticed, and the number of all mutants.

    Raises CalledProcessError if the tests fail without a mutant.
    """
    tests = " ".join(f"tests/{each}" for each in MODULES[module])
    cached = Path(module).parent / "__pycache__"  # Python would not see two changes in a second
    command = (
        f"/bin/sh -c 'rm -rf {cached}; "
        f"exec {sys.executable} -m pytest -x -q -p no:cacheprovider --share 8 {tests}'"
    )
    config, session = tree / "cosmic-ray.toml", tree / "cosmic-ray.sqlite"
    config.write_text(
        f"[cosmic-ray]\nmodule-path = {json.dumps(module)}\ntimeout = {TIMEOUT_S}\n"
        f"excluded-modules = []\ntest-command = {json.dumps(command)}\n"
        '[cosmic-ray.distributor]\nname = "local"\n'
    )
    session.unlink(missing_ok=True)
    _cosmic_ray(tree, "baseline", config.name)
    _cosmic_ray(tree, "init", config.name, session.name)
    _cosmic_ray(tree, "exec", config.name, session.name)
    lines = _cosmic_ray(tree, "dump", session.name).splitlines()
    results = [x for _, x in map(json.loads, lines) if not _DECIDES_NOTHING.search(x["diff"])]
    left = [each["diff"] for each in results if each["test_outcome"] == "survived"]
    return left, len(results)


def main(arguments: Sequence[str]) -> int:
    """Tries the mutants of the given modules, by default of all modules."""
    parser = argparse.ArgumentParser(prog="python -m support.mutants", description=__doc__)
    parser.add_argument("module", nargs="*")
    chosen = parser.parse_args(arguments).module or list(MODULES)
    if unknown := [x for x in chosen if x not in MODULES]:
        parser.error(
            f"no tests are known for {unknown[0]}; there are tests for {' '.join(MODULES)}"
        )
    with tempfile.TemporaryDirectory() as folder:
        tree = _copied(Path(folder) / "tree")
        for module in chosen:
            try:
                left, count = survivors(module, tree)
            except subprocess.CalledProcessError as error:
                print(f"{module}: {error}\n{error.stdout}\n{error.stderr}", file=sys.stderr)
                return 1
            for diff in left:
                print(diff)
            print(f"{module}: {len(left)} of {count} mutants survived", flush=True)
    return 0


def _copied(tree: Path) -> Path:
    """Copies the files that git knows."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split("\0")[:-1]:
        if (ROOT / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name, follow_symlinks=False)
    return tree


def _cosmic_ray(tree: Path, *words: str) -> str:
    command = [str(Path(sys.executable).with_name("cosmic-ray")), *words]
    env = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        command, cwd=tree, env=env, capture_output=True, text=True, check=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
