"""`skidway demo`: moves a million lines through the whole pipeline on this machine, kills four
programs with kill -9 meanwhile, and ends with a verdict."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import Any

from skidway import machine
from skidway.demo import keys, sources, summary
from skidway.demo.display import Display
from skidway.demo.flow import Demo
from skidway.demo.site import Site, reserve_ports
from skidway.demo.supervisor import Stopped
from skidway.demo.trial import Trial
from skidway.errors import SkidwayError, UsageError
from skidway.files import DirectoryLock, make_directory, write_atomically
from skidway.ports import Reservation

FOLDER = Path("skidway-demo")
LINES = 1_000_000
SIGNALLED = 128


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
        type=Path,
        help=f"where everything is kept (default: ./{FOLDER}; with --quick ./{FOLDER}-quick)",
    )
    parser.add_argument(
        "--hdfs", metavar="URL", help="load into this HDFS folder instead of a local directory"
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.hdfs and not args.hdfs.startswith("hdfs://"):
        raise UsageError(f"--hdfs {args.hdfs}: an HDFS URL begins with hdfs://host:port/folder")
    if args.lines < 1:
        raise UsageError(f"--lines {args.lines}: at least one line is to be written")
    sources.check_given(args.logs)
    for lacking in machine.names():
        if lacking.advice:
            raise SkidwayError(f"{lacking.says}; {lacking.advice}")
    folder = Path(os.path.abspath(args.dir or _folder(is_quick=args.quick)))
    make_directory(folder)
    with DirectoryLock(folder), Reservation() as kept:
        keep_kind(folder, "quick" if args.quick else "full")
        output = args.hdfs or str(folder / "hdfs")
        site = Site(folder, reserve_ports(kept), output, is_signed=True)
        keys.make(site)
        return _play(site, args)


def _folder(*, is_quick: bool) -> Path:
    return Path(f"{FOLDER}-quick") if is_quick else FOLDER


def keep_kind(folder: Path, kind: str) -> None:
    """Allows only one kind of demo in a folder. Raises UsageError if a demo of the other kind ran
    in the folder.

    The two kinds tail different files. If both ran in one folder, the agent would no longer tail
    the files of the first demo. All bytes that were appended to these files after the first demo
    would count as lost.
    """
    note = folder / "kind"
    if not note.exists():
        write_atomically(note, f"{kind}\n".encode())
    elif (began := note.read_text().strip()) != kind:
        raise UsageError(
            f"{folder} holds a {began} demo, and this is a {kind} one: name another folder, as "
            f"with --dir {FOLDER}-{kind}"
        )


def _play(site: Site, args: argparse.Namespace) -> int:
    display = Display(sys.stdout)
    try:
        with _demo(site, display, args) as demo:
            outcome = demo.run()
            summary.show(site, outcome, display.elapsed_s)
            if args.keep:
                summary.show_addresses(site)
                demo.wait_until_interrupted()
    except Stopped as stopped:
        sys.stdout.flush()
        name = (
            "" if stopped.number == signal.SIGINT else f" by {signal.Signals(stopped.number).name}"
        )
        sys.stderr.write(
            f"\nStopped{name}; nothing is left running. The next run goes on from here.\n"
        )
        return SIGNALLED + stopped.number
    return 0 if outcome.is_complete else 1


def _demo(site: Site, display: Display, args: argparse.Namespace) -> Demo:
    return (
        Demo(site, display, args.logs)
        if args.quick
        else Trial(site, display, args.logs, args.lines)
    )
