from __future__ import annotations

from skidway.demo import tiers
from skidway.demo.tiers import MB, Tiers

RECORDS = {tiers.BROKER: 800, tiers.MIRROR: 700, tiers.COUNTED: 600, tiers.ROWS: 0}


def test_tiers_are_shown_in_lines_and_bytes() -> None:
    """Each tier is shown with its lines, its bytes, and the number of written lines that it still
    lacks. If only the lines or only the bytes of a tier are known, the other number is
    calculated from a line's mean length."""
    written, agent, broker, *_, rows = Tiers().take(0.0, 1_000, 100_000, 90_000, RECORDS)
    assert (written.lines, written.bytes, written.behind) == (1_000, 100_000.0, 0)
    assert (agent.lines, agent.bytes, agent.behind) == (900, 90_000.0, 100)
    assert (broker.lines, broker.bytes, broker.behind) == (800, 80_000.0, 200)
    assert rows.behind == 1_000


def test_lines_sent_twice_leave_nobody_behind() -> None:
    """A broker may have more lines than were written, for example because a killed agent sent some
    lines twice. The broker's lag (the written lines that it lacks) is then 0."""
    filled = Tiers().take(0.0, 1_000, 100_000, 100_000, RECORDS | {tiers.BROKER: 1_020})
    assert (filled[2].lines, filled[2].behind) == (1_020, 0)


def test_nothing_written_is_no_division() -> None:
    """Before the first line is written, every rate is 0."""
    assert {each.bytes_per_s for each in Tiers().take(0.0, 0, 0, 0, {})} == {0.0}


def test_rates_are_means_of_the_last_seconds() -> None:
    """The rate of a tier is its mean rate over the last seconds; older values do not count. `Tiers`
    also stores the highest rate so far."""
    found = Tiers()
    for at, size in enumerate((0, 1, 2, 12, 22, 22, 22, 22)):
        filled = found.take(float(at), 1, size * MB, 0, {})
    assert filled[0].bytes_per_s == 0.0
    assert found.fastest(tiers.WRITTEN) == 10 * MB
    slow = Tiers()
    slow.take(0.0, 1, 0, 0, {})
    assert slow.take(10.0, 1, 10 * MB, 0, {})[0].bytes_per_s == MB


def test_the_table_says_who_is_away() -> None:
    """The table has a line for each tier, and marks a tier whose program was killed."""
    filled = Tiers().take(0.0, 1_000, 100_000, 90_000, RECORDS)
    table = tiers.table(filled, {tiers.BROKER: "killed"})
    assert len(table) == 1 + len(tiers.TIERS)
    assert table[3].split() == ["broker", "800", "0.1", "0.0", "200", "killed"]


def test_a_file_has_the_table_in_one_line() -> None:
    """If the output is a file, one line shows the counts of all tiers, in the order in which log
    lines pass through them."""
    line = tiers.line(Tiers().take(0.0, 1_000, 100_000, 90_000, RECORDS))
    assert line == (
        "written 1,000, agent 900, broker 800, mirror 700, counted 600, hdfs 0; 0.0 MB/s"
    )
