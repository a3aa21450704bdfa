from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.cli.produce import Input


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def test_lines_are_joined_across_reads(pipe: tuple[int, int]) -> None:
    """`skidway produce` reads its input line by line. A line is returned as soon as it is complete,
    however many reads it needs. The last line is returned even without an LF."""
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


def test_a_device_is_not_waited_for() -> None:
    """`skidway produce` never waits for input from /dev/null, and reads no lines from it. Programs
    such as cron and systemd use /dev/null as the standard input of the commands that they start."""
    descriptor = os.open(os.devnull, os.O_RDONLY)
    source = Input(descriptor)
    assert source.wake == ()
    assert source.read() == []
    assert source.ended
    os.close(descriptor)


def test_input_that_ends_with_its_line_has_no_line_more(tmp_path: Path) -> None:
    """An LF at the end of an input file does not begin another, empty line. `skidway produce` does
    not wait for a file to grow."""
    path = tmp_path / "lines"
    path.write_bytes(b"a\nb\n")
    descriptor = os.open(path, os.O_RDONLY)
    source = Input(descriptor)
    assert source.wake == ()
    assert source.read() == [b"a", b"b"]
    assert source.read() == []
    assert source.ended
    os.close(descriptor)
