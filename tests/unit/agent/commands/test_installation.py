"""Tests the output of `skidway agent install-snippet`. A test in tests/deploy runs the commands of
this output on a host."""

from __future__ import annotations

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from skidway import units
from skidway.agent.commands.installation import snippet
from skidway.errors import UsageError


def test_it_is_a_script_of_three_commands() -> None:
    """`skidway agent install-snippet` prints a valid shell script: three blocks of commands, and
    then the systemd unit as a comment."""
    printed = snippet(Path("wheels"))
    subprocess.run(["sh", "-n"], input=printed, text=True, check=True)
    blocks = printed.split("\n\n")
    assert [block[:4] for block in blocks[1:4]] == ["# 1.", "# 2.", "# 3."]
    assert all(line.startswith("#") for line in "\n".join(blocks[4:]).splitlines() if line)
    for line in units.text("agent").splitlines():
        assert f"#     {line}".rstrip() in printed


def test_version_and_python_are_those_of_the_wheels(tmp_path: Path) -> None:
    """If `install-snippet` is given a directory of wheels, the script that it prints names the
    Skidway version and the Python version of these wheels."""
    folder = tmp_path / "with blank"
    folder.mkdir()
    (folder / "wheels.json").write_text(json.dumps({"version": "3.1.4", "python": "3.12"}))
    printed = snippet(folder)
    assert "ln -sfn ../3.1.4 /opt/skidway/current/agent" in printed
    assert "Python 3.12" in printed
    assert f"-r '{folder}'/agent.txt" in printed


def test_without_the_wheels_it_is_this_version() -> None:
    """Without a directory of wheels, the commands that `install-snippet` prints use the version of
    the program that prints them."""
    assert f"/opt/skidway/{version('skidway')} " in snippet(Path("/srv/not-here"))


def test_another_directory_is_refused(tmp_path: Path) -> None:
    """If the given directory has no wheels.json, `install-snippet` ends with a usage error that
    names the directory."""
    with pytest.raises(UsageError, match="is no directory of `make wheels`"):
        snippet(tmp_path)
