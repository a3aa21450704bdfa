"""`skidway unit list|show`: prints the systemd units that the installed Skidway contains."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from skidway import units
from skidway.cli.options import add_json_option
from skidway.cli.output import print_rows


def register(subparsers: Any) -> None:
    """Adds the command `skidway unit`."""
    parser = subparsers.add_parser("unit", help="the systemd units of this version")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    words = "name the units"
    listing = verbs.add_parser("list", help=words, description=words)
    add_json_option(listing)
    listing.set_defaults(run=_list)
    words = "print a unit's file, as it goes to /etc/systemd/system"
    show = verbs.add_parser("show", help=words, description=words)
    show.add_argument("unit", metavar="UNIT", help="agent, loader.timer, skidway-broker.service")
    show.set_defaults(run=_show)


def _list(args: argparse.Namespace) -> int:
    rows = [{"unit": name, "description": units.description(name)} for name in units.names()]
    print_rows(rows, ("unit", "description"), as_json=args.json)
    return 0


def _show(args: argparse.Namespace) -> int:
    sys.stdout.write(units.text(args.unit))
    return 0
