"""Somebody puts compressed files beside a log, which ask for as much memory as a file may, or for
more."""

from __future__ import annotations

import lzma
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard

from skidway.agent.files.decompressed import MEMORY_BYTES
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


ZEROS = bytes(16 << 20)
PYTHON_KIB = 132 * 1024
"""What a process may need beside the memory of the decompression: Python, with what it imports."""

CHILD = """
import os, sys, time
from skidway.agent.files.decompressed import Bounds
from skidway.agent.files.plain_sizes import Content, PlainSizes
path = sys.argv[1]
sizes = PlainSizes(
    Bounds(*map(int, sys.argv[2:])), lambda path: os.open(path, os.O_RDONLY)
)
content = Content.of(os.stat(path))
while (found := sizes.known(content)) is None:
    sizes.ask(path, content)
    time.sleep(0.01)
print(found)
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def measured(path: Path, *bounds: int) -> str:
    """Returns the plain size of a file, or why it has none, and checks how much memory a process
    with these bounds needs to find it out."""
    command = [sys.executable, "-c", CHILD, str(path), *map(str, bounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, hwm_kib = done.stdout.splitlines()
    assert int(hwm_kib) <= PYTHON_KIB + (bounds or (MEMORY_BYTES,))[0] // 1024
    return said


def lzma_alone(dictionary_bytes: int) -> bytes:
    """Returns a file that says that it needs a dictionary of this size."""
    packed = lzma.compress(ZEROS * 6, lzma.FORMAT_ALONE)
    return packed[:1] + dictionary_bytes.to_bytes(4, "little") + packed[5:]


def xz(dictionary_bytes: int) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": dictionary_bytes, "mode": lzma.MODE_FAST,
                "mf": lzma.MF_HC3, "nice_len": 8, "depth": 1}]  # fmt: skip
    return lzma.compress(ZEROS, lzma.FORMAT_XZ, filters=filters)


def zstd(window_log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log, write_content_size=0)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return b"".join([*(packer.compress(ZEROS) for _ in range(12)), packer.flush()])


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        (".lzma", partial(lzma_alone, 129 << 20)),
        (".lzma", partial(lzma_alone, (4 << 30) - 1)),
        (".zst", partial(zstd, 28)),
    ],
    ids=["lzma a little", "lzma much", "zstd"],
)
def test_a_file_that_asks_for_too_much_memory_is_damaged(
    tmp_path: Path, ending: str, pack: Callable[[], bytes]
) -> None:
    """A compressed file that needs more memory than the common compressors ever ask for counts as
    damaged, and the agent does not take this memory."""
    path = tmp_path / f"app.log.1{ending}"
    path.write_bytes(pack())
    assert "it cannot be decompressed" in measured(path)


@pytest.mark.parametrize(
    ("ending", "pack", "size"),
    [
        (".lzma", partial(lzma_alone, 64 << 20), 96 << 20),
        (".xz", partial(xz, 64 << 20), 16 << 20),
        (".zst", partial(zstd, 27), 192 << 20),
    ],
    ids=["lzma", "xz", "zstd"],
)
def test_what_compressors_ask_for_is_granted(
    tmp_path: Path, ending: str, pack: Callable[[], bytes], size: int
) -> None:
    """A file with as large a dictionary or window as `xz -9` or `zstd --long` makes is read, within
    the memory that the agent may have."""
    path = tmp_path / f"app.log.1{ending}"
    path.write_bytes(pack())
    assert measured(path) == str(size)


def test_more_plain_bytes_than_a_log_has_are_damage(tmp_path: Path) -> None:
    """A file with more than a GiB of plain bytes, and more than 1,000 for each compressed byte,
    counts as damaged when the agent has decompressed so many."""
    path, part = tmp_path / "app.log.1.zst", zstandard.compress(ZEROS)
    path.write_bytes(part * 64)
    assert measured(path) == str(1 << 30)
    path.write_bytes(part * 65)
    assert "it has more than 1,073,741,824 plain bytes" in measured(path)
    assert measured(path, MEMORY_BYTES, 1 << 40) == str(65 << 24)


@pytest.mark.parametrize(
    ("ending", "pack", "needs_bytes"),
    [
        (".lzma", partial(lzma_alone, 32 << 20), 33 << 20),
        (".xz", partial(xz, 32 << 20), 33 << 20),
        (".zst", partial(zstd, 25), 32 << 20),
    ],
    ids=["lzma", "xz", "zstd"],
)
def test_the_memory_is_a_setting(
    tmp_path: Path, ending: str, pack: Callable[[], bytes], needs_bytes: int
) -> None:
    """A file is read if `decompression.memory.bytes` suffices for it. With less, it is damaged, and
    the agent takes no more memory than that."""
    path = tmp_path / f"app.log.1{ending}"
    path.write_bytes(pack())
    assert measured(path, needs_bytes, 1_000).isdigit()
    assert "it cannot be decompressed" in measured(path, needs_bytes - (2 << 20), 1_000)


@pytest.mark.slow
def test_an_agent_reads_by_its_settings(agent: Make, tmp_path: Path) -> None:
    """With a lower `decompression.memory.bytes`, a running agent calls a file damaged that it would
    otherwise read, and reads the others."""
    good, bad = tmp_path / "app.log.1.zst", tmp_path / "app.log.2.zst"
    good.write_bytes(zstandard.compress(LINE * 100))
    bad.write_bytes(zstd_long(LINE * 4_000))
    process = agent({"topic": "logs", "paths": [f"{tmp_path}/app.log*"]})
    process.settings["decompression.memory.bytes"] = 8 << 20
    process.start()
    eventually(lambda: process.settled({good: 100 * len(LINE)}), what="the good file")
    eventually(lambda: "cannot be decompressed" in str(process.health()), what="the bad file")
    assert str(bad) in str(process.health())
