from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from skidway.demo import writer
from skidway.demo.counts import Written
from skidway.demo.writer import ACCESS_LINE, JSON, ORDER_FIELDS, TOPICS, Stream, files

NOW = datetime(2026, 11, 21, 9, 8, 7, tzinfo=UTC)


def test_lines_fit_their_parsers() -> None:
    """The written lines fit the demo's three formats: raw lines, the demo's pattern, and its JSON
    schema."""
    for number in range(0, 5_000, 7):
        assert "\n" not in writer.raw_line(number, NOW)
        assert re.fullmatch(ACCESS_LINE, writer.regex_line(number, NOW))
        assert set(json.loads(writer.json_line(number, NOW))) == set(ORDER_FIELDS)


def test_what_is_counted_is_what_lies_in_the_files(tmp_path: Path) -> None:
    """The demo counts exactly the lines and bytes that are in the writer's files, also after
    rotations, and if a second writer follows the first, which overwrites no file."""
    written = Written(tmp_path)
    for until in (3_000, 2_000):
        streams = [Stream(tmp_path, topic, rotated_lines=900) for topic in TOPICS]
        for at in range(1_000, until + 1, 1_000):
            for stream in streams:
                stream.write(at, NOW)
            written.count()
    for topic, tally in written.count().items():
        content = [path.read_bytes() for path in files(tmp_path) if path.parent.name == topic]
        assert len(content) == 5
        assert tally["lines"] == len(b"".join(content).splitlines()) == 5_000
        assert (tally["torn"], tally["bytes"]) == (0, sum(map(len, content)))


def test_a_torn_line_is_told_apart(tmp_path: Path) -> None:
    """If a killed writer left a torn line (a line that is only partly written), the next writer
    begins a new file. The torn line is counted apart."""
    Stream(tmp_path, JSON, rotated_lines=1_000).write(300, NOW)
    with (tmp_path / JSON / f"{JSON}.log").open("a") as file:
        file.write('{"time":"20')
    Stream(tmp_path, JSON, rotated_lines=1_000).write(3, NOW)
    tally = Written(tmp_path).count()[JSON]
    assert (tally["lines"], tally["torn"]) == (303, 1)
    assert len(files(tmp_path)) == 2
