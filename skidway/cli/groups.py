"""`skidway groups list|describe|reset`: shows and resets consumer groups whose state is in
ZooKeeper."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from skidway.cli import profile
from skidway.cli.moments import parse_since
from skidway.cli.options import (
    add_bootstrap_option,
    add_json_option,
    add_zookeeper_option,
    zookeeper,
)
from skidway.cli.output import print_json, print_rows
from skidway.cli.topics import connect
from skidway.clock import SystemClock
from skidway.consumer.administration import Groups
from skidway.consumer.tree import zookeeper_of
from skidway.coordination import ZooKeeperConnection
from skidway.kafka.client import EARLIEST, LATEST
from skidway.kafka.types import TopicPartition

COLUMNS = [
    "topic",
    "partition",
    "owner",
    "committed_offset",
    "log_start_offset",
    "log_end_offset",
    "lag",
]


def register(subparsers: Any) -> None:
    """Adds the command `skidway groups`."""
    parser = subparsers.add_parser("groups", help="list, describe and reset consumer groups")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    listing = _verb(verbs, "list", _list, "every group with its members and topics")
    add_json_option(listing)
    describe = _verb(verbs, "describe", _describe, "owner, committed offset and lag per partition")
    describe.add_argument("group", metavar="GROUP")
    add_json_option(describe)
    reset = _verb(verbs, "reset", _reset, "set committed offsets of a group without members")
    reset.add_argument("group", metavar="GROUP")
    reset.add_argument(
        "--topic", action="append", default=[], metavar="T", help="may be repeated; else all"
    )
    reset.add_argument(
        "--partition", type=int, action="append", default=[], metavar="N", help="may be repeated"
    )
    where = reset.add_mutually_exclusive_group(required=True)
    where.add_argument("--to-earliest", action="store_true", help="to the beginning of the log")
    where.add_argument("--to-latest", action="store_true", help="to its end")
    where.add_argument("--to-offset", type=int, metavar="N")
    where.add_argument(
        "--to-datetime",
        metavar="TIME",
        help="to the first record at or after 2026-01-31T12:00:00 (UTC unless it says otherwise), "
        "or after a time so long ago: 90m, 24h",
    )
    reset.add_argument("--dry-run", action="store_true", help="show what would be set")
    add_json_option(reset)


def _verb(verbs: Any, name: str, run: Any, words: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words)
    add_bootstrap_option(parser)
    add_zookeeper_option(parser)
    parser.set_defaults(run=run)
    return parser


@contextlib.contextmanager
def _groups(args: argparse.Namespace) -> Iterator[Groups]:
    with connect(args) as client:
        where = zookeeper(args) or zookeeper_of(client)
        security = profile.read().zookeeper_security
        with ZooKeeperConnection(where, security=security).open() as coordinator:
            yield Groups(coordinator, client)


def _list(args: argparse.Namespace) -> int:
    with _groups(args) as groups:
        rows = [
            {"group": each.group, "members": each.members, "topics": list(each.topics)}
            for each in groups.all()
        ]
    print_rows(rows, ["group", "members", "topics"], as_json=args.json)
    return 0


def _describe(args: argparse.Namespace) -> int:
    with _groups(args) as groups:
        found = groups.describe(args.group)
        members, active = groups.members(args.group), groups.active(args.group)
    rows = [{name: getattr(each, name) for name in COLUMNS} for each in found]
    if args.json:
        print_json({"group": args.group, "members": list(members), "partitions": rows})
    else:
        print(f"{args.group}  ({active} active members)")
        print_rows(rows, COLUMNS, as_json=False)
    return 0


def _reset(args: argparse.Namespace) -> int:
    with _groups(args) as groups:
        changes = groups.reset(args.group, _offsets(groups, args), dry_run=args.dry_run)
    rows = [
        {"topic": each.topic, "partition": each.partition, "before": each.before, "now": each.after}
        for each in changes
    ]
    print_rows(rows, ["topic", "partition", "before", "now"], as_json=args.json)
    return 0


def _offsets(groups: Groups, args: argparse.Namespace) -> dict[TopicPartition, int]:
    chosen = (args.group, args.topic)
    if args.to_offset is not None:
        return groups.at_offset(*chosen, args.to_offset, args.partition)
    if args.to_datetime is not None:
        time_ms = parse_since(args.to_datetime, SystemClock().time_ms(), "--to-datetime")
        return groups.positions(*chosen, time_ms, args.partition)
    return groups.positions(*chosen, EARLIEST if args.to_earliest else LATEST, args.partition)
