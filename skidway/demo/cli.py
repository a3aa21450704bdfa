"""`skidway demo`: the whole pipeline on this machine, on real logs, ending with a verdict."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from skidway.demo import summary
from skidway.demo.flow import Demo
from skidway.demo.site import Site, free_ports
from skidway.errors import UsageError
from skidway.files import DirectoryLock, make_directory

FOLDER = Path("skidway-demo")
INTERRUPTED = 130


def register(subparsers: Any) -> None:
    """Adds the noun `demo`."""
    parser = subparsers.add_parser(
        "demo", help="run the whole pipeline here, on real logs", description=__doc__
    )
    parser.add_argument(
        "--logs", metavar="GLOB", nargs="+", default=[], help="further files to tail, line by line"
    )
    parser.add_argument(
        "--dir", type=Path, default=FOLDER, help="where everything is kept (default: ./%(default)s)"
    )
    parser.add_argument(
        "--hdfs", metavar="URL", help="load into this HDFS folder instead of a local directory"
    )
    parser.add_argument("--keep", action="store_true", help="leave everything running until Ctrl-C")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.hdfs and not args.hdfs.startswith("hdfs://"):
        raise UsageError(f"--hdfs {args.hdfs}: an HDFS URL begins with hdfs://host:port/folder")
    folder = args.dir.absolute()
    make_directory(folder)
    with DirectoryLock(folder):
        site = Site(folder, free_ports(), args.hdfs or str(folder / "hdfs"))
        return _play(site, args)


def _play(site: Site, args: argparse.Namespace) -> int:
    begin = time.monotonic()
    try:
        with Demo(site, args.logs) as demo:
            outcome = demo.run()
            summary.show(site, outcome, time.monotonic() - begin)
            if args.keep:
                summary.show_addresses(site)
                demo.wait_until_interrupted()
            return 0 if outcome.is_complete else 1
    except KeyboardInterrupt:
        sys.stderr.write("\nStopped; nothing is left running. The next run goes on from here.\n")
        return INTERRUPTED
