"""Tests the offset ranges of a load: where they begin, which missing offsets they may skip, and how
they are divided into slices. A gap is a range of missing offsets that a load may skip, because the
mirror or an operator has listed it. In the names of the tests, "the batch below" is the last batch
before the offset at which the load begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.errors import ConfigurationRefused, StateRefused
from skidway.kafka.batch import BatchHeader
from skidway.kafka.source import Source
from skidway.loader.planning import plan
from skidway.loader.planning.plan import Bounds, Planned, Slice
from skidway.loader.state.manifest import BatchMark, Gap, PartitionRange
from support.loading import WHOLE
from support.promises import promise

BELOW = BatchMark(95, 99, 7, 2)
AT_100 = PartitionRange(0, 50, 100, below=BELOW)
HEADER = BatchHeader(95, 0, 2, 2, 7, 0, 4, 0, 0, -1, -1, -1, 5)


def test_a_partition_never_loaded_begins_at_its_first_offset() -> None:
    """If there is no manifest yet, a partition is loaded from offset 0 to the high watermark."""
    planned = plan.plan_partition("t", Bounds(0, 0, 500), None, [])
    assert (planned.first, planned.end, planned.refused) == (0, 500, "")


def test_a_partition_goes_on_where_the_last_load_ended() -> None:
    """The next load begins at the offset at which the last load ended."""
    planned = plan.plan_partition("t", Bounds(0, 20, 150), AT_100, [])
    assert (planned.position, planned.first, planned.end, planned.below) == (100, 100, 150, BELOW)


@promise("5 gaps")
def test_expired_offsets_stop_the_partition() -> None:
    """If records expired before they were loaded, nothing of their partition is loaded. The expired
    offsets are never skipped silently."""
    planned = plan.plan_partition("t", Bounds(0, 120, 150), AT_100, [])
    assert planned.first == planned.end == 100
    assert "offsets 100 to 119 are gone" in planned.refused
    assert "gaps.accepted=t/0/100-120" in planned.refused


def test_a_partition_never_loaded_may_not_begin_late() -> None:
    """If the log of a partition does not begin at offset 0, even the first load of the partition is
    refused, because the expired records were never loaded."""
    assert plan.plan_partition("t", Bounds(0, 5, 9), None, []).refused


def test_a_named_gap_in_front_is_passed() -> None:
    """If offsets are missing where a load begins, and a mirror has listed them as a gap, the load
    begins after these offsets and lists the gap in its manifest."""
    planned = plan.plan_partition("t", Bounds(0, 120, 150), AT_100, [Gap(90, 130, "expired")])
    assert (planned.first, planned.end, planned.gap) == (120, 150, Gap(100, 120, "expired"))


def test_a_log_that_got_shorter_stops_the_partition() -> None:
    """If a partition's high watermark is lower than the offset up to which the partition was
    loaded, its log must have been replaced. So nothing of the partition is loaded."""
    planned = plan.plan_partition("t", Bounds(0, 0, 99), AT_100, [])
    assert "not the log that was loaded" in planned.refused
    planned = plan.plan_partition("t", Bounds(0, 0, 100), AT_100, [])
    assert (planned.first, planned.end, planned.refused) == (100, 100, "")  # nothing is new


def test_the_newest_manifest_says_where_each_partition_stands() -> None:
    """The next load goes on where the newest manifest's ranges end; without a manifest, nowhere."""
    loaded = replace(WHOLE, partitions=(AT_100, PartitionRange(3, 0, 7)))
    assert plan.positions(loaded) == {0: AT_100, 3: PartitionRange(3, 0, 7)}
    assert plan.positions(None) == {}


@pytest.mark.parametrize(
    ("gaps", "covered"),
    [
        ([], False),
        ([(0, 10)], True),
        ([(2, 5)], True),
        ([(2, 4)], False),
        ([(3, 5)], False),
        ([(2, 3), (3, 5)], True),
        ([(3, 5), (0, 3)], True),
        ([(2, 3), (4, 5)], False),
        ([(2, 2), (2, 5)], True),
    ],
)
def test_gaps_cover_a_hole_together(gaps: list[tuple[int, int]], covered: bool) -> None:
    """Missing offsets may be skipped if one gap (a listed range of missing offsets) covers all of
    them, or if several gaps together do so."""
    found = plan.cover(2, 5, [Gap(first, end, "x") for first, end in gaps])
    assert (found is not None) == covered
    if found is not None:
        assert (found.first, found.end) == (2, 5)


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=6),
    st.integers(0, 30), st.integers(1, 10),
)  # fmt: skip
def test_cover_is_what_sets_say(spans: list[tuple[int, int]], first: int, length: int) -> None:
    """`cover` returns a gap for a range of missing offsets if, and only if, each of these offsets
    lies in one of the given gaps."""
    gaps = [Gap(min(span), max(span), "x") for span in spans]
    named = {offset for gap in gaps for offset in range(gap.first, gap.end)}
    expected = named.issuperset(range(first, first + length))
    assert (plan.cover(first, first + length, gaps) is not None) == expected


def test_a_hole_has_the_reasons_of_the_gaps_that_cover_it() -> None:
    """The reason names each gap that covers a part of the hole, and no gap that lies below it or
    inside another one."""
    gaps = [Gap(0, 20, "a"), Gap(3, 10, "b"), Gap(20, 30, "c")]
    assert plan.cover(0, 30, gaps) == Gap(0, 30, "a; c")
    assert plan.cover(20, 30, gaps) == Gap(20, 30, "c")


def test_the_same_batch_below_is_no_divergence() -> None:
    """Before a load, the last loaded batch is compared with the batch that the log now has at the
    same offset. If both have the same base offset, CRC and epoch, the partition has not
    diverged."""
    assert plan.check_below("t", Planned(0, 100, 100, 150, below=BELOW), HEADER) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"crc": 8}, {"crc": 6}, {"leader_epoch": 3}, {"leader_epoch": 1}, {"base_offset": 96},
        {"base_offset": 94},
    ],
)  # fmt: skip
def test_another_batch_below_is_a_divergence(change: dict[str, int]) -> None:
    """If the last loaded batch now has another base offset, CRC or epoch in the log, nothing of the
    partition is loaded, and the error names the partition."""
    header = HEADER._replace(**change)
    refused = plan.check_below("t", Planned(0, 100, 100, 150, below=BELOW), header)
    assert "t partition 0 has diverged" in refused


def test_without_a_batch_below_there_is_nothing_to_compare() -> None:
    """If nothing of a partition was loaded yet, there is no batch to compare, and the partition
    does not count as diverged."""
    assert plan.check_below("t", Planned(0, 0, 0, 150), HEADER) == ""


def test_a_batch_below_that_is_gone_is_named() -> None:
    """If the last batch before the load is gone, it cannot be compared. If the load has new
    records, it writes an empty gap (a range without offsets) to the manifest, as a sign that
    nothing was compared."""
    planned = plan.unverified(Planned(0, 100, 100, 150, below=BELOW))
    assert planned.gap is not None
    assert (planned.gap.first, planned.gap.end) == (100, 100)
    nothing_new = Planned(0, 100, 100, 100, below=BELOW)
    assert plan.unverified(nothing_new) == nothing_new


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), max_size=4), st.integers(1, 30))
def test_slices_cover_each_range_once(ranges: list[tuple[int, int]], records: int) -> None:
    """The slices of a partition together have each offset of the partition's range exactly once. No
    slice has more offsets than requested."""
    planned = [
        Planned(number, first, first, first + length)
        for number, (first, length) in enumerate(ranges)
    ]
    slices = plan.cut(planned, records)
    for each in planned:
        mine = sorted(
            (piece for piece in slices if piece.partition == each.partition),
            key=lambda piece: piece.first,
        )
        offsets = [offset for piece in mine for offset in range(piece.first, piece.end)]
        assert offsets == list(range(each.first, each.end))
        assert all(0 < piece.end - piece.first <= records for piece in mine)


def test_partitions_are_cut_in_turn() -> None:
    """In the list of slices, the slices of different partitions alternate, so that a large
    partition does not delay the other partitions."""
    slices = plan.cut([Planned(0, 0, 0, 40), Planned(1, 100, 100, 120)], 20)
    assert slices == [Slice(0, 0, 20), Slice(1, 100, 120), Slice(0, 20, 40)]
    slices = plan.cut([Planned(0, 25, 25, 65), Planned(1, 110, 110, 150), Planned(2, 9, 9, 9)], 20)
    assert slices == [Slice(0, 25, 45), Slice(1, 110, 130), Slice(0, 45, 65), Slice(1, 130, 150)]


def test_a_topic_made_again_is_refused() -> None:
    """If a topic or cluster was deleted and created again under the same name, the loader refuses
    to load the topic into the same output, because the offsets now belong to other records."""
    plan.check_identity(WHOLE, WHOLE.source)
    plan.check_identity(None, WHOLE.source)
    for other in ("0" * 32, "f" * 32):
        with pytest.raises(StateRefused, match=r"topic behind dc1\.logs was made again"):
            plan.check_identity(WHOLE, replace(WHOLE.source, topic_id=other))
    with pytest.raises(StateRefused, match=r"cluster behind dc1\.logs was made again"):
        plan.check_identity(WHOLE, replace(WHOLE.source, cluster_id="other"))


def test_an_unknown_id_is_not_compared() -> None:
    """If a cluster reports neither its own id nor those of its topics, the loader compares no ids,
    and accepts the topic."""
    plan.check_identity(WHOLE, Source("dc1", "", "logs", ""))


def test_accepted_gaps_are_parsed() -> None:
    """A gap (a range of missing offsets) that an operator has accepted is written as
    topic/partition/first-end. The topic's name may contain dots."""
    assert plan.parse_accepted(["dc1.logs/2/10-20", "dc1.logs/2/0-1"]) == {
        ("dc1.logs", 2): [
            Gap(10, 20, "accepted by the operator"), Gap(0, 1, "accepted by the operator")
        ]
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["logs/0", "logs/0/5", "logs/x/1-2", "logs/0/2-1", "logs/0/-1-2", "logs/0/2-2", "a/logs/0/2"],
)
def test_accepted_gaps_that_make_no_sense(text: str) -> None:
    """If an operator accepts a gap (missing offsets) that is not a valid range of offsets, the
    setting is refused, and the error quotes the setting's text."""
    with pytest.raises(ValueError, match=text):
        plan.parse_accepted([text])


def test_named_gaps_come_from_all_who_name() -> None:
    """The gaps (ranges of missing offsets) that a load may skip come from the previous load, the
    mirror and the operator. If two of these three list the same gap, the gap appears only once in
    the result."""
    before = replace(AT_100, ahead=(Gap(200, 210, "a"),))
    found = plan.named_gaps(
        "t", 0, before, {0: [Gap(200, 210, "a"), Gap(300, 301, "b")]}, {("t", 0): [Gap(1, 2, "c")]}
    )
    assert found == (Gap(200, 210, "a"), Gap(300, 301, "b"), Gap(1, 2, "c"))


@promise("5 gaps")
def test_a_gap_that_was_named_once_stays_named() -> None:
    """A gap (a range of missing offsets) stays listed in the manifest until a load has skipped it,
    even if the mirror or the operator no longer lists it. The mirror may drop the gap earlier,
    because its list has a limited length, and the operator may remove the setting that accepted the
    gap."""
    before = replace(AT_100, ahead=(Gap(200, 210, "a"),), gaps=(Gap(90, 100, "passed"),))
    assert plan.named_gaps("t", 0, before, {}, {}) == (Gap(200, 210, "a"),)


def test_a_partition_that_is_no_longer_there_stops_by_name() -> None:
    """If a topic no longer has a partition, the loader's run reports this partition and loads
    nothing of it. The manifest keeps the partition's position."""
    before = {0: AT_100, 2: PartitionRange(2, 0, 70, ahead=(Gap(80, 90, "x"),), below=BELOW)}
    (missing,) = plan.missing_partitions("t", before, [Bounds(0, 0, 100), Bounds(1, 0, 5)], {})
    assert (missing.partition, missing.first, missing.end, missing.below) == (2, 70, 70, BELOW)
    assert missing.refused == (
        "t partition 2: loaded up to offset 70, but the topic has no such partition now"
    )


def test_a_partition_whose_leader_is_silent_stands_still_by_name() -> None:
    """If a partition's leader does not answer, the partition is reported and keeps its position for
    the next load. This holds whether or not anything of the partition was loaded before."""
    before = {0: AT_100}
    found = plan.missing_partitions(
        "t", before, [Bounds(2, 0, 5)], {0: "no answer", 1: "no leader"}
    )
    assert [(each.partition, each.first, each.end) for each in found] == [(0, 100, 100), (1, 0, 0)]
    assert "t partition 0: loaded up to offset 100, but it is kept back" in found[0].refused
    assert "no answer" in found[0].refused
    assert found[0].below == BELOW
    assert "no leader" in found[1].refused


@promise("6 bucket size")
def test_a_changed_bucket_size_is_refused() -> None:
    """A load is refused if its bucket size differs from the bucket size of earlier loads. With two
    sizes, the audit's buckets (spans of event time) would never become complete."""
    counted = replace(WHOLE, audit={**WHOLE.audit, "bucket_ms": 60_000})
    plan.check_bucket(None, 10_000)
    plan.check_bucket(counted, 60_000)
    for other in (10_000, 120_000):
        with pytest.raises(
            ConfigurationRefused, match=rf"bucket\.ms is {other}, but .* with 60000"
        ):
            plan.check_bucket(counted, other)


RANGES = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), min_size=1, max_size=5)


@given(RANGES, st.integers(1, 120))
def test_limited_loads_take_everything_and_each_moves_on(
    ranges: list[tuple[int, int]], offsets: int
) -> None:
    """Even if the number of offsets in each load is limited, several loads together load every
    offset up to the high watermark that was read at the start. Each load has at least one offset,
    and no load has many more offsets than its limit."""
    whole = [
        Planned(number, first, first, first + length)
        for number, (first, length) in enumerate(ranges)
    ]
    loads, more = 0, True
    while more:
        taken = plan.limit(whole, offsets)
        assert [each.first for each in taken] == [each.first for each in whole]
        size = sum(each.end - each.first for each in taken)
        assert size <= max(offsets, 0) + len(whole)
        done = replace(
            WHOLE, partitions=tuple(PartitionRange(x.partition, x.first, x.end) for x in taken)
        )
        more = plan.has_more(whole, taken, done)
        assert not more or size > 0
        whole = [replace(w, first=t.end) for w, t in zip(whole, taken, strict=True)]
        loads += 1
    assert all(each.first == each.end for each in whole)
    assert loads <= 1 + sum(length for _, length in ranges)


def test_each_partition_gets_a_share_of_a_limited_load() -> None:
    """The offsets of a limited load are shared in proportion to what each partition has, and each
    gets at least one. A load that has room for everything takes everything."""
    whole = [Planned(0, 0, 0, 100), Planned(1, 50, 50, 350), Planned(2, 7, 7, 8)]
    assert [each.end for each in plan.limit(whole, 40)] == [9, 79, 8]
    assert plan.limit(whole, 401) == plan.limit(whole, 1_000) == whole
    assert [each.end for each in plan.limit(whole, 400)] == [99, 349, 8]
    assert [each.end for each in plan.limit([whole[0], Planned(1, 0, 0, 3)], 10)] == [9, 1]


def test_a_partition_that_ended_early_asks_for_no_further_load() -> None:
    """A load of a partition may stop at a record whose log file no agent has announced yet (in a
    message with the file's host and path). The run then makes no further load of this partition,
    because a further load would stop at the same record."""
    whole = [Planned(0, 0, 0, 100)]
    taken = plan.limit(whole, 10)
    assert taken[0].end == 10
    early = replace(WHOLE, partitions=(PartitionRange(0, 0, 7),))
    assert not plan.has_more(whole, taken, early)
    assert plan.has_more(whole, taken, replace(WHOLE, partitions=(PartitionRange(0, 0, 10),)))
    all_of_it = replace(WHOLE, partitions=(PartitionRange(0, 0, 100),))
    assert not plan.has_more(whole, plan.limit(whole, 100), all_of_it)
