"""Tests how `skidway audit compare` matches lines of files with records in a topic. A log shipper
(another program than Skidway's agent) has made these records from the lines. The tests use no
broker."""

from __future__ import annotations

import gzip
import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from skidway.audit.comparison import lines, matching, reports
from skidway.audit.comparison.lines import may_have_been
from skidway.audit.comparison.matching import Fate, Records, Result
from skidway.audit.comparison.shapes import Shipped
from skidway.errors import SkidwayError, UsageError

TEXTS = [f"line {number:02}" for number in range(10)]


class Log:
    """The files of one log (the newest file and rotated ones), and the records that a log shipper
    made of their lines."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, str(folder / "app.log")
        self.records: list[Shipped] = []
        self._written = 0

    def write(self, texts: Sequence[str], name: str = "app.log") -> None:
        path = self.folder / name
        data = "".join(f"{text}\n" for text in texts).encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        self._written += 1
        os.utime(path, (self._written, self._written))

    def ship(self, texts: Sequence[str], *, begin: int = 0, places: bool = True) -> None:
        """Adds a record for each of the lines `texts`, which follow each other in the log's newest
        file from byte `begin` on. If `places` is false, the records have neither path nor
        position."""
        for text in texts:
            path, offset = (self.path, begin) if places else (None, None)
            self.records.append(Shipped("web7", path, offset, text.encode()))
            begin += len(text) + 1

    def compare(self, *, is_whole: bool = True) -> Result:
        files = [lines.read(path) for path in lines.files_of([f"{self.folder}/*"])]
        records = Records("web7.example.com", [each.paths for each in files])
        for at, each in enumerate(self.records):
            records.add(each, 0, at)
        return matching.compare(files, records, is_whole=is_whole)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def spans(result: Result) -> list[tuple[Fate, int, int, int]]:
    return [(each.fate, each.first, each.end, each.lines) for each in result.spans]


@pytest.mark.parametrize("places", [True, False])
def test_lines_that_were_shipped_once_are_good(log: Log, places: bool) -> None:
    """If every line of a log's files has one record in the topic, `skidway audit compare` finds
    nothing wrong. It does not matter whether the records say at which byte of the file their lines
    begin."""
    log.write(TEXTS)
    log.ship(TEXTS, places=places)
    result = log.compare()
    assert spans(result) == []
    assert reports.is_good(result)


@pytest.mark.parametrize("places", [True, False])
def test_missing_doubled_and_pending_lines_are_told_apart(log: Log, places: bool) -> None:
    """`skidway audit compare` searches the topic for the record of each line of a log. A line
    without a record counts as missing if a later line has a record, and otherwise as not shipped
    yet. A line with two records counts as doubled, and the result names the partition and offset of
    the second record."""
    log.write(TEXTS)
    log.ship(TEXTS[:3], places=places)
    log.ship(TEXTS[2:3], begin=16, places=places)
    log.ship(TEXTS[5:8], begin=40, places=places)
    result = log.compare()
    assert spans(result) == [
        (Fate.DOUBLED, 16, 24, 1),
        (Fate.MISSING, 24, 40, 2),
        (Fate.NOT_YET, 64, 80, 2),
    ]
    assert result.spans[0].place == (0, 3)
    assert (result.files[0].extra, result.unknown) == (1, 0)
    assert not reports.is_good(result)


def test_equal_lines_are_counted(log: Log) -> None:
    """A line that is in the log three times needs three records in the topic. If there are only
    two, and the records do not say at which byte their lines begin, the last of the three lines
    counts as missing."""
    log.write(["start", "same", "same", "same", "stop"])
    log.ship(["start", "same", "same", "stop"], places=False)
    assert spans(log.compare()) == [(Fate.MISSING, 16, 21, 1)]


def test_the_rest_of_a_rotated_file_is_missing(log: Log) -> None:
    """If a log shipper has already sent lines of a newer file of the log, unsent lines at the end
    of a rotated file count as missing, and not as "not shipped yet"."""
    log.write(TEXTS, "app.log.2.gz")
    log.write(["x1", "x2"], "app.log.1")
    log.write(["y1", "y2"])
    log.ship(TEXTS[:8])
    log.ship(["x1"])
    result = log.compare()
    assert spans(result) == [
        (Fate.MISSING, 64, 80, 2),
        (Fate.NOT_YET, 3, 6, 1),
        (Fate.NOT_YET, 0, 6, 2),
    ]


def test_a_rotated_file_of_which_nothing_was_shipped_is_missing(log: Log) -> None:
    """If none of a rotated file's lines has a record, but lines of a newer file were shipped, all
    lines of the rotated file count as missing."""
    log.write(TEXTS, "app.log.1")
    log.write(["y1"])
    log.ship(["y1"])
    assert spans(log.compare()) == [(Fate.MISSING, 0, 80, 10)]
    assert spans(log.compare(is_whole=False)) == [(Fate.NOT_COMPARED, 0, 80, 10)]


def test_lines_before_the_records_that_were_read_are_not_compared(log: Log) -> None:
    """If `skidway audit compare` reads only the newer records of a topic, it may find no record for
    the first lines of a file. These lines do not count as missing, because their records may be
    among the older records, which the command did not read."""
    log.write(TEXTS)
    log.ship(TEXTS[4:], begin=32)
    assert spans(log.compare(is_whole=False)) == [(Fate.NOT_COMPARED, 0, 32, 4)]
    assert spans(log.compare()) == [(Fate.MISSING, 0, 32, 4)]


def test_records_that_expired_from_another_partition_are_not_missed(log: Log) -> None:
    """If records have expired from one of several partitions, an old line without a record may have
    had one of the expired records. `skidway audit compare` knows a time since which no record has
    expired. A line without a record counts as missing only if an earlier line of the file has a
    record that is newer than this time."""
    log.write(TEXTS)
    files = [lines.read(path) for path in lines.files_of([f"{log.folder}/*"])]
    records = Records("web7", [each.paths for each in files])
    for number in (0, 2, 5, 7):  # the records of lines 1, 3, 4 and 6 have expired
        shipped = Shipped("web7", log.path, 8 * number, TEXTS[number].encode())
        records.add(shipped, 0, number, 1_000 * number)
    records.add(Shipped("web7", log.path, 64, TEXTS[8].encode()), 1, 9, 8_000)
    for certain_ms, missing in ((4_999, [(Fate.MISSING, 48, 56, 1)]), (8_000, [])):
        result = matching.compare(files, records, is_whole=False, certain_ms=certain_ms)
        found = spans(result)
        assert [each for each in found if each[0] is Fate.MISSING] == missing
        assert {each[0] for each in found} <= {Fate.MISSING, Fate.NOT_COMPARED, Fate.NOT_YET}
        assert found[-1] == (Fate.NOT_YET, 72, 80, 1)


def test_the_end_of_a_rotated_file_without_a_certain_record_is_not_compared(log: Log) -> None:
    """`skidway audit compare` knows a time since which no record has expired. A line without a
    record counts as missing only if an earlier line of its file has a record that is newer than
    this time. This is so even for lines at the end of a rotated file, because the records of these
    lines may have expired."""
    log.write(["one", "two"], "app.log.1")
    log.write(["three"])
    files = [lines.read(path) for path in lines.files_of([f"{log.folder}/*"])]
    records = Records("web7", [each.paths for each in files])
    records.add(Shipped("web7", log.path, 0, b"one"), 0, 0, 10)
    records.add(Shipped("web7", log.path, 0, b"three"), 0, 1, 30)
    for certain_ms, fate in ((20, Fate.NOT_COMPARED), (9, Fate.MISSING)):
        result = matching.compare(files, records, is_whole=False, certain_ms=certain_ms)
        assert spans(result) == [(fate, 4, 8, 1)]


def test_a_changed_line_is_neither_missing_nor_unknown(log: Log) -> None:
    """A line counts as changed if the record with the line's path and first byte has another text
    (for example only a part of the line). The line does not count as missing, and the record does
    not count as a record without a line."""
    log.write(TEXTS)
    log.ship([*TEXTS[:4], "line 0?", *TEXTS[5:]])
    result = log.compare()
    assert spans(result) == [(Fate.CHANGED, 32, 40, 1)]
    assert (result.spans[0].place, result.unknown) == ((0, 4), 0)


def test_records_of_others_are_left_out(log: Log) -> None:
    """Records of other hosts and of other logs are not matched with the lines of the compared log,
    even if they have the same text and position."""
    log.write(TEXTS[:1])
    files = [lines.read(log.path)]
    records = Records("web7", [(log.path,)])
    records.add(Shipped("web8", log.path, 0, TEXTS[0].encode()), 0, 0)
    records.add(Shipped("web7", "/elsewhere/app.log", 0, TEXTS[0].encode()), 0, 1)
    records.add(None, 0, 2)
    result = matching.compare(files, records, is_whole=True)
    assert (records.other_hosts, records.other_files, records.shapeless) == (1, 1, 1)
    assert not reports.is_good(result)
    assert next(reports.sentences(result, records, 5)).startswith("Nothing was compared")


def test_generations_with_equal_lines_at_equal_places(log: Log) -> None:
    """If two files of a log begin with the same line, each of the two lines needs its own
    record."""
    log.write(["header", "a"], "app.log.1")
    log.write(["header", "b"])
    log.ship(["header", "a"])
    log.ship(["header", "b"])
    assert spans(log.compare()) == []
    log.records.pop(0)
    (span,) = log.compare().spans
    assert (span.fate, span.first, span.lines) == (Fate.MISSING, 0, 1)


def test_empty_and_unfinished_lines_do_not_count(log: Log) -> None:
    """Empty lines need no record, because shippers leave them out. The last line of a file needs
    none if it has no line end yet, because it may still grow."""
    (log.folder / "app.log").write_bytes(b"a\n\n\r\nb\r\nunfinished")
    log.ship(["a"])
    log.ship(["b"], begin=5)
    assert spans(log.compare()) == []


@pytest.mark.parametrize(
    ("path", "shipped", "may"),
    [
        ("/l/app.log", "/l/app.log", True),
        ("/l/app.log.1", "/l/app.log", True),
        ("/l/app.log.2.gz", "/l/app.log", True),
        ("/l/app.log-20260131", "/l/app.log", True),
        ("/l/app-20260131.log", "/l/app.log", True),
        ("/l/app-20260131.log.xz", "/l/app.log", True),
        ("/l/app.log", "/l/app.log.1", False),
        ("/l/apple.log", "/l/app.log", False),
        ("/m/app.log", "/l/app.log", False),
        ("/l/other.log", "/l/app.log", False),
    ],
)
def test_names_of_rotated_files(path: str, shipped: str, may: bool) -> None:
    """`skidway audit compare` recognizes whether the file at `path` may be the file that a log
    shipper has read at the path `shipped`, perhaps before a rotation."""
    assert may_have_been(path, shipped) is may


def test_the_files_of_patterns(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of patterns yields the absolute path of each regular file that matches at least one
    pattern. Each file comes once, the oldest first."""
    log.write(TEXTS, "app.log.1")
    log.write(TEXTS)
    (log.folder / "app.log.link").symlink_to(log.path)
    (log.folder / "app.log.gone").symlink_to("nothing")
    (log.folder / "app.log.d").mkdir()
    monkeypatch.chdir(log.folder)
    assert lines.files_of(["app.log*", "app.log"]) == [f"{log.path}.1", log.path]


def test_files_are_bounded(log: Log) -> None:
    """`skidway audit compare` refuses a pattern that matches no file. It also refuses the files if
    they have, all together, more lines than the limit."""
    log.write(TEXTS)
    with pytest.raises(UsageError, match="more than"):
        lines.read(log.path, room=9)
    with pytest.raises(UsageError, match="no file has a path like"):
        lines.files_of(["/nowhere/*"])


@pytest.mark.parametrize("seed", range(20))
def test_what_was_injected_is_found(log: Log, seed: int) -> None:
    """If some random lines have no record or several records, `skidway audit compare` finds exactly
    these lines, even if some lines have equal texts."""
    chance = random.Random(seed)
    texts = [f"{chance.choice('ab')} {chance.randrange(40)}" for _ in range(200)]
    log.write(texts)
    times = [chance.choice([1, 1, 1, 1, 0, 2, 3]) for _ in texts[:-1]] + [1]
    begins = [sum(len(text) + 1 for text in texts[:at]) for at in range(len(texts))]
    for at, text in enumerate(texts):
        for _ in range(times[at]):
            log.ship([text], begin=begins[at])
    chance.shuffle(log.records)
    found: Counter[Fate] = Counter()
    result = log.compare()
    for each in result.spans:
        found[each.fate] += each.lines
        inside = [at for at, begin in enumerate(begins) if each.first <= begin < each.end]
        wanted = {Fate.MISSING: {0}, Fate.DOUBLED: {2, 3}}[each.fate]
        assert {times[at] for at in inside} <= wanted
    assert found[Fate.MISSING] == times.count(0)
    assert found[Fate.DOUBLED] == times.count(2) + times.count(3)
    assert result.files[0].extra == times.count(2) + 2 * times.count(3)


def test_a_link_to_itself_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """A link that leads to itself cannot be read. If `skidway audit compare` is given such a link,
    it says so, and compares nothing."""
    (tmp_path / "a.log").write_text("a\n")
    (tmp_path / "self.log").symlink_to("self.log")
    with pytest.raises(UsageError, match=r"cannot read .*self\.log: Too many levels"):
        lines.files_of([str(tmp_path / "*.log")])


def test_a_damaged_compressed_file_is_named(tmp_path: Path) -> None:
    """If the data of a compressed file is damaged, `skidway audit compare` ends with a sentence
    that names the file."""
    path = tmp_path / "app.log.1.gz"
    data = bytearray(gzip.compress(b"".join(b"line %d\n" % n for n in range(3000))))
    data[200:260] = bytes(x ^ 0xFF for x in data[200:260])
    path.write_bytes(data)
    with pytest.raises(SkidwayError, match="cannot be read"):
        lines.read(str(path))
