"""Tests how rows and records are compared with the samples of an agent, and how the result is
reported. A sample has the content sums (hashes) of some lines. The clusters and the output are
simulated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.audit.counts.content import content_sums
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.sampling import sample_report
from skidway.audit.sampling.comparison import NO_LINE, NOT_FOUND, OTHER_FILE
from skidway.audit.sampling.survey import Surveyed, survey
from skidway.audit.sampling.told import Told
from skidway.audit.sampling.wanted import wanted_of
from skidway.audit.topic import messages
from skidway.audit.topic.sample import Sample, SamplePart
from skidway.audit.topic.sample_result import ContentDifference, SampleResult
from skidway.kafka.types import TopicPartition
from skidway.schemas import wire
from skidway.schemas.codec import Codec
from support.audit_senders import LOGS
from support.line_world import AGENT, FILE, HOST, NOW_MS, OTHER_AGENT, PATH, LineWorld, batch
from support.promises import promise

DAY = 86_400_000
SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "message", "type": "string"}]}
CODEC = Codec(json.dumps(SCHEMA))
TEXTS = ["first", "second", "third"]


def value(text: str) -> bytes:
    (datum,) = CODEC.encode(pa.record_batch([pa.array([text])], CODEC.arrow_schema)).to_pylist()
    return wire.prefix(1) + bytes(datum)


VALUES = [value(text) for text in TEXTS]
LENGTHS = [len(each) + 1 for each in VALUES]
FIRSTS = [sum(LENGTHS[:at]) for at in range(3)]
SUMS = content_sums(
    np.full(3, NOW_MS), np.array(LENGTHS), pa.array([x[5:] for x in VALUES], pa.binary())
)
PART = SamplePart(LOGS, 1, NOW_MS, NOW_MS, tuple(FIRSTS), tuple(SUMS))
SAMPLE = Sample(
    NOW_MS + DAY, AGENT, HOST, NOW_MS - NOW_MS % DAY, DAY, 1, 1, FILE, PATH, 0, sum(LENGTHS),
    b"recipe", parts=(PART,),
)  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> LineWorld:
    made = LineWorld(tmp_path)
    made.announce()
    return made


def surveyed(world: LineWorld, **options: object) -> Surveyed:
    (found,) = survey(
        world.site(**options),  # type: ignore[arg-type]
        list(wanted_of([SAMPLE])),
        lambda schema_id: CODEC if schema_id == 1 else "no schema",
    )
    return found


def load(world: LineWorld, *texts: str) -> Path:
    """Writes a Parquet file into the output. The file has one row for each sampled line; `texts`
    are the values of the field `message` in these rows. Returns the file's path."""
    path = world.root / world.load(*placeholders(), offset=0)
    pq.write_table(_with_messages(path, texts), path)
    return path


def placeholders() -> list[tuple[int, bytes]]:
    """Returns, for each sampled line, the position of its first byte, and a text as long as the
    line."""
    return [(first, b"x" * (length - 1)) for first, length in zip(FIRSTS, LENGTHS, strict=True)]


@promise("6 content")
def test_rows_are_compared_and_a_changed_one_is_told_from_a_wrong_record(world: LineWorld) -> None:
    """If a row has wrong content, the result of `skidway audit sample` names the row and the fields
    in which it differs from its record. It also says whether the record in the log has the right
    content."""
    world.append(batch(VALUES))
    path = load(world, *TEXTS)
    found = surveyed(world)
    assert (found.compared.rows, found.compared.equal, found.compared.records) == (3, 3, 0)
    pq.write_table(_with_messages(path, ["first", "2nd", "third"]), path)
    found = surveyed(world)
    (differing,) = found.compared.differing
    assert differing.found.place == f"{path.relative_to(world.root)} row 1"
    closer = found.closer[0]
    assert closer.record == "the record in dc1 has the right content"
    assert (closer.fields, closer.values) == (("message",), {"message": "2nd"})

    world.clusters["dc1"].log(TopicPartition("logs", 0)).batches.clear()
    world.clusters["dc1"].log(TopicPartition("logs", 0)).end = 0
    wrong = batch([VALUES[0], value("2nd-or"), VALUES[2]])
    world.append(wrong, only="dc1")
    assert surveyed(world).closer[0].record == "the record in dc1 differs, too"


@promise("6 content")
def test_a_row_with_another_path_is_named_with_its_path(world: LineWorld) -> None:
    """If the row of a line has the right content but another path than the line's file, the report
    names the path of the row, and the line's file."""
    world.append(batch(VALUES))
    path = load(world, *TEXTS)
    table = pq.ParquetFile(path).read()
    at = table.column_names.index("_file")
    pq.write_table(table.set_column(at, "_file", pa.array([PATH, "/other", PATH])), path)
    found = surveyed(world)
    assert [x.words for x in found.compared.differing] == [OTHER_FILE]
    (made,) = sample_report.results([found], Told(), [], 1, "l1", str(world.root))
    assert [(x.path, x.words) for x in made.differences] == [(PATH, OTHER_FILE)]
    assert f"  the row's file: {HOST}:/other" in [*sample_report.lines([found], [], Told())]
    document = sample_report.document([found], [], Told())
    (difference,) = document["topics"][0]["differences"]
    assert (difference["row_host"], difference["row_path"]) == (HOST, "/other")


@promise("6 content")
def test_lines_without_a_row_are_compared_with_records(world: LineWorld) -> None:
    """Sampled lines that are not loaded yet have no rows. Their records in the log are then
    compared with the sample, whichever batches the records are in. Records of other agents are
    ignored. A line whose record has expired is not compared."""
    world.append(batch([b"x"] * 3, agent=OTHER_AGENT, producer_id=8))
    world.append(batch(VALUES[:2], producer_id=9))
    world.append(batch(VALUES[2:], first=FIRSTS[2], producer_id=9))
    found = surveyed(world)
    assert (found.compared.records, found.compared.equal) == (3, 3)
    assert found.cluster == "dc1"
    mirror = surveyed(world, clusters=["offline"])
    assert (mirror.compared.equal, mirror.cluster) == (3, "offline")
    world.clusters["dc1"].log(TopicPartition("logs", 0)).expire(5)
    found = surveyed(world)
    assert (found.compared.equal, dict(found.compared.uncompared)) == (1, {NOT_FOUND: 2})


def test_a_file_that_cannot_be_read_is_named(world: LineWorld) -> None:
    """If a file of the output is damaged, the result of `skidway audit sample` names this file as
    not read. The lines whose rows are in this file are no differences. They are compared with their
    records instead."""
    world.append(batch(VALUES))
    path = load(world, *TEXTS)
    path.write_bytes(b"no parquet")
    found = surveyed(world)
    assert (found.compared.rows, found.compared.records, found.compared.equal) == (0, 3, 3)
    assert [x.words for x in found.compared.differing] == []
    [unread] = found.unread
    assert unread.startswith(f"{path.relative_to(world.root)} cannot be read: ")


@promise("6 content")
def test_a_result_takes_back_only_what_was_compared_again(world: LineWorld) -> None:
    """If a run of `skidway audit sample` found a difference between a row and its sampled line,
    later results keep this difference. It disappears when a later run compares the line again and
    finds no difference. A run that could not read the line's row, or that found neither row nor
    record of the line, does not remove the difference."""
    world.append(batch(VALUES))
    path = load(world, "first", "2nd", "third")
    output = str(world.root)
    differs = surveyed(world)
    (first,) = sample_report.results([differs], Told(), [], 1, "l1", output)
    assert (first.compared, first.equal, first.differing) == (3, 2, 1)
    (difference,) = first.differences
    assert (difference.first, difference.tier) == (FIRSTS[1], "HDFS")
    assert (difference.host, difference.path) == (HOST, PATH)

    world.clusters["dc1"].log(TopicPartition("logs", 0)).expire(3)
    world.clusters["offline"].log(TopicPartition("dc1.logs", 0)).expire(3)
    kept = path.read_bytes()
    pq.write_table(pq.ParquetFile(path).read().slice(2), path)
    (lacking,) = sample_report.results([surveyed(world)], Told(), [first], 2, "l1", output)
    assert (lacking.compared, lacking.differences) == (1, (difference,))
    path.write_bytes(b"")
    (blind,) = sample_report.results([surveyed(world)], Told(), [first], 2, "l1", output)
    assert (blind.compared, blind.differences) == (0, (difference,))
    path.write_bytes(kept)
    (again,) = sample_report.results([surveyed(world)], Told(), [blind], 3, "l1", output)
    assert again.differences == (difference,)
    (elsewhere,) = sample_report.results([surveyed(world)], Told(), [blind], 3, "l1", "/other")
    assert elsewhere.name != blind.name
    pq.write_table(_with_messages(path, TEXTS), path)
    (healed,) = sample_report.results([surveyed(world)], Told(), [again], 4, "l1", output)
    assert (healed.equal, healed.differing, healed.differences) == (3, 0, ())


@promise("6 content")
def test_a_row_without_a_line_counts_until_it_is_removed(world: LineWorld) -> None:
    """If a run of `skidway audit sample` finds a row for which there is no line, the row counts as
    a difference. A later run removes the difference only if it has read the same sampled bytes and
    all Parquet files of the output, and has not found the row again. If a run finds a record for
    which there is no line, later runs always keep this difference, because not every run looks for
    records."""
    world.append(batch(VALUES))
    path = world.root / world.load(*placeholders(), (FIRSTS[1] + 1, b"x"), offset=0)
    pq.write_table(_with_messages(path, [*TEXTS, "extra"]), path)
    output = str(world.root)
    (first,) = sample_report.results([surveyed(world)], Told(), [], 1, "l1", output)
    assert [(x.first, x.words) for x in first.differences] == [(FIRSTS[1] + 1, NO_LINE)]
    (still,) = sample_report.results([surveyed(world)], Told(), [first], 2, "l1", output)
    assert still.differences == first.differences

    pq.write_table(pq.ParquetFile(path).read().slice(0, 3), path)
    reloaded = surveyed(world)
    (healed,) = sample_report.results([reloaded], Told(), [still], 3, "l1", output)
    assert (healed.equal, healed.differences) == (3, ())
    others = [
        replace(reloaded, unread=["another file cannot be read"]),
        replace(reloaded, output=""),
        replace(reloaded, wanted=[]),
        replace(reloaded, wanted=[*wanted_of([replace(SAMPLE, end=FIRSTS[1] + 1)])]),
    ]
    for other in others:
        (kept,) = sample_report.results([other], Told(), [still], 3, "l1", output)
        assert kept.differences == still.differences
    of_record = replace(still.differences[0], tier="MIRROR")
    (kept,) = sample_report.results(
        [reloaded], Told(), [replace(still, differences=(of_record,))], 3, "l1", output
    )
    assert kept.differences == (of_record,)


@promise("6 content")
def test_a_run_that_left_rows_out_takes_nothing_back(world: LineWorld) -> None:
    """By mistake, a line may have several rows, in different files: one right and one wrong. If a
    run of `skidway audit sample` could not read all files, it may have read only the right row. So
    such a run removes no difference that an earlier run has found. Such a run also keeps the
    differences that an earlier result counted but did not list."""
    world.append(batch(VALUES))
    path, output = load(world, "first", "2nd", "third"), str(world.root)
    (first,) = sample_report.results([surveyed(world)], Told(), [], 1, "l1", output)
    pq.write_table(_with_messages(path, TEXTS), path)
    healed = surveyed(world)
    many = replace(first, differing=51)
    (whole,) = sample_report.results([healed], Told(), [many], 2, "l1", output)
    assert (whole.differing, whole.differences) == (0, ())
    healed.unread.append("another file cannot be read")
    (partly,) = sample_report.results([healed], Told(), [many], 2, "l1", output)
    assert (partly.differing, partly.differences) == (51, first.differences)


@promise("6 content")
def test_unlisted_differences_stay_until_their_lines_were_compared(world: LineWorld) -> None:
    """A result of `skidway audit sample` does not say which lines were compared. So if an earlier
    result counted differences that it did not list, nobody knows whether a later run has compared
    their lines. These differences stay if the later run has compared fewer lines, or if samples of
    the day may be missing, damaged, left out or expired. While these differences stay, a new result
    never reports fewer compared lines than the earlier result. The number of unlisted differences
    does not grow from run to run, because each run may have counted the same lines."""
    world.append(batch(VALUES))
    path, output = load(world, "first", "2nd", "third"), str(world.root)
    (first,) = sample_report.results([surveyed(world)], Told(), [], 1, "l1", output)
    many = replace(first, differing=51)
    pq.write_table(_with_messages(path, TEXTS), path)
    healed = surveyed(world)
    for told in (
        Told({SAMPLE.key: replace(SAMPLE, count=2)}),
        Told(refused=1),
        Told(is_cut=True),
        Told(expired={("dc1", 0)}),
    ):
        (kept,) = sample_report.results([healed], told, [many], 2, "l1", output)
        assert (kept.unlisted, kept.differences) == (50, ())
    more = replace(many, compared=4)
    (fewer,) = sample_report.results([healed], Told(), [more], 2, "l1", output)
    (again,) = sample_report.results([healed], Told(), [fewer], 3, "l1", output)
    assert (again.compared, again.unlisted) == (4, 50)
    other_day = replace(SAMPLE, period=SAMPLE.period + DAY, count=2)
    has_all = Told({SAMPLE.key: SAMPLE, other_day.key: other_day}, expired={("dc1", 0)})
    has_all.found_copy(("dc1", 0), 5, 6)
    (whole,) = sample_report.results([healed], has_all, [many], 2, "l1", output)
    assert (whole.compared, whole.differing) == (3, 0)
    elsewhere = replace(healed, output="")
    (unseen,) = sample_report.results([elsewhere], Told(), [many], 2, "l1", output)
    assert (unseen.differing, unseen.differences) == (51, first.differences)
    found = [replace(first.differences[0], first=10_000 + n) for n in range(150)]
    wide = replace(first, differing=170, differences=tuple(found))
    (same,) = sample_report.results([healed], Told(refused=1), [wide], 2, "l1", output)
    assert (same.differing, same.unlisted) == (150, 50)


def test_messages_of_a_day_may_have_expired_unless_an_older_one_is_there() -> None:
    """A partition's log certainly has all messages of a day if it begins at offset 0, or with a
    message from before the day. Otherwise, messages of the day may have expired. If the partition
    has several copies, for example in a mirror, only one copy needs to have all messages."""
    for first, begin, has_all in ((0, 0, True), (5, 6, True), (5, 5, False)):
        told = Told()
        told.found_copy(("dc1", 0), first, begin)
        assert told.has_all_of(0) == has_all
    told.found_copy(("dc2", 0), 5, 6)
    assert not told.has_all_of(0)
    told.found_copy(("dc1", 0), 5, 9)
    assert told.has_all_of(0)


def test_samples_of_one_agent_do_not_stand_for_those_of_another() -> None:
    """If two agents use the same id, more samples arrive than each of the two has announced. The
    surplus does not make up for missing samples of a third agent."""
    doubled = [replace(SAMPLE, first=n, count=1) for n in range(2)]
    lacking = replace(SAMPLE, agent=OTHER_AGENT, count=2)
    assert Told({x.key: x for x in (*doubled, lacking)}).missing == 1


@promise("6 content")
def test_a_result_says_when_the_lines_were_that_it_does_not_list(world: LineWorld) -> None:
    """A result of `skidway audit sample` lists at most 100 differences. For all further differences
    together it gives the least and the greatest event time. The further differences include those
    that an earlier result counted but did not list, if their lines were not compared again."""
    world.append(batch(VALUES))
    load(world, *TEXTS)
    partly = surveyed(world)
    partly.unread.append("another file cannot be read")
    wrong = ContentDifference(0, 7, "h", 1, "p", 0, 1, "HDFS", "out", 0, 0, "words")
    many = tuple(replace(wrong, time_ms=1_000 + n, first=10_000 + n) for n in range(90))
    day, output = min(partly.by_day), str(world.root)
    earlier = SampleResult(1, "l1", output, LOGS, day, 200, 0, 200, many, 50, 3_000)
    (made,) = sample_report.results([partly], Told(), [earlier], 2, "l1", output)
    assert (made.differing, made.differences) == (200, many)
    assert (made.unlisted, made.unlisted_least, made.unlisted_greatest) == (110, 50, 3_000)
    more = tuple(replace(wrong, time_ms=7_000 + n, first=10_000 + n) for n in range(120))
    full = replace(earlier, differing=120, differences=more, unlisted_least=0, unlisted_greatest=0)
    (cut,) = sample_report.results([partly], Told(), [full], 2, "l1", output)
    assert (cut.differing, cut.differences) == (120, more[:100])
    assert (cut.unlisted, cut.unlisted_least, cut.unlisted_greatest) == (20, 7_100, 7_119)
    assert messages.decode(messages.encode(cut)) == cut


@promise("6 content")
def test_a_result_says_between_which_times_a_changed_line_may_be(world: LineWorld) -> None:
    """A row with other content than its line may also have another event time than the line. So the
    result of `skidway audit sample` has the least and the greatest event time of the sample's
    lines. A later result that keeps the difference also has these times. A result without
    differences has no such times."""
    world.append(batch(VALUES))
    path, output = load(world, "first", "2nd", "third"), str(world.root)
    part = replace(PART, least_ms=NOW_MS - 60_000, greatest_ms=NOW_MS)
    (wanted,) = wanted_of([replace(SAMPLE, parts=(part,))])

    def found() -> Surveyed:
        (only,) = survey(world.site(), [wanted], lambda schema_id: CODEC)
        return only

    (made,) = sample_report.results([found()], Told(), [], 1, "l1", output)
    times = NOW_MS - 60_000, NOW_MS
    assert (made.differing, made.unlisted, made.unlisted_times) == (1, 0, times)
    assert made.differences[0].time_ms == NOW_MS
    pq.write_table(_with_messages(path, TEXTS), path)
    healed = found()
    (whole,) = sample_report.results([healed], Told(), [made], 2, "l1", output)
    assert (whole.differing, whole.unlisted_times) == (0, ())
    healed.unread.append("another file cannot be read")
    (kept,) = sample_report.results([healed], Told(), [made], 2, "l1", output)
    assert (kept.differences, kept.unlisted_times) == (made.differences, times)


@pytest.mark.parametrize("change", [{"day": 1 << 62}, {"day": -1}])
def test_a_result_of_no_day_is_refused(change: dict[str, int]) -> None:
    """A message with the result of a comparison names a day. If there is no such day, the collector
    refuses the message and continues."""
    damaged = replace(SampleResult(1, "h", "out", LOGS, 0, 1, 0, 1), **change)  # type: ignore[arg-type]
    ledger = Ledger()
    ledger.take([messages.encode(damaged)])
    assert ledger.refused_count == 1


def test_a_difference_in_no_tier_is_refused() -> None:
    """A result of `skidway audit sample` is refused if one of its differences names a tier that
    does not exist."""
    wrong = ContentDifference(1, 7, "h", 1, "p", 0, 1, "XYZ", "out", 0, 0, "words")
    with pytest.raises(messages.MessageRefused):
        messages.decode(messages.encode(SampleResult(1, "h", "out", LOGS, 0, 1, 0, 1, (wrong,))))


def _with_messages(path: Path, texts: Sequence[str]) -> pa.Table:
    table = pq.ParquetFile(path).read().slice(0, len(texts))
    at = table.column_names.index("message")
    return table.set_column(at, "message", pa.array(list(texts)))


def test_the_report_says_what_differs_and_what_was_not_compared(world: LineWorld) -> None:
    """The report of `skidway audit sample`, both as text and as JSON, names the differing line, its
    row and the row's values, and the byte ranges that are gone from the host. The text also says
    how many samples are missing, because no message with them has arrived. If there are no samples
    at all, the report's sentence names the setting that turns samples on."""
    world.append(batch(VALUES))
    load(world, "first", "2nd", "third")
    found, told = surveyed(world), Told()
    gone = replace(
        SAMPLE, first=500, end=600, gone="the file is not on the host any more", parts=()
    )
    told.samples = {x.key: replace(x, count=3) for x in (SAMPLE, gone)}
    lines = "\n".join(sample_report.lines([found], [gone], told))
    assert f"content differs: {HOST}:{PATH} byte {FIRSTS[1]}" in lines
    assert "row 1, dc1.logs-0 offset 1" in lines
    assert "differing fields: message" in lines
    assert 'row: {"message": "2nd"}' in lines
    assert "bytes 500 to 600: the file is not on the host any more" in lines
    assert "1 ranges that their agents have not told" in lines
    assert sample_report.sentence([found], told).startswith("1 of 3 compared lines")
    assert not sample_report.is_good([found])
    (row,) = sample_report.table([found])
    assert (row["in_rows"], row["equal"], row["different"]) == (3, 2, 1)
    document = sample_report.document([found], [gone], told)
    (difference,) = document["topics"][0]["differences"]
    assert (difference["first"], difference["fields"]) == (FIRSTS[1], ["message"])
    assert document["gone"][0]["reason"] == gone.gone
    assert not sample_report.is_good([])
    assert "sample.ranges" in sample_report.sentence([], Told())
