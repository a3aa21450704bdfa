"""Tests corner cases of the joiner, which joins the results of a partition's slices in offset
order. The tests in tests/model compare the joiner with a simple function that handles all records
one after the other. In the names of the tests, "the batch below" is the last batch before the
offset at which the next load begins."""

from __future__ import annotations

from skidway.loader.planning import plan
from skidway.loader.planning.plan import Planned, Slice
from skidway.loader.slices.join import run_all
from support.loading import Record, Runner, gap, job, log
from support.memory_store import MemoryStore
from support.promises import promise


def runner(records: list[Record], **changes: object) -> Runner:
    return Runner(MemoryStore(), {0: log(records)}, job(**changes))


def pieces(records: list[Record], each: int) -> list[Slice]:
    return plan.cut([Planned(0, 0, 0, len(records))], each)


def lines(count: int, **changes: int) -> list[Record]:
    return [Record(first=10 * index, **changes) for index in range(count)]


def test_slices_that_do_not_overlap_run_once() -> None:
    """If no record of a partition's slices is a repeat of another slice's record, each slice runs
    only once."""
    records = lines(12)
    run = runner(records)
    (result,) = run_all(pieces(records, 3), {}, run)
    assert run.attempts == 4
    assert result.moved == {(7, 1): 120}


def test_only_slices_that_overlap_run_again() -> None:
    """A mark is the position up to which the lines of a log file have been loaded. All slices first
    run without marks. A slice runs again only if one of its records begins below the mark that
    earlier slices or earlier loads have reached. The second run uses these marks."""
    records = [*lines(6), *lines(3), *[Record(first=60 + 10 * index) for index in range(3)]]
    run = runner(records)
    (result,) = run_all(pieces(records, 3), {}, run)
    assert run.attempts == 5
    assert [each.repeats for each in result.results] == [0, 0, 3, 0]


def test_marks_of_earlier_loads_count() -> None:
    """A record that an earlier load has already loaded counts as a repeat."""
    records = lines(6)
    (result,) = run_all(pieces(records, 3), {0: {(7, 1): 30}}, runner(records))
    assert sum(each.repeats for each in result.results) == 3
    assert result.moved == {(7, 1): 60}


def test_marks_that_do_not_move_are_not_written() -> None:
    """A load that read only repeated records writes no mark (position up to which a file's lines
    have been loaded), because it changes none."""
    records = lines(3)
    (result,) = run_all(pieces(records, 3), {0: {(7, 1): 99}}, runner(records))
    assert result.moved == {}
    assert result.end == 3


def test_what_looked_unknown_may_be_a_repeat() -> None:
    """A slice stops before a record of a log file that no agent has announced. But the record may
    be a repeat of a record that an earlier load or slice has read. So the slice runs again with the
    marks that the earlier loads and slices have reached. If the record is a repeat, the slice
    continues after it, and the results of the later slices are used as well."""
    records = [Record(agent=8, first=0), *lines(2), Record(agent=8, first=0), *lines(4)[2:]]
    known = job(locations={(7, 1): ("h", "/1")}, unannounced=frozenset())
    first = Runner(MemoryStore(), {0: log(records)}, known)
    (result,) = run_all(pieces(records, 3), {0: {(8, 1): 10}}, first)
    assert result.stop is None
    assert result.end == len(records)
    assert sum(each.repeats for each in result.results) == 2


@promise("5 slices")
def test_what_a_second_run_sees_first_may_be_a_repeat_too() -> None:
    """The second run of a slice may get further than the first run, and read records of log files
    that the first run did not reach. Then a third run follows, which also gets the marks of these
    files."""
    records = [Record(agent=8), *lines(2), Record(agent=8), *lines(3)[1:]]
    known = job(locations={(7, 1): ("h", "/1")}, unannounced=frozenset())
    run = Runner(MemoryStore(), {0: log(records)}, known)
    (result,) = run_all(pieces(records, 3), {0: {(8, 1): 10}}, run)
    assert result.end == len(records)
    assert sum(each.repeats for each in result.results) == 3


def test_what_is_behind_an_early_end_is_not_used() -> None:
    """If a slice ends early, the results (rows, marks and gaps) of the slices after it are not
    used."""
    records = [*lines(3), Record(agent=8), *lines(5)[3:]]
    (result,) = run_all(pieces(records, 2), {}, runner(records))
    assert result.end == 3
    assert len(result.results) == 2
    assert result.moved == {(7, 1): 30}


def test_why_and_where_the_last_slice_ended_is_what_is_said_of_the_partition() -> None:
    """A partition's result contains the reason why its last slice stopped, and the last batch that
    was read. The next load compares this batch with the log."""
    records = [*lines(5), Record(agent=8)]
    (result,) = run_all(pieces(records, 3), {}, runner(records))
    assert (result.end, result.results[0].stop) == (5, None)
    assert result.stop is not None
    assert result.stop.waiting_for == (8, 1)
    (result,) = run_all(pieces(lines(6), 3), {}, runner(lines(6)))
    assert result.below is not None
    assert result.below.last_offset == 5


def test_a_partition_of_which_nothing_can_be_read_has_no_batch_below() -> None:
    """If nothing of a partition can be read, the partition's result does not name a last batch
    (which the next load would compare with the log). The other partitions are loaded."""
    run = Runner(MemoryStore(), {0: [], 1: log(lines(2))})
    unread, read = run_all([Slice(0, 0, 2), Slice(1, 0, 2)], {}, run)
    assert (unread.end, unread.below, read.end) == (0, None, 2)


def test_the_batch_below_is_that_of_the_last_slice_with_batches() -> None:
    """A slice whose offsets are all missing has no batch. So the batch that the next load compares
    with the log is the last batch of the last slice that has batches."""
    batches = [*log(lines(3)), *log(lines(1), base=30)]
    run = Runner(MemoryStore(), {0: batches}, job(gaps={0: (gap(3, 30),)}))
    (result,) = run_all([Slice(0, 0, 3), Slice(0, 3, 10), Slice(0, 10, 20)], {}, run)
    assert result.end == 20
    assert result.below is not None
    assert result.below.last_offset == 2
    assert [(each.first, each.end) for each in result.gaps] == [(3, 10), (10, 20)]


def test_partitions_are_joined_apart() -> None:
    """Each partition is joined on its own. If two partitions have lines of the same log file, the
    file has a mark in each of them."""
    run = Runner(MemoryStore(), {0: log(lines(2)), 1: log(lines(4))})
    results = run_all([Slice(0, 0, 2), Slice(1, 0, 4)], {}, run)
    assert [(each.partition, dict(each.moved)) for each in results] == [
        (0, {(7, 1): 20}), (1, {(7, 1): 40}),
    ]  # fmt: skip
