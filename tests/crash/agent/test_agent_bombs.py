"""Somebody puts compressed files beside a log, which ask for as much memory as a file may."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard

from support.agent_process import AgentProcess
from support.processes import eventually

Make = Callable[..., AgentProcess]


def zstd_long(data: bytes) -> bytes:
    """Compresses as `zstd --long` does, with a window of 128 MiB."""
    parameters = zstandard.ZstdCompressionParameters(window_log=27, write_content_size=0)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


LINE = b"x" * 4_095 + b"\n"
BOMBS = {
    ".xz": (10, LINE * ((66 << 20) // len(LINE)), partial(lzma.compress, preset=9)),
    ".zst": (5, LINE * ((140 << 20) // len(LINE)), zstd_long),
}
"""By ending: how many files, their plain bytes, and what makes them."""

HWM_MB_MAX = 450
"""The unit's MemoryMax is 512 MB."""


@pytest.mark.slow
@pytest.mark.parametrize("ending", BOMBS)
def test_many_large_windows_do_not_exhaust_the_memory(
    agent: Make, tmp_path: Path, ending: str
) -> None:
    """Several files, each of which needs as much memory for its decompression as a file may, are
    read to their ends within the memory that the agent's unit may have."""
    count, plain, compress = BOMBS[ending]
    logs = tmp_path / "bombs"
    logs.mkdir()
    sizes = {logs / f"app.log.{number}{ending}": len(plain) for number in range(count)}
    packed = compress(plain)
    for path in sizes:
        path.write_bytes(packed)
    process = agent({
        "topic": "logs",
        "paths": [f"{logs}/*{ending}"],
        "parser": {"type": "regex", "pattern": "(?P<line>.*)"},
        "shape": 'drop line contains "x" as noise',
    })  # fmt: skip
    process.start()
    eventually(lambda: process.settled(sizes), every_s=1, within_s=200, what="all lines")
    status = Path(f"/proc/{process.program.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    print(f"{ending}: {int(found[1]) // 1024} MB")
    assert int(found[1]) // 1024 <= HWM_MB_MAX
