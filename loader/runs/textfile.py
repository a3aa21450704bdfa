"""Writes the result of the last run into a file for the textfile collector of Prometheus'
node_exporter.

A run may end before Prometheus scrapes it, so the run writes its metrics into a file
(`metrics.textfile`). The run replaces the whole file when it begins, and again when it ends, even
if it failed. If the time of the start is later than the time of the end, the run is still working
or was killed. When a run fails, the file keeps the time of the last success. If an error stops the
whole run, the file has no counts of loads and rows. If `load run` refuses the configuration, but
the name of the metrics file in the configuration can be read, `load run` writes the exit status 78
into the metrics file. If SIGTERM ends `load run --every` during a run, the file has the program's
exit status, which is 0, but keeps the time of the last success. Alerts should use the age of the
last success: they then also fire if the timer never starts a run, or if the configuration file
cannot be read or is not YAML.

Everybody may read the file, because node_exporter runs as another user. If root runs the command,
the user of the directory writes the file. If the file cannot be
written, the run only logs a warning, because no load depends on the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import TracebackType

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from skidway import files, log
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.runs.outcome import Report
from skidway.regular_file import read_regular
from skidway.state_owner import acting_as, owner_of

PREFIX = "skidway_loader_last_"
UNEXPECTED = 1
"""Python's own exit status after an exception that nobody caught."""

INTERRUPTED = 130

_log = log.get(__name__)


def _metric(name: str, help: str) -> float | None:
    value: float | None = field(default=None, metadata={"name": PREFIX + name, "help": help})
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The metrics of the last run. Times are in seconds since 1970. If a value is not known, its
    field is None, and the metrics file does not contain the field's metric."""

    start: float | None = _metric("run_start_timestamp_seconds", "When the last run began.")
    end: float | None = _metric("run_end_timestamp_seconds", "When the last run ended.")
    success: float | None = _metric(
        "success_timestamp_seconds", "When the last whole run ended that had exit status 0."
    )
    status: float | None = _metric("run_exit_status", "Exit status of the last run.")
    loads: float | None = _metric("run_loads", "Loads that the last run committed.")
    rows: float | None = _metric("run_rows", "Rows that the last run committed.")
    rejects: float | None = _metric("run_rejects", "Rejects that the last run committed.")
    repeats: float | None = _metric("run_repeats", "Repeats that the last run dropped.")

    @classmethod
    def read(cls, path: Path) -> LastRun:
        """Returns the metrics that the metrics file `path` contains. If this file is missing or
        unreadable, all metrics are None."""
        try:
            families = list(text_string_to_metric_families(read_regular(path).decode()))
        except (OSError, ValueError):
            return cls()
        said = {each.name: each.samples[0].value for each in families if each.samples}
        known = {each.name: said.get(each.metadata["name"]) for each in fields(cls)}
        return cls(**known)

    def text(self) -> bytes:
        """Returns the metrics in Prometheus' text format."""
        registry = CollectorRegistry()
        for each in fields(self):
            value = getattr(self, each.name)
            if value is not None:
                name, words = each.metadata["name"], each.metadata["help"]
                Gauge(name, words, registry=registry).set(value)
        return generate_latest(registry)


class Recorded:
    """Writes the metrics file when a run begins and when it ends. If the settings name no file,
    writes nothing."""

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._last = LastRun()
        self._report: Report | None = None
        self._told_to_end = False

    def __enter__(self) -> Recorded:
        if self._path is not None:
            self._last = replace(LastRun.read(self._path), start=self._now())
            self._write(self._last)
        return self

    def ended(self, report: Report) -> None:
        """Notes the result of a run that no error stopped. `__exit__` writes this result into the
        metrics file."""
        self._report = report

    def told_to_end(self) -> None:
        """Notes that a signal ended the run. In this case the program ends with status 0."""
        self._told_to_end = True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        now = self._now()
        last = LastRun(start=self._last.start, end=now, success=self._last.success)
        if error is None and self._report is not None:
            last = _with(last, self._report, now)
        else:
            last = replace(last, status=0 if self._told_to_end else _exit_status(error))
        self._write(last)

    def _now(self) -> float:
        return self._clock.time_ms() / 1000

    def _write(self, last: LastRun) -> None:
        if self._path is None:
            return
        try:
            with acting_as(owner_of(self._path.parent)):
                files.write_atomically(self._path, last.text(), mode=0o644)
        except (OSError, SkidwayError) as error:
            _log.warning("no_metrics_textfile", path=str(self._path), reason=str(error))


def _with(last: LastRun, report: Report, now: float) -> LastRun:
    outcomes = report.outcomes
    return replace(
        last,
        status=report.exit_code,
        success=now if report.exit_code == 0 else last.success,
        loads=sum(len(each.loads) for each in outcomes),
        rows=sum(each.rows for each in outcomes),
        rejects=sum(each.rejects for each in outcomes),
        repeats=sum(each.repeats for each in outcomes),
    )


def _exit_status(error: BaseException | None) -> int:
    if isinstance(error, SkidwayError):
        return error.exit_code
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else UNEXPECTED
