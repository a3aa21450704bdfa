from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.cli.produce import Input, partition_of


@pytest.mark.parametrize(
    ("key", "murmur2"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_partition_of_a_key_is_kafkas(key: bytes, murmur2: int) -> None:
    """Our lines and a Java producer's with the same key meet (values of Kafka's own hash)."""
    assert partition_of(key, 1 << 31) == murmur2 & 0x7FFFFFFF
    assert partition_of(key, 7) == (murmur2 & 0x7FFFFFFF) % 7


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def test_lines_are_joined_across_reads(pipe: tuple[int, int]) -> None:
    """A line comes once it is whole, however it was cut; the last one also without its end."""
    reader, writer = pipe
    source = Input(reader)
    assert source.wake == (reader,)
    got = []
    for part in (b"on", b"e\r\ntw", b"o\n\nthree\r", b"\nfour"):
        os.write(writer, part)
        got.append(source.read())
    os.close(writer)
    got.append(source.read())
    assert got == [[], [b"one"], [b"two", b""], [b"three"], [b"four"]]
    assert source.ended


def test_input_that_ends_with_its_line_has_no_line_more(tmp_path: Path) -> None:
    """A file's last LF ends a line and begins none; a file is never waited for."""
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    descriptor = os.open(path, os.O_RDONLY)
    source = Input(descriptor)
    assert source.wake == ()
    assert source.read() == [b"a", b"b"]
    assert source.read() == []
    assert source.ended
    os.close(descriptor)
