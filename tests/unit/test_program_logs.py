"""The report of a failed test shows what its programs have printed (support.program_logs)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import program_logs

TESTS = """
import sys
import pytest
from support.processes import Program

def program(folder, name):
    script = f"print(*range(200), '{name}', sep='\\\\n')"
    return Program([sys.executable, "-c", script], folder / name).start()

def test_before(tmp_path):
    program(tmp_path, "before").wait()

@pytest.fixture(scope="module")
def dead(tmp_path_factory):
    return program(tmp_path_factory.mktemp("dead"), "dead")

def test_does_not_look(dead):
    dead._process.wait()

@pytest.fixture
def ended(tmp_path):
    return program(tmp_path, "ended")

def test_it(dead, ended, tmp_path):
    assert ended.wait() == program(tmp_path, "other").wait() == 1
"""


def test_a_failed_test_shows_the_end_of_each_log(tmp_path: Path) -> None:
    """If a test fails, its report has the last 100 lines of each program that it or its fixtures
    started, and of each program that ended unasked during an earlier test, but nothing of programs
    that earlier tests ended."""
    support = Path(program_logs.__file__).parents[1]
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["support.program_logs"]\n')
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {support}\n")
    (tmp_path / "test_it.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert said.count("ended") == said.count("other") == said.count("dead") == 1
    assert said.count("199") == said.count("101") == 3
    assert "100" not in said
    assert "before" not in said
