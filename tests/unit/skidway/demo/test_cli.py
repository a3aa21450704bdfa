"""Tests the demo's command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway import machine
from skidway.cli import main
from skidway.demo.cli import keep_kind
from skidway.errors import UsageError
from skidway.machine import Finding


def test_a_folder_holds_one_kind_of_demo(tmp_path: Path) -> None:
    """A quick demo refuses to run in the folder of a full demo, because the quick demo's agent
    would not read the full demo's files."""
    keep_kind(tmp_path, "full")
    keep_kind(tmp_path, "full")
    with pytest.raises(UsageError, match=r"holds a full demo.*--dir skidway-demo-quick"):
        keep_kind(tmp_path, "quick")


def test_a_machine_on_which_spark_cannot_start_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a name that Spark needs has no address, the demo says so in one sentence with what to do,
    and neither starts a program nor writes a file."""
    lacking = Finding("host name", "missing", "'db7' has no address", "add it to /etc/hosts")
    monkeypatch.setattr(machine, "names", lambda: iter([lacking]))
    assert main(["demo", "--quick", "--dir", str(tmp_path / "demo")]) == 1
    assert capsys.readouterr().err == ("skidway demo: 'db7' has no address; add it to /etc/hosts\n")
    assert list(tmp_path.iterdir()) == []
