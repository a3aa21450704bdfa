"""`skidway demo`: moves a million lines through the whole pipeline on this machine, kills four
programs with kill -9 meanwhile, and ends with a verdict."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from skidway import machine
from skidway.agent.files.host import shown
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import patterns_of
from skidway.agent.values import path_texts
from skidway.demo import certificates, writer
from skidway.demo.counts import Outcome, Tiers, cut_off, ledger, record_count
from skidway.demo.display import Display, show_addresses, show_outcome, show_tiers, waited_for
from skidway.demo.kills import kill_all
from skidway.demo.programs import COMMANDS, WITHIN_S, Programs, Stopped
from skidway.demo.site import CERTIFIED, DATACENTER, DEFAULT_PORTS, LOADS_EVERY, OFFLINE, Site
from skidway.errors import SkidwayError, Unreachable, UsageError
from skidway.files import DirectoryLock, make_directory
from skidway.kafka.errors import KafkaError
from skidway.ports import Reservation

FOLDER = Path("skidway-demo")
LINES = 1_000_000
PORTS_TRIED = 200  # for each program; the first port that is tried is its default port
WRITTEN_WITHIN_S = 40.0
SMALL_WITHOUT_SPARK = ("--set", "spark.above.offsets=400000")
"""The options of loads that bring only the remaining records. As in production, such a load runs
without Spark if it is small. The demo's other loads run on Spark, whatever their size."""
LOAD_AGAIN_S = 30.0
"""If not all buckets are complete this many seconds after a load, the demo runs a further load."""


def register(subparsers: Any) -> None:
    """Adds the command `skidway demo`."""
    parser = subparsers.add_parser(
        "demo",
        help="move a million lines through the whole pipeline here, with kills",
        description=__doc__,
    )
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--quick", action="store_true", help="tail the programs' own logs; no writer, no kills"
    )
    kind.add_argument(
        "--lines", type=int, default=LINES, help="least number of lines (default: %(default)s)"
    )
    parser.add_argument(
        "--logs", metavar="GLOB", nargs="+", default=[], help="further files to tail, line by line"
    )
    parser.add_argument(
        "--dir",
        help=f"where everything is kept (default: ./{FOLDER}; with --quick ./{FOLDER}-quick)",
    )
    parser.add_argument(
        "--hdfs", metavar="URL", help="load into this HDFS folder instead of a local directory"
    )
    parser.add_argument(
        "--tls", action="store_true", help="brokers and registry speak TLS and ask for certificates"
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.hdfs and not re.fullmatch(r"(hdfs|viewfs)://[^/]*/.+", args.hdfs):
        raise UsageError(f"--hdfs {args.hdfs}: an HDFS URL is hdfs://host:port/folder")
    if args.lines < 1:
        raise UsageError(f"--lines {args.lines}: at least one line is to be written")
    check_logs(args.logs)
    for lacking in machine.names():
        if lacking.advice:
            raise SkidwayError(f"{lacking.says}; {lacking.advice}")
    if args.tls:
        certificates.check()
    folder = Path(os.path.abspath(args.dir or (f"{FOLDER}-quick" if args.quick else FOLDER)))
    make_directory(folder)
    with DirectoryLock(folder), Reservation() as kept:
        ports = {name: kept.take(port, PORTS_TRIED) for name, port in DEFAULT_PORTS.items()}
        output = args.hdfs or str(folder / "hdfs")
        site = Site(folder, ports, output, is_signed=True, is_tls=args.tls)
        site.make_keys()
        if site.is_tls:
            certificates.make(site.certificates, CERTIFIED)
        display = Display(sys.stdout)
        try:
            with Programs(site, display.say) as programs:
                return _play(programs, display, args)
        except Stopped as stopped:
            sys.stdout.flush()
            sys.stderr.write("\nStopped; nothing is left running. The next run goes on here.\n")
            return 128 + int(stopped.args[0])


def check_logs(patterns: Sequence[str]) -> None:
    """Raises UsageError if a pattern is not valid, or matches no regular file, or a file or
    directory that cannot be read: lines that nobody reads cannot become complete."""
    for pattern in patterns:
        path = os.path.abspath(pattern)
        if (why := path_texts.refusal(path)) is not None:
            raise UsageError(f"--logs {pattern!r} {why}")
        scan = OperatingSystem().scan(patterns_of([path]))
        if not scan.found:
            reasons = "".join(f"; {shown(path)}: {said}" for path, said in scan.unreadable[:1])
            raise UsageError(f"--logs {pattern!r}: the pattern matches no regular file{reasons}")
        for file in scan.found:
            try:
                os.close(os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
            except OSError as error:
                scan.unreadable.append((file.path, error.strerror or str(error)))
        if scan.unreadable:
            path, said = scan.unreadable[0]
            raise UsageError(f"--logs {pattern!r}: cannot read {shown(path)}: {said}")


def _play(programs: Programs, display: Display, args: argparse.Namespace) -> int:
    demo = Demo(programs, display, args.logs, 0 if args.quick else args.lines)
    try:
        demo.start()
        demo.fill()
        demo.drain()
        demo.judge()
        show_outcome(programs.site, demo.outcome, display.elapsed_s)
        if args.keep:
            show_addresses(programs.site)
            demo.keep()
    except (Unreachable, KafkaError):
        programs.check()  # a program that has ended is the better reason
        raise
    return 0 if demo.outcome.is_complete else 1


class Demo:
    """The steps of a demo, in their order. All programs run on from the start to the end, as in
    production."""

    def __init__(
        self, programs: Programs, display: Display, given: Sequence[str], lines: int
    ) -> None:
        """given: the patterns of --logs. lines: how many lines a writer writes; 0 with --quick."""
        self._programs, self._display, self._site = programs, display, programs.site
        self._lines, self.outcome = lines, Outcome()
        self._tiers = Tiers(programs)
        site, schema = self._site, self._site.folder / "etc" / "order.avsc"
        own = [f"{path_texts.literal(str(site.logs))}/*.json"]
        raw = {"skidway-logs": [] if lines else own, "app-logs": [*map(os.path.abspath, given)]}
        self._sources = [
            *(writer.sources(site.written, schema) if lines else ()),
            *({"topic": x, "paths": y, "parser": {"type": "raw"}} for x, y in raw.items() if y),
        ]

    def start(self) -> None:
        """Starts every program, and waits until it is healthy."""
        self._display.say(
            "starting ZooKeeper, 2 brokers, registry, audit, 2 counters and the agent"
        )
        self._site.write(self._sources)
        for name in COMMANDS:
            self._display.state([f"  {name} ..."])
            self._programs.start(name)
        self._display.state([])
        self._display.say(f"all are healthy; watch them at {self._site.url('dashboard')}")

    def fill(self) -> None:
        """Moves the first records. With --quick, these come from the programs' own logs, and a load
        starts Spark. Otherwise a writer writes them, and programs are killed meanwhile."""
        before = self._written()["lines"]
        if before:
            self._display.say(f"this run goes on after {before:,} lines of earlier runs")
            self._tiers.note_loaded()
        if self._lines:
            options = (str(self._site.written), str(self._lines), str(WRITTEN_WITHIN_S))
            self._programs.begin("writer", *options, module="skidway.demo.writer")
            self._display.say(
                f"a writer begins: {self._lines:,} lines as raw text, regex and JSON, rotated"
            )
        offline = self._site.kafka(OFFLINE)
        topics = [f"{DATACENTER}.{source['topic']}" for source in self._sources]
        self._programs.until(lambda: record_count(offline, topics) > 0, "the first records")
        if self._lines:
            self._kill_and_wait(before)
        else:
            self._display.say("the first records are in the offline cluster; a load starts Spark")
            self._programs.load()

    def _kill_and_wait(self, before: int) -> None:
        self._programs.meanwhile = lambda: show_tiers(self._display, self._tiers)
        self.outcome.kills = kill_all(self._programs, self._tiers, self._display.say)
        self._programs.until(
            lambda: self._written()["lines"] - before >= self._lines, "all lines to be written"
        )
        self._programs.stop("writer")
        self.outcome.written = self._tiers.written.count()
        sums, files = self._written(), len(writer.files(self._site.written))
        size = f"{sums['bytes'] / 1e6:.1f} MB, {files} files"
        self._display.say(f"the writer has stopped: {sums['lines']:,} lines, {size}")

    def drain(self) -> None:
        """Writes down the size of every tailed file (the cut-off). Waits until the agent's account
        says what happened to every byte up to these sizes. The verdict covers all time buckets of
        the audit up to the bucket of this moment: their records have event times before its end,
        because the agent has already made them."""
        patterns = [path for source in self._sources for path in source["paths"]]

        def is_seen() -> bool:
            self.outcome.cut, self.outcome.unseen = cut_off(self._site, patterns)
            return not self.outcome.unseen

        def is_settled() -> bool:
            self.outcome.ledger = ledger(self._site)
            return not self.outcome.unsettled

        def obstacle() -> str:
            return waited_for(self.outcome)

        self._programs.until(is_seen, "the agent to find every file", obstacle)
        self._display.say(f"cut-off: the sizes of {len(self.outcome.cut)} files are written down")
        self._programs.until(is_settled, "every byte to be acknowledged or set apart", obstacle)
        timing = self._site.timing
        until_ms = (int(time.time() * 1000) // timing.bucket_ms + 1) * timing.bucket_ms
        self.outcome.until_ms = until_ms
        until = time.strftime("%H:%M:%S UTC", time.gmtime(until_ms / 1000))
        self._display.say(f"every byte is acknowledged; the windows up to {until} are to be judged")
        self._programs.until(
            lambda: time.time() * 1000 > until_ms + timing.lateness_ms, "the end of these windows"
        )

    def judge(self) -> None:
        """Loads the rest, waits for the audit's verdict on the buckets that are to be judged, and
        counts the rows. A line that came later than the audit allows for needs a further load."""
        deadline, load_at = time.monotonic() + WITHIN_S, 0.0
        recount, is_last = ("audit", "recount", "--output", self._site.output), False
        while not (self.outcome.is_decided or is_last):
            is_last = time.monotonic() >= deadline
            if time.monotonic() >= load_at:
                self._programs.load(*SMALL_WITHOUT_SPARK)
                self._tiers.note_loaded()
                load_at = time.monotonic() + LOAD_AGAIN_S
            _, self.outcome.report = self._programs.ask("audit", "audit", "report")
            if not self.outcome.short or self.outcome.is_decided or is_last:  # it reads all files
                status, self.outcome.recount = self._programs.ask("audit", *recount)
                self.outcome.recount_agrees = status == 0
            self._programs.pause()
        self._programs.meanwhile = lambda: None
        self._display.state([])

    def keep(self) -> None:
        """Loads again and again, until Ctrl-C or until a program ends."""
        config = str(self._site.config("loader"))
        command = ("load", "run", "--every", LOADS_EVERY, "--config", config)
        self._programs.begin("loader", *command, *SMALL_WITHOUT_SPARK)
        while True:
            self._programs.pause()

    def _written(self) -> Counter[str]:
        return sum(self._tiers.written.count().values(), Counter[str]())
