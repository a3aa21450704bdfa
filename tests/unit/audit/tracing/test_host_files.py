"""Tests how `audit trace` and `audit why` ask the agent of this host for its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.audit.tracing import host_files
from skidway.errors import SkidwayError


def test_no_code_of_the_present_directory_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may ask in a directory where another user can write: a package `skidway` there does not
    run."""
    package = tmp_path / "skidway"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SkidwayError, match=r"agent\.yml"):
        host_files.ask(tmp_path / "agent.yml")
    assert not (tmp_path / "ran").exists()
