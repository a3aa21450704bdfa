"""Tests what the metrics file of the last run contains after successful, failed and killed runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from skidway.cli.commands import main
from skidway.errors import SkidwayError, Unreachable
from skidway.loader.runs.outcome import Report, TopicOutcome
from skidway.loader.runs.textfile import LastRun, Recorded
from support.clock import ManualClock

GOOD = Report(
    [TopicOutcome("a", loads=[1, 2], rows=30, rejects=1), TopicOutcome("b", loads=[7], rows=5)]
)
SHORT = Report([TopicOutcome("a", rows=3), TopicOutcome("b", problems=[SkidwayError("no leader")])])


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "skidway_load.prom"


def run(path: Path | None, clock: ManualClock, report: Report) -> float:
    """Writes the metrics file `path` for a run that takes ten seconds and ends with the outcomes in
    `report`. Returns the time, in seconds, at which the run ended."""
    with Recorded(path, clock) as recorded:
        clock.advance(10)
        recorded.ended(report)
    return clock.time_ms() / 1000


def test_a_good_run_is_a_success(path: Path, clock: ManualClock) -> None:
    """A successful run writes its times, its status, and the sums over all topics to the metrics
    file."""
    end = run(path, clock, GOOD)
    assert LastRun.read(path) == LastRun(
        start=end - 10, end=end, success=end, status=0, loads=3, rows=35, rejects=1, repeats=0
    )


def test_the_last_success_outlives_runs_that_fail(path: Path, clock: ManualClock) -> None:
    """A failed run writes its own status and keeps the time of the last successful run. This holds
    for a run that does not finish a topic, and for a run that cannot begin."""
    good = run(path, clock, GOOD)
    end = run(path, clock, SHORT)
    said = LastRun.read(path)
    assert (said.success, said.end, said.status, said.rows) == (good, end, 1, 3)
    clock.advance(5)
    with pytest.raises(Unreachable), Recorded(path, clock):
        raise Unreachable("no broker")
    said = LastRun.read(path)
    assert (said.success, said.end, said.status) == (good, end + 5, 3)
    assert (said.loads, said.rows) == (None, None)


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (ValueError(), 1)])
def test_other_ends_have_the_status_that_the_process_has(
    path: Path, clock: ManualClock, error: BaseException, status: int
) -> None:
    """If a run ends with an interrupt or an unexpected exception, the metrics file has the exit
    status of the process."""
    with pytest.raises(type(error)), Recorded(path, clock):
        raise error
    assert LastRun.read(path).status == status


def test_a_run_that_is_killed_is_seen(path: Path, clock: ManualClock) -> None:
    """If a run is killed, the metrics file shows a time of the last start that is later than the
    time of the last end. All other values stay as they were."""
    end = run(path, clock, GOOD)
    clock.advance(60)
    Recorded(path, clock).__enter__()
    said = LastRun.read(path)
    assert (said.start, said.end, said.rows) == (end + 60, end, 35)


def test_it_is_prometheus_text(path: Path, clock: ManualClock) -> None:
    """Prometheus' own parser can read the loader's metrics file. The file's gauges have help texts,
    and unknown values are left out."""
    Recorded(path, clock).__enter__()
    (family,) = text_string_to_metric_families(path.read_text())
    assert (family.name, family.type) == (
        "skidway_loader_last_run_start_timestamp_seconds",
        "gauge",
    )
    assert family.documentation


@pytest.mark.parametrize("content", ["", "{", "skidway_loader_last_run_rows x\n", "\x00\xff"])
def test_a_damaged_file_is_replaced(path: Path, clock: ManualClock, content: str) -> None:
    """A damaged metrics file is replaced. No value is taken from it, and the run does not fail."""
    path.write_text(content, encoding="latin-1")
    end = run(path, clock, GOOD)
    assert LastRun.read(path).success == end


def test_a_file_that_cannot_be_written_fails_no_run(tmp_path: Path, clock: ManualClock) -> None:
    """A run does not fail if its metrics file cannot be written. If no path is set, no file is
    written."""
    run(tmp_path / "nowhere" / "x.prom", clock, GOOD)
    run(None, clock, GOOD)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("mistake", ["topcs: [a]", "slice.records: none", "topics: ['(']", ""])
def test_a_refused_configuration_is_a_run_with_its_status(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    """If a run's configuration is refused because of an unknown key, an invalid value or a missing
    value, the run writes its status to the metrics file. Otherwise a monitor would still see the
    last successful run."""
    good = run(path, ManualClock(), GOOD)
    config = tmp_path / "loader.yml"
    config.write_text(f"metrics: {{textfile: {path}}}\n{mistake}\n")
    assert main(["load", "run", "--config", str(config)]) == 78
    assert str(config) in capsys.readouterr().err
    said = LastRun.read(path)
    assert (said.status, said.success, said.rows) == (78, good, None)


def test_a_loader_whose_configuration_is_refused_leaves_its_status(
    path: Path, tmp_path: Path
) -> None:
    """If the configuration is refused when `load run --every` starts, the metrics file has the
    exit status 78, as without `--every`. Otherwise a monitor would still see the last successful
    run."""
    good = run(path, ManualClock(), GOOD)
    config = tmp_path / "loader.yml"
    config.write_text(f"metrics: {{textfile: {path}}}\ntopcs: [a]\n")
    assert main(["load", "run", "--every", "60s", "--config", str(config)]) == 78
    said = LastRun.read(path)
    assert (said.status, said.success, said.rows) == (78, good, None)


def test_only_a_run_is_recorded(path: Path, tmp_path: Path) -> None:
    """`load validate` does not write the metrics file, even if the configuration is refused. A run
    whose configuration cannot be parsed does not write it, either."""
    config = tmp_path / "loader.yml"
    config.write_text(f"metrics.textfile: {path}\n")
    assert main(["load", "validate", "--config", str(config)]) == 78
    config.write_text(f"metrics.textfile: {path}\n- nonsense: {{\n")
    assert main(["load", "run", "--config", str(config)]) == 78
    assert not path.exists()
