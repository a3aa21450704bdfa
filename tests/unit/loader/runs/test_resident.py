"""The resident loader (`skidway load run --every`) makes one run after another in the same
process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skidway import systemd
from skidway.errors import ConfigurationRefused, Unreachable
from skidway.loader.runs.outcome import Report, TopicOutcome
from skidway.loader.runs.resident import ResidentLoader
from skidway.loader.runs.textfile import LastRun
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import Interrupted
from skidway.service import Shutdown
from support.clock import ManualClock

EVERY_S = 60.0


class Waiting(Shutdown):
    """A fake `Shutdown`. Each wait for the shutdown only advances a manual clock. After `rounds`
    waits the shutdown is requested."""

    def __init__(self, clock: ManualClock, rounds: int) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._clock, self._rounds = clock, rounds

    def wait(self, timeout_s: float | None = None) -> bool:
        self.waits.append(timeout_s or 0.0)
        self._clock.advance(timeout_s or 0.0)
        if len(self.waits) == self._rounds:
            self.request()
        return self.requested


class Resident:
    """A resident loader. Its runs call the functions that a test has given."""

    def __init__(self, textfile: Path, *runs: Callable[[], Report]) -> None:
        self.clock = ManualClock()
        self.shutdown = Waiting(self.clock, len(runs))
        self.health: list[bool] = []
        settings = LoaderSettings(
            bootstrap_servers="x:1", schema_registry_url="http://x", topics=["logs"],
            output_url="/out", metrics_textfile=textfile,
        )  # fmt: skip
        left = iter(runs)

        def run(_settings: LoaderSettings, _spark: Any, _feed: Any) -> Report:
            self.health.append(self.loader.health().ok)
            return next(left)()

        self.loader = ResidentLoader(settings, EVERY_S, self.clock, self.shutdown, run)


@pytest.fixture
def textfile(tmp_path: Path) -> Path:
    return tmp_path / "load.prom"


def fails(error: Exception) -> Callable[[], Report]:
    def run() -> Report:
        raise error

    return run


def test_runs_begin_at_equal_distances(textfile: Path) -> None:
    """The option `--every` of `skidway load run` gives the time from the beginning of one run to
    the beginning of the next. If a run takes longer than this time, the next run begins at once."""

    def takes(seconds: float) -> Callable[[], Report]:
        def run() -> Report:
            resident.clock.advance(seconds)
            return Report()

        return run

    resident = Resident(textfile, takes(10), takes(90), takes(0))
    resident.loader.run()
    assert resident.shutdown.waits == [50.0, 0.0, 60.0]


def test_a_run_that_fails_ends_nothing(textfile: Path) -> None:
    """If a run fails, or one of its topics fails, the loader's `/health` reports this until a run
    succeeds. The next run begins at its usual time."""
    broken = Report([TopicOutcome("logs", problems=[Unreachable("the registry is away")])])
    resident = Resident(textfile, fails(Unreachable("nobody answers")), lambda: broken, Report)
    resident.loader.run()
    assert resident.health == [True, False, False]
    assert resident.loader.health().detail == {"runs": 3, "problem": None}
    assert resident.shutdown.waits == [EVERY_S] * 3


def test_it_is_ready_before_its_first_run_has_ended(
    textfile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its first run, which may take hours, the loader tells the service manager that it is
    ready. After each run it reports the run's outcome to the service manager."""
    said: list[str] = []

    def run() -> Report:
        said.append("run")
        return Report()

    monkeypatch.setattr(systemd, "ready", said.append)
    resident = Resident(textfile, run, fails(Unreachable("nobody answers")))
    resident.loader.run()
    assert said == ["the first run has not ended yet", "run", "loads", "nobody answers"]


def test_each_run_leaves_its_outcome(textfile: Path) -> None:
    """After each run the loader's metrics file has the run's exit status. If the run succeeded, the
    file also has the time of this success. So the same alert on the age of the last success works
    for a resident loader and for loads that a timer starts."""
    resident = Resident(textfile, Report, fails(Unreachable("nobody answers")))
    begin = resident.clock.time_ms() / 1000
    resident.loader.run()
    found = LastRun.read(textfile)
    assert (found.success, found.start, found.status) == (
        begin, begin + EVERY_S, Unreachable.exit_code,
    )  # fmt: skip


def test_a_refused_configuration_ends_the_program(textfile: Path) -> None:
    """If a run's configuration is refused, the resident loader ends with this error, because no
    later run would succeed."""
    resident = Resident(textfile, fails(ConfigurationRefused("output: no")), Report)
    with pytest.raises(ConfigurationRefused):
        resident.loader.run()


def test_a_program_that_is_told_to_end_in_a_run_ends_well(textfile: Path) -> None:
    """If a shutdown request interrupts a run, the resident loader ends without an error."""
    resident = Resident(textfile, fails(Interrupted("asked to end")), Report)
    resident.loader.run()
    assert resident.shutdown.waits == []


def test_a_run_that_is_told_to_end_leaves_no_failure(textfile: Path) -> None:
    """If a shutdown request interrupts a run of the resident loader, the metrics file has the exit
    status 0, which is also the exit status of the program. The run is no success, so the time of
    the last success stays."""
    resident = Resident(textfile, Report, fails(Interrupted("asked to end")))
    begin = resident.clock.time_ms() / 1000
    resident.loader.run()
    found = LastRun.read(textfile)
    assert (found.status, found.success, found.end, found.loads) == (
        0, begin, begin + EVERY_S, None,
    )  # fmt: skip
