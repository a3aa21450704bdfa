"""Prints what a destructive command would do (its plan), and asks whether to carry it out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from skidway.cli.output import Row, render_table
from skidway.errors import UsageError


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options --yes and --dry-run."""
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.add_argument("--dry-run", action="store_true", help="print the plan, and end")


def agreed(args: argparse.Namespace, rows: Sequence[Row], columns: Sequence[str]) -> bool:
    """Prints the plan (`rows`), and returns whether the command is to carry it out. Asks the user,
    unless the plan is empty, or --yes or --dry-run gives the answer. With --json, prints the plan
    to standard error.

    Raises `UsageError` if the user must be asked but standard input is no terminal.
    """
    out = sys.stderr if args.json else sys.stdout
    out.write(render_table(rows, columns))
    if args.dry_run or not rows:
        return False
    if args.yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("This is only the plan: repeat with --yes to do it.")
    sys.stderr.write("Do it? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
