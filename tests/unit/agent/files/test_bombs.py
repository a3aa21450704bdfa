"""Small compressed files that ask for much memory or time."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import zstandard

from skidway.agent.files import plain_sizes
from skidway.agent.files.handles import Handles
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.plain_sizes import Content, PlainSizes
from skidway.agent.files.unpacking import Unpacking
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.tracked import Birth, Checkpoint, TrackedFile
from support.processes import eventually

ZEROS = bytes(16 << 20)
PLAIN = bytes(range(256)) * 40
HWM_KIB_MAX = 260 * 1024
"""What the process may need: Python with what it imports, and 128 MiB for a window of Zstandard."""

CHILD = """
import os, sys, time
from skidway.agent.files.plain_sizes import Content, PlainSizes
path, sizes = sys.argv[1], PlainSizes()
content = Content.of(os.stat(path))
while (found := sizes.known(content)) is None:
    sizes.ask(path, content)
    time.sleep(0.01)
print(found)
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def measured(path: Path) -> str:
    """Returns the plain size of a file, or why it has none, and checks how much memory a process
    needs to find it out."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True
    )
    said, hwm_kib = done.stdout.splitlines()
    assert int(hwm_kib) <= HWM_KIB_MAX
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
    ("ending", "packed"),
    [
        (".lzma", lzma_alone(66 << 20)),
        (".lzma", lzma_alone((4 << 30) - 1)),
        (".xz", xz(96 << 20)),
        (".zst", zstd(28)),
    ],
    ids=["lzma a little", "lzma much", "xz", "zstd"],
)
def test_a_file_that_asks_for_too_much_memory_is_damaged(
    tmp_path: Path, ending: str, packed: bytes
) -> None:
    """A compressed file that needs more memory than the common compressors ever ask for counts as
    damaged, and the agent does not take this memory."""
    path = tmp_path / f"app.log.1{ending}"
    path.write_bytes(packed)
    assert "it cannot be decompressed" in measured(path)


@pytest.mark.parametrize(
    ("ending", "packed", "size"),
    [
        (".lzma", lzma_alone(64 << 20), 96 << 20),
        (".xz", xz(64 << 20), 16 << 20),
        (".zst", zstd(27), 192 << 20),
    ],
    ids=["lzma", "xz", "zstd"],
)
def test_what_compressors_ask_for_is_granted(
    tmp_path: Path, ending: str, packed: bytes, size: int
) -> None:
    """A file with as large a dictionary or window as `xz -9` or `zstd --long` makes is read, within
    the memory that the agent may have."""
    path = tmp_path / f"app.log.1{ending}"
    path.write_bytes(packed)
    assert measured(path) == str(size)


def test_more_plain_bytes_than_a_log_has_are_damage(tmp_path: Path) -> None:
    """A file with more than a GiB of plain bytes, and more than 1,000 for each compressed byte,
    counts as damaged when the agent has decompressed so many."""
    path, part = tmp_path / "app.log.1.zst", zstandard.compress(ZEROS)
    path.write_bytes(part * 64)
    assert measured(path) == str(1 << 30)
    path.write_bytes(part * 65)
    assert "it has more than 1,073,741,824 plain bytes" in measured(path)


def test_a_large_file_delays_no_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While large files are measured, the agent learns the plain sizes of small ones, also of those
    that came later; then it learns those of the large ones, of each once."""
    monkeypatch.setattr(plain_sizes, "SLICE_BYTES", 1 << 20)
    learned: list[int | OSError] = []
    sizes, before = PlainSizes(), set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(sizes, "learn", lambda _, size: learned.append(size))
    parts = {"large": 12, "larger": 13, "small": 0, "smaller": 0}
    for name, count in parts.items():
        path = tmp_path / f"{name}.log.1.bz2"
        path.write_bytes(bz2.compress(ZEROS[: 1 << 20]) * count + bz2.compress(name.encode()))
        sizes.ask(str(path), Content.of(os.stat(path)))
    eventually(lambda: len(learned) == len(parts), every_s=0.01)
    assert learned == [5, 7, (12 << 20) + 5, (13 << 20) + 6]
    eventually(lambda: set(os.listdir("/proc/self/fd")) == before)


@pytest.mark.parametrize(
    ("ending", "tail", "more"),
    [
        (".gz", bytes(200_000) + gzip.compress(b"more"), b"more"),
        (".gz", bytes(200_000), b""),
        (".bz2", b"nothing" * 9, b""),
        (".bz2", bz2.compress(b"more"), b"more"),
        (".xz", lzma.compress(b"more"), b"more"),
        (".zst", zstandard.compress(b"more"), b"more"),
    ],
    ids=["padding and more", "padding", "garbage", "bz2", "xz", "zst"],
)
def test_what_follows_a_stream_is_no_damage(
    tmp_path: Path, ending: str, tail: bytes, more: bytes
) -> None:
    """NUL bytes that pad a file, and further streams behind the first one, are no damage."""
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
    path = tmp_path / f"app.log.1{ending}"
    path.write_bytes(pack.get(ending, zstandard.compress)(b"first") + tail)
    sizes, content = PlainSizes(), Content.of(os.stat(path))
    sizes.ask(str(path), content)
    eventually(lambda: sizes.known(content) is not None, every_s=0.01)
    assert sizes.known(content) == 5 + len(more)


def tracked(host: OperatingSystem, path: Path, file: int) -> TrackedFile:
    found = host.look(str(path))
    assert found is not None
    birth = Birth(file, file, "t", "", "h", str(path), found.key, Fingerprint(0, b""))
    return TrackedFile(birth, Checkpoint(0, 0, Guard(0, 0), ()), str(path))


def test_one_file_is_decompressed_at_a_time(tmp_path: Path) -> None:
    """Of several compressed files, one is decompressed at a time. Others wait until it is read to
    its end, or was not read for a while, so none has to wait for ever."""
    host, files = OperatingSystem(), []
    for number in range(3):
        path = tmp_path / f"{number}.log.gz"
        path.write_bytes(gzip.compress(PLAIN))
        eventually(partial(is_measured, host, path), every_s=0.01)
        files.append(tracked(host, path, number + 1))
    handles = Handles(host, 10)
    unpacking = Unpacking(handles)

    def read(number: int, now: float, position: int = 0, count: int = 10) -> bool:
        may_read = unpacking.may_read(files[number], now)
        if may_read:
            wanted = PLAIN[position : position + count]
            assert handles.get(files[number]).read(count, position) == wanted
        return may_read

    assert [read(number, 1.0) for number in range(3)] == [True, False, False]
    assert read(0, 2.0, 10, len(PLAIN))
    assert [read(number, 3.0) for number in (1, 2)] == [True, False]
    assert not read(2, 12.9)
    assert [read(number, 13.1) for number in (2, 1)] == [True, False]
    assert read(1, 24.0, 500, 50)
    plain = tmp_path / "plain.log"
    plain.write_bytes(b"x")
    assert unpacking.may_read(tracked(host, plain, 9), 24.0)
    assert not unpacking.may_read(files[0], 25.0)
    handles.close()


def is_measured(host: OperatingSystem, path: Path) -> bool:
    try:
        host.open(str(path)).close()
    except BlockingIOError:
        return False
    return True
