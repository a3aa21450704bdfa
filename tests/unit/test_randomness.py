"""Some tests use random seeds or examples (support.randomness, support.explore). Runs without the
option --hypothesis-seed all try the same seeds and examples. With this option, a run tries other
seeds and examples. A failure can be repeated."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import explore
from support.randomness import STRIDE

TESTS = """
import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

TRIED = __import__("pathlib").Path(__file__).with_name("tried")

def note(what):
    with TRIED.open("a") as file:
        file.write(f"{what}\\n")

def test_loop(seeds):
    note(list(seeds(range(100, 116))))

@pytest.mark.parametrize("seed", range(16), indirect=True)
def test_one(seed):
    note(seed)

@given(st.integers(0, 10**9))
def test_examples(x):
    note(f"x {x}")

class Machine(RuleBasedStateMachine):
    @rule()
    def nothing(self):
        note("m")

TestMachine = Machine.TestCase

def test_fixed():
    note("fixed")
"""


FAILS = """
import pytest
from hypothesis.stateful import RuleBasedStateMachine, rule
from support.randomness import STRIDE

@pytest.mark.parametrize("seed", range(16), indirect=True)
def test_one(seed):
    assert seed % STRIDE != 5

def test_examples(seeds):
    assert seeds(range(1))

class Machine(RuleBasedStateMachine):
    @rule()
    def fails(self):
        raise AssertionError

TestMachine = Machine.TestCase
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with small tests that use random seeds and examples, configured like Skidway's own
    tests."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["support.randomness"]\n')
    support = Path(explore.__file__).parents[1]
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nmarkers = random: draws\npythonpath = {support}\n"
    )
    (tmp_path / "test_it.py").write_text(TESTS)
    return tmp_path


@pytest.fixture
def tried(project: Path) -> Callable[..., list[str]]:
    """Returns a function that runs the tests of `project` with the given options. The function
    returns the seeds and examples that these tests tried, in order."""

    def run(*options: str) -> list[str]:
        (project / "tried").unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
        done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return (project / "tried").read_text().splitlines()

    return run


def test_every_run_tries_the_same(tried: Callable[..., list[str]]) -> None:
    """Two runs without --hypothesis-seed try the same seeds and examples."""
    first = tried()
    assert first == tried()
    assert first[0] == str(list(range(100, 116)))
    assert first[1:17] == [str(seed) for seed in range(16)]
    assert first[-1] == "fixed"


def test_a_share_is_a_part_of_the_same(tried: Callable[..., list[str]]) -> None:
    """With --share N, a run tries one of every N seeds of a full run, and one Nth as many
    examples."""
    found = tried("--share", "8")
    assert found[0] == str([100, 101])
    assert found[1:3] == ["0", "8"]
    assert len([x for x in found if x.startswith("x ")]) == 100 // 8


def test_a_number_tries_others_and_the_same_again(tried: Callable[..., list[str]]) -> None:
    """A run with --hypothesis-seed=NUMBER tries other seeds and examples than a run without it. A
    second run with the same number tries the same seeds and examples as the first."""
    options = ("--hypothesis-seed=3", "-m", "random")
    found = tried(*options)
    assert found == tried(*options)
    assert found[0] == str([3 * STRIDE + seed for seed in range(100, 116)])
    assert found[1] == str(3 * STRIDE)
    assert "m" in found
    assert "fixed" not in found
    drawn = [x for x in found if x.startswith("x ")]
    assert drawn != [x for x in tried() if x.startswith("x ")]


def test_a_failure_is_printed_with_the_line_that_replays_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """support.explore runs random tests with new seeds. For each failed test it prints a command
    line that makes the test fail again."""
    (project / "test_it.py").write_text(FAILS)
    monkeypatch.chdir(project)
    assert explore.main(["--minutes=0", "--seed=7", "--processes=0", "test_it.py"]) == 1
    found = capsys.readouterr().out.splitlines()
    lines = [line.removeprefix("FAILED  ") for line in found if line.startswith("FAILED  ")]
    assert [line.rpartition("::")[2].strip("'") for line in lines] == ["test_one[5]", "runTest"]
    for line in lines:
        command = shlex.split(line.replace(".venv/bin/pytest", f"{sys.executable} -m pytest"))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1, done.stdout
        assert "1 failed" in done.stdout
    assert found[-1] == "16 passed, 2 failed"


def test_a_round_that_cannot_run_is_no_round(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If support.explore finds no tests to run, it raises an error."""
    monkeypatch.chdir(project)
    with pytest.raises(explore.NoRound):
        explore.main(["--minutes=0", "--processes=0", "no_such_file.py"])
