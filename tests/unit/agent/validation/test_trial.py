import pytest

from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.cluster.connection import compiled
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.recipe import Schema
from skidway.agent.settings import MultilineSettings, SourceSettings
from skidway.agent.validation import trial
from skidway.agent.validation.report import render
from skidway.agent.validation.trial import EXAMPLES_MAX, FILES_MAX, Trial
from support.agent_world import Files, MemoryHandle
from support.clock import ManualClock

SOURCE = SourceSettings(
    topic="logs",
    paths=["/log/*.log"],
    parser=ParserSettings(type="regex", pattern=r"(?P<number>\d+) (?P<text>.*)"),
)


def tried(files: Files, lines_max: int = 1_000) -> Trial:
    found, sample = trial.find(SOURCE, files, {})
    press = compiled(SOURCE, Schema(0, derived_schema(SOURCE)), 900_000)
    trial.run(press, found, sample, files, lines_max)
    return sample


def test_what_does_not_fit_is_shown_with_its_place() -> None:
    """`validate` counts the lines that would be rejected, by the reason of the rejection, and shows
    examples with file and line number."""
    files = Files(ManualClock())
    files.append("/log/a.log", b"1 a\nbad\n\n2 b\r\n\xff\n" + b"3 c\n" * 5)
    sample = tried(files)
    assert (sample.files, sample.lines, sample.rejected) == (1, 10, 3)
    assert sample.reasons == {"no-match": 2, "encoding": 1}
    assert [(each.path, each.line, each.reason) for each in sample.examples] == [
        ("/log/a.log", 2, "no-match"), ("/log/a.log", 3, "no-match"), ("/log/a.log", 5, "encoding")
    ]  # fmt: skip
    assert sample.examples[0].text == "bad"
    assert sample.share == 0.3


def test_a_line_that_is_being_written_is_no_misfit() -> None:
    """`validate` leaves out a last line without a line terminator, because a program may still be
    writing it. If the file has no other line, `validate` tries this line."""
    files = Files(ManualClock())
    files.append("/log/a.log", b"1 a\n2")
    assert (tried(files).lines, tried(files).rejected) == (1, 0)
    files.append("/log/b.log", b"3")
    assert (tried(files).lines, tried(files).rejected) == (2, 1)


def test_the_work_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """`validate` tries lines of only the newest FILES_MAX files, and shows only a few examples. Of
    each file, it reads at most the first and the last READ_BYTES bytes, and tries at most the given
    number of first lines and as many last lines. A huge line is rejected as one line that is too
    long."""
    read: list[int] = []
    read_ = MemoryHandle.read

    def noted(handle: MemoryHandle, count: int, position: int) -> bytes:
        read.append(count)
        return read_(handle, count, position)

    monkeypatch.setattr(MemoryHandle, "read", noted)
    files = Files(ManualClock())
    for number in range(FILES_MAX + 1):
        files.append(f"/log/{number}.log", b"bad\n" * 10)
    sample = tried(files, lines_max=3)
    assert (sample.files, sample.tried, sample.lines) == (FILES_MAX + 1, FILES_MAX, 6 * FILES_MAX)
    assert len(sample.examples) == EXAMPLES_MAX
    assert {each.path for each in sample.examples} == {f"/log/{FILES_MAX}.log"}
    huge = Files(ManualClock())
    huge.append("/log/huge.log", b"x" * (3 * READ_BYTES))
    read.clear()
    assert tried(huge).reasons == {"too-long": 1}
    assert sum(read) <= 2 * READ_BYTES


def test_a_format_that_changed_in_the_middle_is_seen() -> None:
    """`validate` tries the first and the last lines of a file, each line once. It shows the byte
    positions of the last lines, because it does not know their line numbers."""
    files = Files(ManualClock())
    files.append("/log/a.log", b"1 a\n" * 8 + b"bad\n" * 2 + b"wor")
    assert (tried(files).lines, tried(files).rejected) == (10, 2)
    assert (tried(files, 3).lines, tried(files, 3).rejected) == (6, 2)
    assert [(each.line, each.first) for each in tried(files, 3).examples] == [
        (None, 32),
        (None, 36),
    ]
    long = Files(ManualClock())
    long.append("/log/a.log", b"1 a\n" * READ_BYTES + b"bad\n" * 2 + b"wor")
    sample = tried(long)
    assert (sample.lines, sample.rejected) == (2_000, 2)
    assert [(each.line, each.first) for each in sample.examples] == [
        (None, 4 * READ_BYTES), (None, 4 * READ_BYTES + 4)
    ]  # fmt: skip


def test_paths_that_lead_nowhere_and_files_that_cannot_be_read_are_said() -> None:
    """If no file matches the paths of a source, `validate` says so. It lists the files that it
    cannot read, even if it tries no line."""
    files = Files(ManualClock())
    assert tried(files).files == 0
    files.append("/log/a.log", b"1 a\n").unreadable = True
    sample = tried(files)
    assert (sample.files, sample.tried, sample.lines) == (1, 0, 0)
    assert sample.unreadable == [("/log/a.log", "Permission denied")]
    _, untried = trial.find(SOURCE, files, {})
    assert untried.unreadable == sample.unreadable


def test_colours_and_pieces_are_counted() -> None:
    """`validate` says from how many lines codes for terminals were taken, how many records are only
    a part of what the program wrote as one, and how many blank lines were left out."""
    source = SourceSettings(
        topic="pods",
        paths=["/log/*.log"],
        container="cri",
        parser=ParserSettings(type="logfmt", columns=["a"]),
    )
    texts = [b"P a=1", b"damaged", b"F b=2", b"F \x1b[31ma\x1b[0m=3", b"F "]
    lines = [b"2026-11-20T08:15:01Z stdout %s\n" % text for text in texts]
    lines[1] = b"damaged\n"
    files = Files(ManualClock())
    files.append("/log/a.log", b"".join(lines))
    found, sample = trial.find(source, files, {})
    trial.run(compiled(source, Schema(0, derived_schema(source)), 900_000), found, sample, files, 9)
    assert (sample.lines, sample.pieces, sample.coloured) == (5, 2, 1)
    assert sample.filtered == {"blank": 1}
    text = render([sample])
    for words in ("2 records are only a part", "in 1 record are codes", "1 filtered by blank"):
        assert words in text


def test_each_reason_has_an_example() -> None:
    """`validate` shows an example of each reason, even if many records before it have another
    reason, and names the command that shows the others."""
    files = Files(ManualClock())
    files.append("/log/a.log", b"1 a\n" + b"bad\n" * 9 + b"\xff\n")
    sample = tried(files)
    assert [(each.line, each.reason) for each in sample.examples] == [
        (2, "no-match"), (3, "no-match"), (11, "encoding")
    ]  # fmt: skip
    text = render([sample])
    assert "10 of 11 records (90.9%) do not fit: encoding 1, no-match 9\n" in text
    assert "  7 more; `" in text
    assert "agent test FILE --limit 11" in text


def test_records_of_several_lines_are_counted_as_records() -> None:
    """`validate` counts records. If some have too many lines, it names the settings that limit
    them."""
    multiline = MultilineSettings(type="start", pattern=r"^\d", max_lines=3)
    source = SourceSettings(topic="logs", paths=["/log/*.log"], multiline=multiline)
    files = Files(ManualClock())
    files.append("/log/a.log", b"1 a\n" + b" at\n" * 4 + b"2 b\n")
    found, sample = trial.find(source, files, {})
    trial.run(compiled(source, Schema(0, derived_schema(source)), 900_000), found, sample, files, 9)
    text = render([sample])
    assert "all of 3 records fit" in text
    assert "1 record is only a part of what the program wrote as one: cut at" in text
