"""Somebody gives a program a configuration that asks for much memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: " + "x" * (1 << 20), "a configuration has at most 1 MiB"),
        ("a: [" + "x," * 100_000 + "x]", "a configuration has at most 20,000 keys and values"),
        ("[" * 100_000, "nested too deeply"),
        ("{a: " * 100_000, "nested too deeply"),
        ("- " * 100_000, "nested too deeply"),
    ],
    ids=["bytes", "values", "lists", "sections", "dashes"],
)
def test_a_file_of_any_size_is_refused_in_bounded_memory(
    tmp_path: Path, text: str, words: str
) -> None:
    """A file that is too large, or has too many or too deeply nested values, is refused, and the
    process needs little memory to find out."""
    file = tmp_path / "agent.yml"
    file.write_text(text)
    said, hwm_kib = read_in_a_child(file)
    assert words in said
    assert hwm_kib <= HWM_KIB_MAX


def test_a_source_of_endless_bytes_is_refused() -> None:
    """A device or pipe that never ends is read only as far as a configuration can be long."""
    said, hwm_kib = read_in_a_child(Path("/dev/zero"))
    assert "it is not a regular file" in said
    assert hwm_kib <= HWM_KIB_MAX


HWM_KIB_MAX = 150 * 1024
CHILD = """
import sys
from pathlib import Path
from skidway.errors import ConfigurationRefused
from skidway.settings.source import read_file
try:
    print(read_file(Path(sys.argv[1])))
except ConfigurationRefused as error:
    print(error)
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def read_in_a_child(path: Path) -> tuple[str, int]:
    """Returns why a file is refused, and how much memory (KiB) a process needs to find out."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True
    )
    said, hwm_kib = done.stdout.splitlines()
    return said, int(hwm_kib)
