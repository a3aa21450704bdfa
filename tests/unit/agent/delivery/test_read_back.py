"""An intent is a stored promise to send certain bytes of a file. After a crash, the agent searches
the partitions for records of the intent. Then it divides the intent's byte range into parts whose
records arrived and parts whose records are missing."""

from __future__ import annotations

import numpy as np
import pytest

from skidway.agent.delivery import read_back
from skidway.agent.delivery.read_back import (
    Fate,
    Found,
    Part,
    Rows,
    divide,
    outcome_of,
    reach,
    split,
)
from skidway.agent.values.intents import Intent
from skidway.kafka.types import TopicPartition
from support.agent_press import AGENT, DATA, REJECTED, press, reading, recipe, records, regex

P, Q = TopicPartition("logs", 0), TopicPartition("logs", 1)
FILE = 5
INTENT = Intent(1, FILE, 100, 200, 0, 0, b"")


def rows(
    tp: TopicPartition, *ranges: tuple[int, int], agent: int = AGENT, file: int = FILE
) -> Rows:
    first = np.array([begin for begin, _ in ranges], np.int64)
    length = np.array([end - begin for begin, end in ranges], np.int64)
    same = np.ones(len(ranges), np.int64)
    return Rows(tp, same * agent, same * file, first, length, same * 1_000)


def parts(*found: Rows, gap: bool = False) -> list[tuple[int, int, Fate]]:
    made = Found(AGENT, [INTENT])
    if gap:
        made.gap(P)
    for each in found:
        made.add(each)
    return [(p.first, p.end, p.fate) for p in divide(INTENT, made.records(FILE))]


def test_ranges_are_divided_into_what_arrived_and_what_is_missing() -> None:
    """An intent's range of bytes in a file is divided into parts that arrived and parts that are
    missing. Adjacent records form one part, even if they are in different partitions. Records of
    other agents or files, and records outside the range, are ignored."""
    assert parts() == [(100, 200, Fate.MISSING)]
    assert parts(rows(P, (100, 150)), rows(Q, (150, 200))) == [(100, 200, Fate.ARRIVED)]
    assert parts(
        rows(P, (80, 100), (110, 120), (120, 130)),
        rows(Q, (190, 200), (200, 230)),
        rows(P, (150, 160), agent=1),
        rows(P, (150, 160), file=6),
    ) == [
        (100, 110, Fate.MISSING),
        (110, 130, Fate.ARRIVED),
        (130, 190, Fate.MISSING),
        (190, 200, Fate.ARRIVED),
    ]


def test_repeats_are_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a partition has several copies of the same records, the agent counts each record once,
    even if the first copies of some records have expired. The memory that the agent needs depends
    on the number of different records, not on the number of copies."""
    monkeypatch.setattr(read_back, "ROWS_MIN", 4)
    copies = [rows(P, (150, 200))] + [rows(P, (100, 150), (150, 200)) for _ in range(20)]
    made = Found(AGENT, [INTENT])
    made.gap(P)
    for each in copies:
        made.add(each)
    assert len(made.records(FILE).first) == 2
    assert sum(len(piece[0]) for piece in made._rows[FILE][P]) <= 8
    assert parts(*copies, gap=True) == [(100, 200, Fate.ARRIVED)]


def test_what_came_behind_later_records_is_missing() -> None:
    """Readers drop a record that comes after the record of a later line of the same file. So such a
    record counts as missing. There is one exception: if a part of the log has expired, the record
    counts as arrived, because an expired copy of the record may have come before the later line."""
    late = rows(P, (150, 200), (100, 150))
    assert parts(late) == [(100, 150, Fate.MISSING), (150, 200, Fate.ARRIVED)]
    assert parts(late, gap=True) == [(100, 200, Fate.ARRIVED)]


def test_records_that_overlap_are_doubtful() -> None:
    """Records overlap if the agent divided the file in another way when it sent the records again,
    or if the same bytes are in two partitions. Overlapping records are doubtful, because readers
    count all of them, so some bytes count twice. A record that begins in the intent's range and
    ends after this range is doubtful, too, because no record of the intent ends after the range."""
    doubtful = [(100, 120, Fate.MISSING), (120, 160, Fate.DOUBTFUL), (160, 200, Fate.MISSING)]
    assert parts(rows(P, (120, 140), (130, 160))) == doubtful
    assert parts(rows(P, (120, 160)), rows(Q, (120, 160))) == doubtful
    assert parts(rows(P, (180, 220)))[1] == (180, 200, Fate.DOUBTFUL)


def test_a_missing_part_is_split_where_readers_would_drop_records() -> None:
    """A missing part of an intent may have records that readers would drop if the agent sent them
    now. The function `split` divides the part into pieces: adjacent records that readers would drop
    form one piece, and so do adjacent records that readers would keep. Records outside the part do
    not change these pieces."""
    part = Part(110, 160, Fate.MISSING)
    bounds = np.array([100, 110, 120, 130, 150, 160, 200])

    def pieces(*dropped: int) -> list[tuple[int, int, bool]]:
        found = split(part, bounds, np.isin(bounds[:-1], dropped))
        return [(piece.first, piece.end, would_be) for piece, would_be in found]

    assert pieces() == pieces(100, 160) == [(110, 160, False)]
    assert pieces(120, 130) == [(110, 120, False), (120, 150, True), (150, 160, False)]
    assert pieces(110, 150) == [(110, 120, True), (120, 150, False), (150, 160, True)]
    assert pieces(*bounds.tolist()) == [(110, 160, True)]


@pytest.mark.parametrize("partitioning", ["file", "key", "spread"])
def test_every_record_lies_in_reach(partitioning: str) -> None:
    """An intent is a stored promise to send certain bytes. Its reach is the set of partitions in
    which the agent searches for the intent's records. Every record of the intent goes to one of
    these partitions, whatever its line contains and wherever in the file the line begins."""
    key = "line" if partitioning == "key" else None
    made = recipe(partitions=4, partitioning=partitioning, key=key, **regex("(?P<line>[^x].*)"))
    data = b"".join(b"%s%d\n" % (b"x" if i % 7 == 0 else b"a", i) for i in range(400))
    for first in (0, (1 << 20) - 500, 7 << 20):
        one = reading(data, first=first)
        batches = press(made, one).batches
        assert {batch.tp for batch in batches} <= reach(made, one.intent)


def test_what_is_found_counts_as_it_would_have_acknowledged() -> None:
    """If the agent finds records of an intent in the partitions, they count like acknowledged
    records: with the same counts, bytes and checksums."""
    made = recipe(**regex("(?P<line>[^x].*)"))
    one = reading(b"a1\nx2\na3\nx4\n")
    pressed = press(made, one)
    found = Found(AGENT, [one.intent])
    for topic in ("logs", "logs.rejected"):
        ranges = [(r.first, r.end) for r in records(pressed, topic)]
        times = np.array([r.timestamp for r in records(pressed, topic)], np.int64)
        each = rows(TopicPartition(topic, 0), *ranges)
        found.add(Rows(each.tp, each.agent, each.file, each.first, each.length, times))
    (expected,) = pressed.outcomes
    got = outcome_of(found.records(FILE), AGENT, FILE, (DATA, REJECTED), 60_000)
    assert (got.delivered_bytes, got.rejected_bytes) == (6, 6)
    assert (got.delivered_bytes, got.rejected_bytes) == (
        expected.delivered_bytes, expected.rejected_bytes
    )  # fmt: skip
    assert dict(got.counts.items()) == dict(expected.counts.items())
