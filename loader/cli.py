"""`skidway load run|plan|compact|reload|status|history|validate`."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from skidway import log, service
from skidway.cli.moments import parse_duration, parse_moment, parse_since
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_json, print_lines, print_rows
from skidway.clock import SystemClock
from skidway.errors import ConfigurationRefused, SkidwayError, UsageError
from skidway.files import obstacle
from skidway.loader.settings import LoaderSettings
from skidway.loader.state import layout
from skidway.service import Shutdown
from skidway.settings import peek
from skidway.state_owner import become_owner
from skidway.telemetry import Health, TelemetryServer

if TYPE_CHECKING:
    from skidway.loader.runs.progress_display import ProgressLine
    from skidway.loader.store import Store, StoreConnection

PROGRAM = "loader"

RUN = "load every topic up to its watermark now, and end"
PLAN = "show what `run` would load; changes nothing"
COMPACT = "put the small files of each hour together; readers of manifests switch at once"
RELOAD = "read the records of some hours again from the brokers, and replace their files"
STATUS = "show what is loaded, by topic and partition, and which runs work on the output"
HISTORY = "show what each of the newest loads committed"
VALIDATE = "check the configuration"

OPEN_CLUSTER = (
    "Whoever reaches the ports of the Spark cluster {} can read rows and run code as the loader, "
    "because its processes do not authenticate each other: set spark.authenticate.secret.file."
)

RELOAD_DONE = (
    "topic", "loads", "hours", "files_before", "files_after", "records", "rejects_before",
    "rejects_after",
)  # fmt: skip
RELOAD_DRY = ("topic", "hours", "files_before", "records", "rejects_before", "offsets")

_log = log.get(__name__)


def register(subparsers: Any) -> None:
    """Adds the command `skidway load`."""
    parser = subparsers.add_parser("load", help="load topics into Parquet on Spark")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, text, action in (
        ("run", RUN, _run),
        ("plan", PLAN, _plan),
        ("compact", COMPACT, _compact),
        ("reload", RELOAD, _reload),
        ("status", STATUS, _status),
        ("history", HISTORY, _history),
        ("validate", VALIDATE, _validate),
    ):
        each = verbs.add_parser(verb, help=text, description=text)
        add_config_options(each, LoaderSettings)
        add_json_option(each)
        each.set_defaults(run=action)
        if verb == "run":
            each.add_argument(
                "--every", metavar="TIME", help="go on, and begin a run every 60s, 5m, ...; no end"
            )
        if verb == "status":
            each.add_argument(
                "--look", metavar="TIME", help="look twice: tells a silent run from a running one"
            )
        if verb == "history":
            each.add_argument(
                "--last", type=int, default=20, metavar="N", help="loads of a topic (default: 20)"
            )
        if verb == "reload":
            each.add_argument("topic", metavar="TOPIC", help="as the brokers name it")
            for option, text in (("--from", "first hour"), ("--to", "hour after the last one")):
                each.add_argument(
                    option, metavar="TIME", required=True, dest=option[2:] + "_hour",
                    help=f"{text}, such as 2026-01-31T10 (UTC)",
                )  # fmt: skip
            each.add_argument(
                "--more-rejects", action="store_true", help="also if rows become rejects"
            )
            each.add_argument(
                "--drop-fields", action="store_true",
                help="also if the newest schema lacks fields whose values the files have",
            )  # fmt: skip
            each.add_argument(
                "--dry-run", action="store_true", help="show what would be read and replaced"
            )
        if verb == "compact":
            each.add_argument("--since", metavar="TIME", help="hours from 2026-01-31T10:00:00Z, 7d")
            each.add_argument(
                "--until", metavar="TIME", default="2h", help="hours before this (default: 2h ago)"
            )


def _settings(args: argparse.Namespace) -> LoaderSettings:
    log.configure(PROGRAM, args.log_level, sys.stderr)
    return load_settings(LoaderSettings, args, PROGRAM)


def _become_owner(settings: LoaderSettings) -> None:
    """If root runs a command, makes it the user of a local output, or of Spark's log."""
    if (directory := settings.output.directory) is not None:
        become_owner(directory / layout.STATE)
    if settings.spark_log_file is not None:
        become_owner(settings.spark_log_file.parent)


def _run(args: argparse.Namespace) -> int:
    from skidway.loader.runs.run import run
    from skidway.loader.runs.textfile import Recorded

    if args.every is not None:
        return _run_every(args)
    settings = _settings_of_run(args)
    _become_owner(settings)
    interrupt = _Interrupt()
    with Recorded(settings.metrics_textfile, SystemClock()) as recorded:
        telemetry = _telemetry(settings, lambda: Health(True, {"loading": True}))
        try:
            with _progress_line(args) as shown:
                report = run(settings, interrupted=lambda: interrupt.requested, shown=shown)
        finally:
            if telemetry is not None:
                telemetry.stop()
        recorded.ended(report)
    document = report.document()
    if args.json:
        print_json(document)
    else:
        rows = [{**each, "loads": each["loads"] or None} for each in document["topics"]]
        columns = ("topic", "status", "loads", "rows", "rejects", "repeats", "files")
        print_rows(rows, columns, as_json=False)
    for sentence in report.sentences():
        sys.stderr.write(f"skidway load: {sentence}\n")
    return report.exit_code


def _settings_of_run(args: argparse.Namespace) -> LoaderSettings:
    """Returns the settings of `load run`. If they are refused, writes the exit status into the
    metrics file."""
    from skidway.loader.runs.textfile import Recorded

    try:
        return _settings(args)
    except ConfigurationRefused:
        textfile = peek("metrics.textfile", args.config, args.set, program=PROGRAM)
        with Recorded(Path(textfile) if textfile else None, SystemClock()):
            raise


def _run_every(args: argparse.Namespace) -> int:
    from skidway.loader.runs.resident import LEAST_EVERY_S, ResidentLoader

    every_s = parse_duration(args.every, "--every")
    if every_s < LEAST_EVERY_S or args.json:
        raise UsageError("--every takes at least 1s, and prints no --json.")
    settings = _settings_of_run(args)
    _become_owner(settings)

    def body(shutdown: Shutdown) -> int:
        loader = ResidentLoader(settings, every_s, SystemClock(), shutdown)
        telemetry = _telemetry(settings, loader.health)
        try:
            loader.run()
        finally:
            if telemetry is not None:
                telemetry.stop()
        return 0

    return service.run(PROGRAM, body, level=args.log_level)


def _plan(args: argparse.Namespace) -> int:
    from skidway.loader.runs.status import planned

    settings = _settings(args)
    _become_owner(settings)
    rows, code = planned(settings)
    columns = (
        "topic", "partition", "loaded", "first", "end", "records", "slices", "seconds", "problem",
    )  # fmt: skip
    print_rows(rows, columns, as_json=args.json)
    return code


def _compact(args: argparse.Namespace) -> int:
    from skidway.loader.runs.compaction import compact, exit_code

    settings, clock, interrupt = _settings(args), SystemClock(), _Interrupt()
    _become_owner(settings)
    now_ms = clock.time_ms()
    since = _hour(parse_moment(args.since, now_ms)) if args.since else ""
    until = _hour(parse_moment(args.until, now_ms, "--until"))
    with _progress_line(args) as shown:
        results = compact(
            settings,
            clock,
            layout.Hours(since, until),
            interrupted=lambda: interrupt.requested,
            shown=shown,
        )
    rows, code = [each.document() for each in results], exit_code(results)
    if args.json:
        print_json({"ok": code == 0, "topics": rows})
    else:
        columns = ("topic", "loads", "hours", "files_before", "files_after", "rows")
        rows = [{**each, "loads": each["loads"] or None} for each in rows]
        print_rows(rows, columns, as_json=False)
    for each in results:
        for problem in each.problems:
            sys.stderr.write(f"skidway load: {problem}\n")
    return code


def _reload(args: argparse.Namespace) -> int:
    from skidway.loader.runs.reload import Wish, reload

    settings, clock, interrupt = _settings(args), SystemClock(), _Interrupt()
    _become_owner(settings)
    first, end = _whole_hour(args.from_hour, "--from"), _whole_hour(args.to_hour, "--to")
    if first >= end:
        raise UsageError("--to is a later hour than --from; its own hour is not reloaded.")
    hours = layout.Hours(first, end)
    wish = Wish(args.topic, hours, args.more_rejects, args.drop_fields, args.dry_run)
    with _progress_line(args) as shown:
        result = reload(settings, wish, clock, interrupted=lambda: interrupt.requested, shown=shown)
    document = result.document()
    if args.json:
        print_json(document)
    else:
        columns = RELOAD_DRY if args.dry_run else RELOAD_DONE
        row = {**document, "loads": result.loads or None, "hours": len(result.hours)}
        print_rows([row], columns, as_json=False)
    for sentence in (*map(str, result.problems), *result.notes):
        sys.stderr.write(f"skidway load: {sentence}\n")
    return result.exit_code


def _whole_hour(text: str, option: str) -> str:
    """Returns the hour that begins at the time `text`, in a form like `2026-01-31T07`. Raises
    UsageError if `text` is no time, or if the time is not the start of an hour in UTC. A reload
    replaces only whole hours."""
    time_ms = parse_since(text, SystemClock().time_ms(), option)
    if time_ms % layout.HOUR_MS:
        raise UsageError(
            f"{option} {text!r} is not the start of an hour in UTC; write 2026-01-31T10."
        )
    return _hour(time_ms)


def _hour(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%dT%H}"


def _status(args: argparse.Namespace) -> int:
    from skidway.loader.runs import run_states
    from skidway.loader.runs.status import status

    look_s = None if args.look is None else parse_duration(args.look, "--look")
    if look_s is not None and look_s < run_states.LEAST_LOOK_S:
        raise UsageError(f"--look takes at least {run_states.LEAST_LOOK_S:.0f}s.")
    settings = _settings(args)
    _become_owner(settings)
    rows = status(settings)
    runs = run_states.run_states(settings.output.store(), SystemClock(), time.sleep, look_s)
    columns = ("topic", "partition", "load", "loaded", "at", "rows", "rejects", "unfinished")
    if args.json:
        loaded = [{name: row[name] for name in columns} for row in rows]
        print_json({"partitions": loaded, "runs": runs})
        return 0
    print_rows(rows, columns, as_json=False)
    if runs:
        print()
        print_rows(map(run_states.table_row, runs), run_states.TABLE, as_json=False)
    for run in runs:
        if run["sentence"]:
            sys.stderr.write(f"skidway load: {run['sentence']}\n")
    return 0


def _history(args: argparse.Namespace) -> int:
    from skidway.loader.runs.history import COLUMNS, history

    if args.last < 1:
        raise UsageError("--last is at least 1.")
    settings = _settings(args)
    _become_owner(settings)
    print_rows(history(settings, args.last), COLUMNS, as_json=args.json)
    return 0


def _validate(args: argparse.Namespace) -> int:
    from skidway.audit.output.hdfs import configuration
    from skidway.loader.spark import properties, scratch

    settings = _settings(args)
    settings.registry.check_files()
    _become_owner(settings)
    store, remarks = settings.output.store(), []
    if settings.output.directory is not None and (found := obstacle(Path(store.url))):
        raise ConfigurationRefused(f"output: {found}")
    if settings.output.is_hdfs and (why := _unreachable(settings.output, store)):
        remarks.append(f"But a load would fail now: {why}.")
    configuration.read(settings.hadoop.conf_dir, configuration.SPARK_FILES)
    scratch.check(properties.temporary_directories(settings, Path(tempfile.gettempdir())))
    if properties.is_open(settings):
        remarks.append(OPEN_CLUSTER.format(settings.master))
    if args.json:
        print_json({"ok": True, **({"says": " ".join(remarks)} if remarks else {})})
    else:
        print_lines(["The loader's configuration is good.", *remarks])
    return 0


def _unreachable(connection: StoreConnection, store: Store) -> str:
    """Returns why the output on HDFS cannot be reached at the moment; otherwise an empty text."""
    from skidway.audit.output import StoreUnreachable
    from skidway.audit.output.hdfs import client

    try:
        if why := client.silent(connection):
            return why
        store.names("")
    except StoreUnreachable as error:
        return str(error)
    return ""


class _Interrupt:
    """Handles signals. After the first SIGTERM or SIGINT, the run starts no further tasks, and
    cancels the tasks that run on Spark. The second signal ends the run at once."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._request)

    def _request(self, number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@contextmanager
def _progress_line(args: argparse.Namespace) -> Iterator[ProgressLine | None]:
    """Yields the line that shows progress on a terminal. If there is no terminal, or with --json,
    yields None, and the log shows progress instead."""
    from skidway.loader.runs.progress_display import ProgressLine

    if args.json or not sys.stderr.isatty():
        yield None
        return
    line = ProgressLine()
    try:
        yield line
    finally:
        line.end()


def _telemetry(settings: LoaderSettings, health: Callable[[], Health]) -> TelemetryServer | None:
    """Starts a server for metrics, and returns it; None if the settings name no address for it. If
    the port cannot be opened, for example because another run uses it, logs a warning and returns
    None."""
    if settings.metrics_listener is None:
        return None
    server = TelemetryServer(
        settings.metrics_listener, health, settings.allowed_hosts, settings.host_name
    )
    try:
        server.start()
    except SkidwayError as error:
        _log.warning("no_metrics", reason=str(error))
        return None
    return server
