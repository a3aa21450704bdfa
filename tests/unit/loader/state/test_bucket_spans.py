"""The table `buckets` has, for each bucket of event time, the number of the last delta (audit
message) that counted it. The table is divided into spans (files of some hours), and a load reads
and writes only the spans whose buckets it counts. Old spans are dropped, but a dropped bucket is
never mistaken for a bucket that was never counted."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import Sums
from skidway.audit.evidence.tallies import Tally, links_of
from skidway.errors import StateRefused
from skidway.loader.state import bucket_spans, layout
from skidway.loader.state.bucket_rows import BucketKey
from skidway.loader.state.bucket_spans import UNKNOWN, BucketSpans
from skidway.loader.state.layout import HOUR_MS, LoadId
from skidway.loader.state.manifest import BUCKETS, FORGOTTEN
from skidway.loader.state.table_file import TableStaging
from support.memory_store import MemoryStore
from support.promises import promise

MINUTE_MS = 60_000


@dataclass
class Output:
    """An output of one topic. Its loads write no rows, and only count buckets."""

    store: MemoryStore = field(default_factory=MemoryStore)
    side: dict[str, tuple[str, ...]] = field(default_factory=dict)
    number: int = 0

    def load(self, *keys: BucketKey) -> dict[BucketKey, int]:
        """Counts the given buckets in one delta, which has the load's number. Returns the numbers
        that the table had for these buckets before."""
        self.number += 1
        spans = BucketSpans(self.store, self.side)
        known = spans.numbers(keys)
        staging = TableStaging(self.store, LoadId("logs", self.number, "c" * 32))
        self.side |= spans.stage(staging, dict.fromkeys(keys, self.number))
        for file in staging.files:
            assert self.store.rename(file.staged, file.path)
        return known


def hour(number: int, agent: int = 7, minute: int = 0) -> BucketKey:
    return agent, number * HOUR_MS + minute * MINUTE_MS


def test_a_bucket_has_the_number_of_its_last_delta() -> None:
    """For each bucket of each agent, the loader's table `buckets` has the number of the last delta
    (audit message) that counted the bucket. (In this test a delta has the number of its load.)
    Hours before 1970 are handled like other hours."""
    output = Output()
    assert output.load(hour(5), hour(5, 8), hour(5, 7, 1), hour(-3)) == {}
    assert output.load(hour(5), hour(6)) == {hour(5): 1}
    assert output.load(hour(5), hour(5, 8), hour(-3)) == {hour(5): 2, hour(5, 8): 1, hour(-3): 1}


def test_a_load_reads_only_the_spans_that_it_counts() -> None:
    """A load that counts only buckets of the current hour reads no file of older hours. So it
    succeeds even if such a file is damaged."""
    output = Output()
    output.load(hour(5))
    output.load(hour(9))
    (old,) = (path for path in output.side[BUCKETS] if "/5-6-" in path)
    output.store.put(old, b"damaged")
    assert output.load(hour(9)) == {hour(9): 2}
    assert old in output.side[BUCKETS]
    with pytest.raises(StateRefused, match="damaged"):
        output.load(hour(5))


def test_a_load_without_counts_changes_nothing() -> None:
    """A load that counts nothing writes no file and keeps the existing files."""
    output = Output()
    output.load(hour(5))
    before = dict(output.side)
    output.load()
    assert output.side == before


def test_spans_name_the_load_that_wrote_them() -> None:
    """The table `buckets` is divided into spans (some hours of event time), with a file for each
    span. The name of a span's file ends with the number of the load that wrote it, with 20 digits.
    So the loader can find, and delete, old files that are in no kept manifest."""
    output = Output()
    for number in range(60):
        output.load(hour(number))
        assert any(path.endswith(f"-{number + 1:020}.parquet") for path in output.side[BUCKETS])
    assert len(output.side[BUCKETS]) < 30  # the spans of older hours were joined


@promise("5 buckets")
def test_what_was_forgotten_breaks_the_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each delta (audit message with counts) contains the number of the previous delta of each of
    its buckets. If a bucket of a dropped span is counted again, this number is unknown, and the new
    delta says so. The audit then sees that the bucket's chain of deltas is broken, although no
    delta is missing."""
    monkeypatch.setattr(bucket_spans, "SPANS_MAX", 2)
    output = Output()
    for number in (1, 5, 9, 13):
        output.load(hour(number))
    assert len(output.side[BUCKETS]) == 2
    known = output.load(hour(1), hour(3), hour(13))
    assert known == {hour(1): UNKNOWN, hour(13): 4}
    late = links_of(5, UNKNOWN)
    for links, first in ((late, 5), (checksum.add(links_of(1, 0), late), 1)):
        assert not Tally(Sums(), first, 5, links).chained
    assert output.load(hour(1)) == {hour(1): 5}


def test_the_least_recently_touched_span_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table `buckets` is divided into spans (files of some hours). The loader first drops the
    span whose buckets no load has counted for the longest time, whatever the event times are. So
    while a log of ten years ago is loaded, the spans with the log's old hours are not dropped."""
    monkeypatch.setattr(bucket_spans, "SPANS_MAX", 2)
    output = Output()
    for number in (1, 100, 1, 50):
        output.load(hour(number))
    assert output.load(hour(1)) == {hour(1): 3}
    assert output.load(hour(100)) == {hour(100): UNKNOWN}


def test_ranges_of_forgotten_hours_stay_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader drops old numbers of deltas, and stores for which ranges of hours it has dropped
    them. If there are too many ranges, it joins neighbouring ranges. The hours between these ranges
    then count as dropped, too."""
    monkeypatch.setattr(bucket_spans, "SPANS_MAX", 1)
    monkeypatch.setattr(bucket_spans, "RANGES_MAX", 2)
    output = Output()
    for number in (1, 3, 50, 99):
        output.load(hour(number))
    known = output.load(hour(1), hour(2), hour(3), hour(50), hour(60))
    assert known == dict.fromkeys([hour(1), hour(2), hour(3), hour(50)], UNKNOWN)
    assert len(output.side[FORGOTTEN]) == 1


def test_a_file_without_a_span_is_refused() -> None:
    """The name of each file of the table contains the file's span. If a manifest names another
    file, the loader refuses the state."""
    side = {BUCKETS: (layout.table("logs", BUCKETS, 1),)}
    with pytest.raises(StateRefused, match="is no file of a span of buckets"):
        BucketSpans(MemoryStore(), side)


@pytest.mark.parametrize("seed", range(6), indirect=True)
def test_spans_give_the_numbers_of_one_dictionary(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the table `buckets` is divided into spans (files of some hours), the table has, for
    each bucket, the number of its last delta. The spans are few and do not overlap."""
    for name, value in (("SPAN_ROWS", 40), ("FRESH_ROWS", 10), ("APART", 3), ("JOINED_MIN", 2)):
        monkeypatch.setattr(bucket_spans, name, value)
    choose, output = random.Random(seed), Output()
    reference: dict[BucketKey, int] = {}
    for now in range(60):
        keys = {
            hour(
                now // 3 - choose.choice((0, 0, 0, 1, choose.randint(0, 40))),
                choose.randint(1, 4),
                choose.randint(0, 3),
            )
            for _ in range(choose.randint(0, 12))
        }
        assert output.load(*keys) == {key: reference[key] for key in keys if key in reference}
        reference |= dict.fromkeys(keys, output.number)
        parts = [layout.span_of(path) for path in output.side[BUCKETS]]
        assert all(each[1] <= later[0] for each, later in pairwise(parts))
        assert sum(each[2] for each in parts) == len(reference)
    assert len(output.side[BUCKETS]) < 40
