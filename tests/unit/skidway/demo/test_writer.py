from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skidway.demo import writer
from skidway.demo.sources import ACCESS_LINE, ORDER_SCHEMA
from skidway.demo.writer import FORMATS, Stream, Writer

NOW = datetime(2026, 11, 21, 9, 8, 7, tzinfo=UTC)


def test_lines_fit_their_parsers() -> None:
    """The written lines fit the demo's three formats: raw lines, the demo's pattern, and its JSON
    schema."""
    for number in range(0, 5_000, 7):
        assert "\n" not in writer.raw_line(number, NOW)
        assert re.fullmatch(ACCESS_LINE, writer.regex_line(number, NOW))
        fields: list[dict[str, str]] = ORDER_SCHEMA["fields"]  # type: ignore[assignment]
        assert set(json.loads(writer.json_line(number, NOW))) == {f["name"] for f in fields}


@pytest.mark.parametrize("lines", [1_000, 100_000])
def test_lines_are_written_evenly_and_then_at_a_fixed_rate(lines: int) -> None:
    """The demo's writer writes all lines evenly within the given seconds. Afterwards it writes 200
    lines in each second, whatever the rate was before."""
    due = [writer.due(at, lines, 10.0) for at in (0.0, 5.0, 10.0, 12.0)]
    assert due == [0, lines // 2, lines, lines + 400]


@pytest.mark.parametrize("counts", [[7, 1, 1, 30], [1] * 10, [0, 3, 2]])
def test_streams_share_every_line(counts: list[int]) -> None:
    """Each line goes to exactly one of the writer's streams (the three logs), however many lines
    are written at a time. The numbers of lines in the streams differ by at most one."""
    made, shares = 0, [0] * len(FORMATS)
    for count in counts:
        mine = [writer.share(made, count, at) for at in range(len(FORMATS))]
        assert sum(mine) == count
        shares = [sum(pair) for pair in zip(shares, mine, strict=True)]
        made += count
    assert max(shares) - min(shares) <= 1


def test_what_is_said_is_what_lies_in_the_files(tmp_path: Path) -> None:
    """The writer reports exactly the lines and bytes that are in the files, even after rotations,
    and even if a second writer follows the first. No line is in the files twice."""
    for until in (9_000, 6_000):
        each = Writer(tmp_path, lines=1, seconds=1.0)
        for at in range(1_000, until + 1, 1_000):
            each.write(at)
    told = writer.written(tmp_path)
    for name in FORMATS:
        content = [path.read_bytes() for path in writer.files(tmp_path) if path.parent.name == name]
        assert len(content) > 2
        lines = b"".join(content).splitlines()
        assert told[name].lines == len(lines) == len(set(lines)) == 5_000
        assert told[name].bytes == sum(map(len, content))


def test_a_torn_line_is_ended_and_told_apart(tmp_path: Path) -> None:
    """If a killed writer left a torn line (a line that is only partly written), the next writer
    ends this line, and counts it as a torn line."""
    made = Writer(tmp_path, lines=1, seconds=1.0)
    made.write(300)
    torn = tmp_path / writer.JSON / f"{writer.JSON}.log"
    with torn.open("a") as file:
        file.write('{"time":"20')
    Writer(tmp_path, lines=1, seconds=1.0).write(3)
    told = writer.written(tmp_path)[writer.JSON]
    assert (told.lines, told.torn) == (101, 1)
    assert torn.read_bytes().count(b"\n") == 102
    Writer(tmp_path, lines=1, seconds=1.0)
    assert writer.written(tmp_path)[writer.JSON] == told


def test_a_rotation_cut_short_loses_no_generation(tmp_path: Path) -> None:
    """A writer that was killed while it renumbered the rotated files may leave a gap in their
    numbers. The next rotation renumbers only the files whose numbers are lower than the gap, so no
    file is overwritten."""
    folder = tmp_path / writer.RAW
    folder.mkdir()
    for number, text in ((2, "b"), (3, "c")):
        (folder / f"{writer.RAW}.log.{number}").write_text(f"{text}\n")
    stream = Stream(tmp_path, writer.RAW, torn=0, rotated_bytes=1)
    stream.append(1, NOW)
    stream.append(1, NOW)
    stream.close()
    assert len(list(folder.iterdir())) == 5
    assert (folder / f"{writer.RAW}.log.4").read_text() == "c\n"
    assert stream.tally.lines == 4
