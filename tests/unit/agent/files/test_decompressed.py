"""Tests with real compressed files. The tests read the decompressed bytes at any position, measure
the decompressed size, and check that damage is noticed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard

from skidway.agent.files.host import Handle
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.values.found import DAMAGED, UNMEASURED
from support.processes import eventually

PLAIN = random.Random(1).randbytes(300_000) + b"line\n" * 700_000

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    ".zst": zstandard.compress,
}


def opened(host: OperatingSystem, path: Path) -> Handle:
    """Opens the file as the agent does: tries again until the decompressed size of the file is
    measured."""

    handles: list[Handle] = []

    def attempt() -> list[Handle]:
        with suppress(BlockingIOError):
            handles.append(host.open(str(path)))
        return handles

    eventually(attempt, every_s=0.01)
    return handles[0]


@pytest.mark.parametrize("ending", COMPRESS)
def test_plain_bytes_at_any_position(tmp_path: Path, ending: str) -> None:
    """The decompressed bytes of a compressed file can be read at any position: forwards, backwards,
    across separately compressed parts, and beyond the end."""
    path = tmp_path / f"app.log.1{ending}"
    parts = [PLAIN[:1_000], PLAIN[1_000:]] if ending != ".lzma" else [PLAIN]
    path.write_bytes(b"".join(COMPRESS[ending](part) for part in parts))
    host = OperatingSystem()
    found = host.look(str(path))
    assert found is not None
    assert found.size == UNMEASURED
    handle = opened(host, path)
    found = host.look(str(path))
    assert found is not None
    assert found.size == handle.status().size == len(PLAIN)
    assert handle.status().key == found.key
    places = [(0, 1024), (0, 70_000), (69_000, 70_000), (900, 200), (2_900_000, 50), (5, 9)]
    places += [(2_000_000, 262_144), (len(PLAIN) - 10, 99), (len(PLAIN), 1), (len(PLAIN) + 9, 1)]
    for position, count in places:
        assert handle.read(count, position) == PLAIN[position : position + count]
    handle.close()


def test_a_plain_file_under_such_a_name(tmp_path: Path) -> None:
    """A plain file with a name like that of a compressed file is read unchanged, because its first
    bytes show that it is not compressed."""
    path = tmp_path / "app.log.gz"
    path.write_bytes(b"plain\n")
    host = OperatingSystem()
    handle = host.open(str(path))
    assert handle.read(99, 0) == b"plain\n"
    found = host.look(str(path))
    assert found is not None
    assert found.size == handle.status().size == 6
    handle.close()


@pytest.mark.parametrize("ending", COMPRESS)
def test_half_a_file_is_damaged_until_it_is_whole(tmp_path: Path, ending: str) -> None:
    """A compressed file that another program is still writing counts as damaged. When the file's
    size has changed, the agent can open it again and read it."""
    path = tmp_path / f"app.log.1{ending}"
    packed = COMPRESS[ending](PLAIN)
    path.write_bytes(packed[: len(packed) // 2])
    host = OperatingSystem()
    with pytest.raises(OSError, match="cannot be decompressed"):
        opened(host, path)
    found = host.look(str(path))
    assert found is not None
    assert found.size == DAMAGED
    path.write_bytes(packed)
    handle = opened(host, path)
    assert handle.read(9, len(PLAIN) - 9) == PLAIN[-9:]
    handle.close()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    """No file descriptor stays open after a compressed file was read or was found damaged."""
    host = OperatingSystem()
    whole, half = tmp_path / "a.log.gz", tmp_path / "b.log.gz"
    whole.write_bytes(gzip.compress(PLAIN))
    half.write_bytes(gzip.compress(PLAIN)[:1000])
    before = set(os.listdir("/proc/self/fd"))
    opened(host, whole).close()
    with pytest.raises(OSError, match="cannot be decompressed"):
        opened(host, half)
    handle = opened(host, whole)
    handle.read(10, 10)
    handle.close()
    assert set(os.listdir("/proc/self/fd")) == before
