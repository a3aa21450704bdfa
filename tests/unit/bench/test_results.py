"""Tests how measurements become tables and plots, and how the tables get into
docs/performance.md."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from bench import measure, plots, run
from bench.measure import Row, SidesRow, SidesTable, Table
from bench.paper.rabbitmq import sampled
from bench.paper.series import Point, Series


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (measure, plots):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    return tmp_path


def sides() -> SidesTable:
    table = SidesTable("sample: three sides", ("ours", "one", "other"))
    table.add(SidesRow("speed", "msg/s", {"ours": (3.0, 1.0, 2.0), "one": (400.0,)}))
    return table


def test_a_table_of_several_sides_leaves_a_cell_empty_where_a_side_has_no_such_thing() -> None:
    """A table has a column for each side (each compared program). A cell has the median of a figure
    with its least and greatest value, or, if there was only one round, the value. A cell is empty
    if the side has no such figure."""
    *_, line = sides().markdown().strip().splitlines()
    assert line == "| speed, msg/s | 2 (1-3) | 400 |  |"


@pytest.mark.parametrize("kind", ["pair", "sides"])
def test_the_csv_file_has_every_round_of_every_side(results: Path, kind: str) -> None:
    """The CSV file of a benchmark has every value that was measured, for every side (compared
    program) and every round, and not only the medians."""
    pair = Table("sample: two sides")
    pair.add(Row("speed", "msg/s", (3.0, 1.0, 2.0), (400.0,), "one"))
    measure.save(pair if kind == "pair" else sides(), "a machine")
    with (results / "sample.csv").open() as file:
        rows = [(row["side"], row["round"], float(row["value"])) for row in csv.DictReader(file)]
    ours = "skidway" if kind == "pair" else "ours"
    assert rows == [(ours, "1", 3.0), (ours, "2", 1.0), (ours, "3", 2.0), ("one", "1", 400.0)]


def test_a_plot_names_sides_rows_and_units(results: Path) -> None:
    """A plot names the sides (the compared programs), the rows and the units. The names are stored
    as text, so that they can be searched and read aloud. The same measurements always give the same
    file."""
    plots.bars(sides())
    first = (results / "sample.svg").read_text()
    for words in ("sample: three sides", "speed", "msg/s", ">ours<", ">one<"):
        assert words in first
    plots.bars(sides())
    assert (results / "sample.svg").read_text() == first


def test_a_table_goes_to_its_place_and_nothing_else_of_the_page_changes() -> None:
    """In docs/performance.md, a new table replaces only what is between the two markers of this
    table, because the rest of the page is written by hand."""
    page = "before\n<!-- bench:sample -->\nold\n<!-- /bench -->\nafter\n"
    text = run.placed(page, sides(), "a machine")
    assert text.startswith("before\n<!-- bench:sample -->\n### sample: three sides\n")
    assert text.endswith(": a machine\n<!-- /bench -->\nafter\n")
    assert "(../bench/results/sample.svg)" in text
    assert "old" not in text
    assert run.placed(text, sides(), "a machine") == text


def test_a_table_without_a_place_is_refused() -> None:
    """If docs/performance.md has no markers for a table, the table is refused with an error, so
    that no result is silently dropped."""
    with pytest.raises(ValueError, match="no place for sample"):
        run.placed("nothing\n", sides(), "a machine")


@pytest.mark.parametrize("name", run.NAMES)
def test_every_benchmark_has_a_place_in_the_page(name: str) -> None:
    """docs/performance.md has markers for the table of every benchmark. Without this test, missing
    markers would be noticed only at the end of a long run."""
    assert run.PAGE.read_text().count(f"<!-- bench:{name} -->\n") == 1


def test_the_rate_of_a_run_is_its_messages_over_its_time() -> None:
    """The rate of a measured run is the number of its messages divided by its time. The rate at
    each point of the run is the number of messages since the previous point, divided by the time
    since then."""
    series = Series([Point(1.0, 100), Point(3.0, 200)])
    assert (series.messages, series.rate) == (200, pytest.approx(200 / 3))
    assert list(series.rates()) == [(100, 100.0), (200, 50.0)]


def test_the_seconds_that_perf_test_prints_become_a_series() -> None:
    """While it runs, perf-test (the load generator of RabbitMQ) prints lines with the time, and the
    rate since the previous line. Each of these lines becomes a point of a series. The averages at
    the end of perf-test's output do not become points."""
    printed = (
        "id: test, starting producer #0\n"
        "id: test, time 1.000 s, sent: 100 msg/s\n"
        "id: test, time 3.000 s, sent: 50 msg/s\n"
        "id: test, sending rate avg: 66 msg/s\n"
    )
    assert sampled(printed).points == [Point(1.0, 100), Point(3.0, 200)]
    received = "id: t, time 2.000 s, received: 7 msg/s, min/median: 0/0 µs\n"
    assert sampled(received).points == [Point(2.0, 14)]


def test_a_silent_load_generator_is_an_error() -> None:
    """If the load generator prints no rates, the run fails, and no number is reported."""
    with pytest.raises(RuntimeError, match="connection refused"):
        sampled("connection refused\n")
