"""On a slow machine, `.ci/run` runs only a part of the tests. A text, such as the hash of a commit,
decides which tests run (support.drawing)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import drawing
from support.drawing import STORY_PARTS_MAX, is_drawn

TESTS = """
import pytest

@pytest.mark.parametrize("number", range(60))
def test_many(number):
    pass

@pytest.mark.deploy
@pytest.mark.parametrize("number", range(10))
def test_step(number):
    pass

@pytest.mark.deploy
@pytest.mark.aside
@pytest.mark.parametrize("number", range(60))
def test_aside(number):
    pass
"""


NAMES = ("test_many", "test_step", "test_aside")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with small tests, configured like Skidway's own tests."""
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["support.drawing"]\n')
    support = Path(drawing.__file__).parents[1]
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nmarkers =\n deploy: a step\n aside: x\npythonpath = {support}\n"
    )
    (tmp_path / "test_it.py").write_text(TESTS)
    return tmp_path


def ran(project: Path, *options: str) -> list[str]:
    """Runs the tests of `project` with the given options, and returns the names of the tests."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r"::(\S+) PASSED", done.stdout)


def test_all_tests_run_without_the_option(project: Path) -> None:
    """Without --parts, no test is left out."""
    assert len(ran(project)) == 130


def test_a_text_draws_a_part_and_the_steps_of_a_file_together(project: Path) -> None:
    """With --parts 3, about a third of the tests run. The tests of a file with the mark `deploy`
    are steps that build on each other. Either all of these steps run or none, except steps with the
    additional mark `aside`: no other step needs them. They are drawn one by one, and run only if
    the other steps of their file run. The same text draws the same tests."""
    steps = set()
    for commit in map(str, range(4)):
        found = ran(project, "--parts", "3", "--drawn-by", commit)
        many, step, aside = (sum(name.startswith(x) for name in found) for x in NAMES)
        assert 10 <= many <= 30
        assert 10 <= aside <= 30 if step else aside == 0
        steps.add(step)
    assert steps == {0, 10}
    assert found == ran(project, "--parts", "3", "--drawn-by", commit)


def test_a_very_slow_machine_runs_no_story(project: Path) -> None:
    """With more parts than STORY_PARTS_MAX, no test with the mark `deploy` runs, whatever the text
    is, because these tests would not end in time."""
    for commit in map(str, range(8)):
        found = ran(project, "--parts", str(STORY_PARTS_MAX + 1), "--drawn-by", commit)
        assert found
        assert all(name.startswith("test_many") for name in found)


def test_every_test_is_drawn_by_some_text() -> None:
    """Different texts draw different tests, so that after some commits every test has run."""
    tests = [f"tests/test_it.py::test_{number}" for number in range(100)]
    left = set(tests)
    for commit in range(40):
        left -= {test for test in tests if is_drawn(test, 3, str(commit))}
    assert not left
