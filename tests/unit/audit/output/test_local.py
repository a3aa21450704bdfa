from __future__ import annotations

import os
from pathlib import Path

from skidway.audit.output.local import LocalOutput


def test_a_listed_file_can_be_read_whatever_its_name(tmp_path: Path) -> None:
    """With the path that a listing returns, a file can be opened and read, and its size can be
    found, even if the file's name is not UTF-8."""
    (tmp_path / os.fsdecode(b"\xff.parquet")).write_bytes(b"rows")
    output = LocalOutput(str(tmp_path))
    [entry] = output.files("")
    assert output.length(entry.path) == entry.length == 4
    assert output.read(entry.path) == b"rows"
    file = output.open(entry.path)
    assert file is not None
    with file:
        assert file.read() == b"rows"
