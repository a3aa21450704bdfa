"""Tests how `skidway agent count` stores its notes (the first byte, length and hash of each line of
a host's files), and how `skidway audit compare` compares the noted lines with the records of a log
shipper."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from skidway.agent.counting.state import open_count
from skidway.audit.comparison import lines, matching, notes, reports
from skidway.audit.comparison.matching import Fate, Records, Result
from skidway.audit.comparison.notes import NOT_COMPARED, Counted, Notes, Unnoted
from skidway.audit.comparison.shapes import Shipped
from skidway.errors import StateRefused, UsageError
from support.counting import LOG, Counting

OTHER = "/log/other.log"


@pytest.fixture
def world(tmp_path: Path) -> Counting:
    return Counting(tmp_path / "notes")


@pytest.mark.parametrize("seed", range(20))
def test_notes_have_the_same_lines_as_the_file(tmp_path: Path, seed: int) -> None:
    """The notes of `skidway agent count` contain the first byte, length and hash of each line of a
    file. They have the same lines that `skidway audit compare` finds if it reads the file itself.
    This holds whatever line ends, empty lines and other bytes the file has."""
    chance = random.Random(seed)
    pieces = (b"a", b"\xff\x00", b"\n", b"\r\n", b"\r", b"\n\n", b"text of a line")
    data = b"".join(chance.choices(pieces, k=chance.randrange(1, 200)))
    path = tmp_path / "app.log"
    path.write_bytes(data)
    begins, lengths, hashes = notes.columns(0, notes.lines_of(data, is_divided=False))
    is_compared = hashes != NOT_COMPARED
    read = lines.read(str(path))
    assert begins[is_compared].tolist() == list(read.begins)
    assert lengths[is_compared].tolist() == list(read.lengths)
    assert hashes[is_compared].tolist() == list(read.hashes)
    assert int(lengths.sum()) == len(data)


@pytest.mark.parametrize(("data", "compared"), [(b"rest\nb\n", [5]), (b"rest", []), (b"x\ny", [])])
def test_parts_of_lines_are_not_compared(data: bytes, compared: list[int]) -> None:
    """A note of `skidway agent count` covers a range of a file. If the range begins inside a line,
    the rest of this line is not compared, and neither is a last line without a line end. The note
    still contains their lengths, so that all lengths add up to the length of the range."""
    begins, lengths, hashes = notes.columns(100, notes.lines_of(data, is_divided=True))
    assert begins[hashes != NOT_COMPARED].tolist() == [100 + each for each in compared]
    assert int(lengths.sum()) == len(data)


def test_damaged_notes_are_refused(world: Counting) -> None:
    """If the content of a note does not agree with the note's checksum, `skidway audit compare`
    refuses the note, and does not compare the lines in it."""
    world.write("a", "b")
    world.turn()
    world.kill()
    with sqlite3.connect(world.directory / notes.DATABASE) as connection:
        connection.execute('UPDATE notes SET first = first + 1, "end" = "end" + 1')
    with pytest.raises(StateRefused, match="another checksum"):
        world.counted()


def test_what_are_no_notes_is_refused(tmp_path: Path) -> None:
    """`skidway audit compare` refuses three kinds of directories, each with its own sentence: a
    directory without notes of lines, a directory whose notes have no entry yet, and a directory in
    which the file of the notes is not a database."""
    with pytest.raises(UsageError, match="has no notes"):
        Notes(tmp_path).read(0, 0)
    open_count(tmp_path).close()
    with pytest.raises(UsageError, match="noted nothing"):
        Notes(tmp_path).from_ms()
    (tmp_path / notes.DATABASE).write_bytes(b"no database, but long enough to look like one" * 99)
    with pytest.raises(StateRefused, match="cannot be used"):
        Notes(tmp_path).read(0, 0)


def test_notes_are_bounded(world: Counting) -> None:
    """If the notes have more lines than `skidway audit compare` can take, it refuses the notes, and
    says that --since must be later. With a later --since, it accepts the notes."""
    world.write(*"abc")
    world.turn()
    world.clock.advance(100_000)
    world.write("d")
    world.turn()
    with pytest.raises(UsageError, match="name a shorter time"):
        Notes(world.directory).read(0, 0, room=3)
    counted = Notes(world.directory).read(world.clock.time_ms(), 0, room=3)
    assert [list(each.begins) for each in counted.files] == [[6]]


# --- matching ---------------------------------------------------------------------------------


def ship(records: Records, texts: list[str], *, path: str = LOG, begin: int = 0) -> None:
    for text in texts:
        records.add(Shipped("web7", path, begin, text.encode()), 0, len(records.hashes))
        begin += len(text) + 1


def records_of(world: Counting) -> Records:
    return Records("web7", [each.paths for each in world.counted().files], are_noted=True)


def compare(world: Counting, records: Records) -> Result:
    from_ms = world.counted().from_ms
    notes_ = Notes(world.directory, world.is_at)
    counted = notes_.read(0, world.clock.time_ms(), whole_ms=from_ms)
    return matching.compare(counted.files, records, is_whole=False, since_ms=from_ms)


def spans(result: Result) -> list[tuple[int, Fate, int, int]]:
    return [(each.file, each.fate, each.first, each.lines) for each in result.spans]


def rotated(world: Counting) -> None:
    """Writes three files of a log, one after the other. Rotates and deletes the first and the
    second file, after the agent has noted their lines. The third file still exists, and its lines
    are noted, too."""
    world.turn()  # the first look
    for number, texts in enumerate((["a1", "a2", "a3"], ["b1", "b2", "b3"])):
        world.write(*texts)
        world.turn()
        world.rotate(f"{LOG}.{number}")
        world.turn()
        world.files.delete(f"{LOG}.{number}")
    world.write("c1", "c2")
    world.turn()


def test_losses_and_doublings_of_deleted_files_are_found(world: Counting) -> None:
    """The notes of `skidway agent count` still have the lines of a deleted file. Such a line counts
    as missing if no record in the topic has it, and as doubled if two records have it."""
    rotated(world)
    records = records_of(world)
    ship(records, ["a1"])
    ship(records, ["a3"], begin=6)
    ship(records, ["b1", "b2", "b3"])
    ship(records, ["b2"], begin=3)
    ship(records, ["c1"])
    result = compare(world, records)
    assert spans(result) == [
        (0, Fate.MISSING, 3, 1), (1, Fate.DOUBLED, 3, 1), (2, Fate.NOT_YET, 3, 1),
    ]  # fmt: skip
    assert (result.unknown, reports.is_good(result)) == (0, False)


@pytest.mark.parametrize("is_inode_reused", [False, True])
def test_the_end_of_a_deleted_file_is_missing(tmp_path: Path, is_inode_reused: bool) -> None:
    """The lines of a deleted file after its last shipped line count as missing, because the log
    shipper cannot send them any more. This holds even if the shipper has sent no line of a newer
    file, or if a new file has the inode and the path of the deleted file."""
    world = Counting(tmp_path / "notes", "/log/*.log")
    world.turn()
    for path in (LOG, OTHER):
        world.write("a1", "a2", path=path)
        world.turn()
    world.files.delete(OTHER)
    if is_inode_reused:
        world.turn()
        world.files.reuse_last_inode()
        world.write("other", path=OTHER)
    world.turn()
    records = records_of(world)
    ship(records, ["a1"], path=OTHER)
    ship(records, ["a1"], path=LOG)
    found = spans(compare(world, records))
    newer = [(2, Fate.NOT_YET, 0, 1)] if is_inode_reused else []
    assert found == [(0, Fate.NOT_YET, 3, 1), (1, Fate.MISSING, 3, 1), *newer]


def test_lines_that_were_not_shipped_for_an_hour_are_named(tmp_path: Path) -> None:
    """If a log shipper does not send a file at all, for example because its pattern does not match
    the file, the lines of the file are called late after an hour. The report of `skidway audit
    compare` then names the file, and its result is not good."""
    world = Counting(tmp_path / "notes", "/log/*.log")
    world.turn()
    for path in (LOG, OTHER):
        world.write("a1", "a2", path=path)
        world.turn()
    world.write("a3", path=LOG)
    records = records_of(world)
    ship(records, ["a1", "a2"], path=LOG)
    for seconds, late in ((3_590, 0), (20, 2)):
        world.clock.advance(seconds)
        world.turn()
        result = compare(world, records)
        assert [each.late for each in result.files] == [0, late]
        assert result.files[0].counts[Fate.NOT_YET] == 1
        assert reports.is_good(result) is not bool(late)
    sentences = [*reports.sentences(result, records, 20, is_counted=True)]
    assert f"2 of them, in {OTHER}, were noted more than an hour ago:" in " ".join(sentences)


@pytest.mark.parametrize("copy", [f"{LOG}.1", f"{LOG}-20260131", "/log/app-20260131.log"])
def test_a_copy_that_is_shipped_too_doubles_its_lines(world: Counting, copy: str) -> None:
    """If a log shipper sends both a log and a copy of it (for example one that copytruncate made),
    the lines count as doubled, although the notes of `skidway agent count` have them only once."""
    world.turn()
    world.write("a1", "a2")
    world.turn()
    records = records_of(world)
    ship(records, ["a1", "a2"])
    ship(records, ["a1", "a2"], path=copy)
    result = compare(world, records)
    assert spans(result) == [(0, Fate.DOUBLED, 0, 2)]
    assert (records.other_files, result.unknown) == (0, 0)


@pytest.mark.parametrize("other", ["/log/app-error.log", "/log/app.log.audit", "/log/app_1a.log"])
def test_another_log_is_no_copy(world: Counting, other: str) -> None:
    """If the log shipper also sends another log with a similar name, `skidway audit compare`
    ignores the records of this other log. They do not count as records of the noted log, even if
    both logs begin with the same line."""
    world.turn()
    world.write("header", "a1", "a2")
    world.turn()
    records = records_of(world)
    ship(records, ["header", "x1", "x2"], path=other)
    ship(records, ["a1"], begin=7)
    result = compare(world, records)
    assert spans(result) == [(0, Fate.MISSING, 0, 1), (0, Fate.NOT_YET, 10, 1)]
    assert records.other_files == 3


def test_a_copy_has_no_changed_lines(world: Counting) -> None:
    """A log shipper has sent a record of a copy of a log. In the log itself, the line at the same
    position has another text, and no record. This line counts as not shipped yet, and not as
    changed. The lines before it that have no record count as not shipped yet, too, and not as
    missing."""
    world.turn()
    world.write("a1", "a2", "a3")
    world.turn()
    records = records_of(world)
    ship(records, ["a1"])
    ship(records, ["b3"], path=f"{LOG}.2", begin=6)
    assert spans(compare(world, records)) == [(0, Fate.NOT_YET, 3, 2)]


def test_a_loss_is_not_forgotten_when_its_file_is_deleted(tmp_path: Path) -> None:
    """A log shipper sent no line of a file, and the file was deleted. If `skidway agent count`
    noted a line more than an hour after it began to count, the line is missing. Lines that it noted
    sooner are not compared, because the shipper may have sent them before the count began. As long
    as the file exists, all its lines are only late."""
    world = Counting(tmp_path / "notes", "/log/*.log")
    world.write("a1", "a2", path=OTHER)
    world.write("b1")
    world.turn()
    world.clock.advance(3_700)
    world.write("a3", "a4", path=OTHER)
    world.turn()
    world.clock.advance(3_700)
    world.turn()
    records = records_of(world)
    ship(records, ["b1"])
    result = compare(world, records)
    assert [x.late for x in result.files if x.path == OTHER] == [4]
    world.files.delete(OTHER)
    world.turn()
    result = compare(world, records)
    (at,) = (n for n, x in enumerate(result.files) if x.path == OTHER)
    assert [x[1:] for x in spans(result) if x[0] == at] == [
        (Fate.NOT_COMPARED, 0, 2), (Fate.MISSING, 6, 2),
    ]  # fmt: skip
    assert not reports.is_good(result)


def test_what_cannot_be_looked_at_is_not_gone(tmp_path: Path) -> None:
    """A file counts as deleted only if its path leads to nothing or to another file. It does not
    count as deleted if the user of the command has no access to its path, because the file may
    still be there. In this test, such a path contains a link to itself."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    path = tmp_path / "app.log"
    path.touch()
    status = path.stat()
    for name, inode, is_at in (
        ("app.log", status.st_ino, True),
        ("app.log", status.st_ino + 1, False),
        ("app.log/none", status.st_ino, False),
        ("none", status.st_ino, False),
        ("loop/app.log", status.st_ino, True),
    ):
        assert notes._is_at(str(tmp_path / name), status.st_dev, inode) is is_at, name


def test_a_clock_that_was_set_back_hides_no_line(world: Counting) -> None:
    """If the clock was ahead when `skidway agent count` began, and is later set back by a day,
    lines that are noted afterwards are still compared. No line counts as missing if its record may
    be older than the records that `skidway audit compare` reads."""
    world.turn()
    world.write("a1", "a2")
    world.turn()
    world.clock.set_time_ms(world.clock.time_ms() - 86_400_000)
    world.write("a3", "a4")
    world.turn()
    counted = world.counted()
    assert counted.from_ms < world.clock.time_ms()
    later = Notes(world.directory, world.is_at).read(counted.from_ms, 0)
    assert [list(each.begins) for each in later.files] == [[0, 3, 6, 9]]
    records = records_of(world)
    ship(records, ["a2"], begin=3)
    ship(records, ["a4"], begin=9)
    assert spans(compare(world, records)) == [
        (0, Fate.NOT_COMPARED, 0, 1), (0, Fate.MISSING, 6, 1),
    ]  # fmt: skip


def test_the_beginning_of_a_later_file_is_missing(world: Counting) -> None:
    """A file has lines with records, but its first lines have none. If the file appeared after
    `skidway agent count` had begun to count, the first lines are missing, because records of them
    would be newer than the beginning of the count. If the file was there before the count began,
    the shipper may have sent the first lines earlier, so they are not compared."""
    world.write("old1", "old2", "old3")
    world.turn()
    world.rotate(f"{LOG}.1")
    world.write("new1", "new2", "new3")
    world.turn()
    records = records_of(world)
    ship(records, ["old2", "old3"], begin=5)
    ship(records, ["new2", "new3"], begin=5)
    assert spans(compare(world, records)) == [
        (0, Fate.NOT_COMPARED, 0, 1), (1, Fate.MISSING, 0, 1),
    ]  # fmt: skip


def test_a_record_may_name_any_path_that_the_file_had(world: Counting) -> None:
    """The record of a line may have any path that the line's file has had. For example, a log
    shipper that reads a file after its rotation sends the rotated path."""
    world.write("a1", "a2")
    world.turn()
    for number in (1, 2, 3):
        world.rotate(f"{LOG}.{number}", LOG if number == 1 else f"{LOG}.{number - 1}")
        world.turn()
    records = records_of(world)
    ship(records, ["a1"])
    ship(records, ["a2"], path=f"{LOG}.2", begin=3)
    assert spans(compare(world, records)) == []
    assert records.other_files == 0


def test_a_compressed_copy_is_not_counted_twice(world: Counting) -> None:
    """While `skidway agent count` does not run, a file grows and is then compressed. When the
    command runs again, it notes the file's new lines, but does not note the earlier lines a second
    time. So the comparison still expects only one record for each earlier line."""
    world.write("a1 " * 30, "a2 " * 30)
    world.turn()
    world.kill()
    world.write("a3 " * 30)
    world.rotate(f"{LOG}.1")
    world.files.compress(f"{LOG}.1")
    world.write("b1")
    world.turn(times=20)
    records = records_of(world)
    ship(records, ["a1 " * 30, "a2 " * 30, "a3 " * 30])
    ship(records, ["b1"])
    result = compare(world, records)
    assert (spans(result), reports.is_good(result)) == ([], True)


def test_sentences_say_since_when_and_what_is_not_noted(world: Counting) -> None:
    """The report of `skidway audit compare` says since when `skidway agent count` has noted all
    lines, and which bytes it could not note."""
    world.write("a1")
    world.turn()
    world.kill()
    world.write("a2")
    world.files.delete(LOG)
    world.turn()
    counted = world.counted()
    first, second = reports.sentences_of_notes(counted, world.clock.time_ms())
    assert first == (
        "The notes have all lines of the files from 2023-11-14T22:13:20.000Z to"
        " 2023-11-14T22:13:25.000Z."
    )
    assert second.startswith(f"Not noted: {LOG} from byte 3 to an unknown end: it vanished")
    assert reports.document_of_notes(counted)["not_noted"][0]["first"] == 3


def test_the_report_says_that_the_count_has_stopped_and_what_is_uncertain() -> None:
    """If `skidway agent count` could not read all files for some minutes, or was stopped, the
    report of `skidway audit compare` says so. The report also names ranges of a file that may have
    been noted a second time, as lines of another file."""
    counted = Counted(0, 60_000, uncertain=[Unnoted(LOG, 0, 7_320, "it was written anew")])
    first, stopped, uncertain = reports.sentences_of_notes(counted, 360_001)
    assert first.endswith("from 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:00.000Z.")
    assert stopped.startswith("Since then, skidway agent count does not run, or there is a file")
    assert uncertain.startswith(f"Uncertain: {LOG} from byte 0 to byte 7,320: it was written anew.")
    assert reports.document_of_notes(counted)["uncertain"][0]["end"] == 7_320
    assert len([*reports.sentences_of_notes(counted, 360_000)]) == 2
    (first,) = reports.sentences_of_notes(Counted(0, 0), 360_001)
    assert first.startswith("skidway agent count could not read all files at any time")
