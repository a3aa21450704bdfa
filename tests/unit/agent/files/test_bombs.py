"""Small compressed files that ask for much memory or time."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard

from skidway.agent.files import plain_sizes
from skidway.agent.files.access import Access
from skidway.agent.files.decompressed import STREAM_WORK, WORK_MAX, Bounds, Decompressor
from skidway.agent.files.handles import Handles
from skidway.agent.files.operating_system import OpenFile, OperatingSystem
from skidway.agent.files.plain_sizes import Content, PlainSizes
from skidway.agent.files.unpacking import Unpacking
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.tracked import Birth, Checkpoint, TrackedFile
from support.processes import eventually
from support.running_agent import running

ZEROS = bytes(16 << 20)
PLAIN = bytes(range(256)) * 40


def opened(path: str) -> int:
    return OpenFile(path, Access()).descriptor


def test_a_large_file_delays_no_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While large files are measured, the agent learns the plain sizes of small ones, also of those
    that came later; then it learns those of the large ones, of each once."""
    monkeypatch.setattr(plain_sizes, "SLICE_BYTES", 1 << 20)
    learned: list[int | OSError] = []
    sizes, before = PlainSizes(Bounds(), opened), set(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(sizes, "learn", lambda _, size: learned.append(size))
    parts = {"large": 12, "larger": 13, "small": 0, "smaller": 0}
    for name, count in parts.items():
        path = tmp_path / f"{name}.log.1.bz2"
        path.write_bytes(bz2.compress(ZEROS[: 1 << 20]) * count + bz2.compress(name.encode()))
        sizes.ask(str(path), Content.of(os.stat(path)))
    eventually(lambda: len(learned) == len(parts), every_s=0.01)
    assert learned == [5, 7, (12 << 20) + 5, (13 << 20) + 6]
    eventually(lambda: set(os.listdir("/proc/self/fd")) == before)


def test_the_largest_file_delays_no_large_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large files, much smaller ones are measured sooner, also if they came later, and the
    largest one is measured, too."""
    monkeypatch.setattr(plain_sizes, "SLICE_BYTES", 1 << 20)
    learned: list[int | OSError] = []
    sizes = PlainSizes(Bounds(), opened)
    monkeypatch.setattr(sizes, "learn", lambda _, size: learned.append(size))
    for count in (90, 20, 3):
        path = tmp_path / f"{count}.log.1.gz"
        path.write_bytes(gzip.compress(ZEROS[: 1 << 20]) * count)
        # the thread that measures begins when all files are asked for
        sizes._thread = None if count == 3 else threading.current_thread()
        sizes.ask(str(path), Content.of(os.stat(path)))
    eventually(lambda: len(learned) == 3, every_s=0.01)
    assert learned == [count << 20 for count in (3, 20, 90)]


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
    sizes, content = PlainSizes(Bounds(), opened), Content.of(os.stat(path))
    sizes.ask(str(path), content)
    eventually(lambda: sizes.known(content) is not None, every_s=0.01)
    assert sizes.known(content) == 5 + len(more)


PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".lzma": lambda data: lzma.compress(data, lzma.FORMAT_ALONE),
    ".zst": zstandard.compress,
}


def read_whole(path: Path) -> bytes:
    """Reads a file in steps, as if it were measured."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        plain, parts = Decompressor(str(path), descriptor, Bounds()), []
        while not plain.is_at_end:
            parts.append(plain.step(1 << 20))
    finally:
        os.close(descriptor)
    return b"".join(parts)


@pytest.mark.parametrize("ending", PACK)
def test_what_has_no_content_has_an_end(tmp_path: Path, ending: str) -> None:
    """A file with some thousand empty parts is read; one with very many is damaged, so that no read
    takes long."""
    pack, path = PACK[ending], tmp_path / f"app.log.1{ending}"
    empty, few, many = pack(b""), 5_000, WORK_MAX // STREAM_WORK
    path.write_bytes(pack(b"first\n") + empty * few + pack(b"last\n"))
    assert read_whole(path) == b"first\nlast\n"
    path.write_bytes(pack(b"first\n") + empty * many + pack(b"last\n"))
    with pytest.raises(OSError, match="too many parts without content"):
        read_whole(path)


def test_a_hole_behind_a_stream_has_an_end(tmp_path: Path) -> None:
    """A terabyte of padding, which takes no room on the disk, keeps nobody busy: the file is
    damaged."""
    path = tmp_path / "app.log.1.gz"
    path.write_bytes(gzip.compress(b"first"))
    os.truncate(path, 1 << 40)
    with pytest.raises(OSError, match="too many parts without content"):
        read_whole(path)


@pytest.mark.parametrize("ending", PACK)
def test_a_stream_for_each_line_is_no_harm(tmp_path: Path, ending: str) -> None:
    """A file of any length to which each line was added as a stream of its own is read."""
    path, count = tmp_path / f"app.log.1{ending}", 3 * WORK_MAX // STREAM_WORK
    line = b"2026-11-29 08:00:00 INFO begun\n"
    path.write_bytes(PACK[ending](line + b"\n") * count)
    assert read_whole(path) == (line + b"\n") * count


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


@pytest.mark.parametrize("more", [10, 300_000])
def test_long_lines_of_a_compressed_file_are_decompressed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    """The agent reads a compressed file with many long lines without decompressing what is before
    a line again and again: in the loop that reads all topics, that would take the square of the
    file's size."""
    lines = [bytes([65 + number]) * ((2 << 20) + more) + b"\n" for number in range(12)]
    (tmp_path / "a.log.gz").write_bytes(gzip.compress(b"".join(lines), 1))
    count = [0]
    step = Decompressor.step

    def counted(self: Decompressor, most: int) -> bytes:
        made = step(self, most)
        count[0] += len(made)
        return made

    monkeypatch.setattr(Decompressor, "step", counted)
    with running(tmp_path, monkeypatch) as site:
        site.write(sources=[site.source("logs", "*.gz")])
        site.reload()
        eventually(lambda: site.turns(5) or site.lines("logs.rejected") == len(lines))
    assert count[0] <= 3 * sum(map(len, lines))
