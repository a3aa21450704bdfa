"""Tests the demo's command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.demo.cli import keep_kind
from skidway.errors import UsageError


def test_a_folder_holds_one_kind_of_demo(tmp_path: Path) -> None:
    """A quick demo refuses to run in the folder of a full demo, because the quick demo's agent
    would not read the full demo's files."""
    keep_kind(tmp_path, "full")
    keep_kind(tmp_path, "full")
    with pytest.raises(UsageError, match=r"holds a full demo.*--dir skidway-demo-quick"):
        keep_kind(tmp_path, "quick")
