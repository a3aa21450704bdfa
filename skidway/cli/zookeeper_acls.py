"""`skidway zookeeper secure`: gives the nodes that a program has in ZooKeeper to its own users, or
back to everybody."""

from __future__ import annotations

import argparse
from typing import Any, Final

from skidway.cli.options import add_config_options, add_json_option
from skidway.cli.output import print_json
from skidway.coordination import Coordinator, check_connect
from skidway.coordination.acls import Report, give, share_root
from skidway.errors import SkidwayError, UsageError
from skidway.settings import load_part
from skidway.zookeeper_settings import ZooKeeperSettings

OWNED: Final = {
    "broker": (
        "/admin", "/brokers", "/cluster", "/config", "/consumers", "/controller", "/kafka-acl",
        "/kafka-acl-extended", "/producer_id_key", "/producer_id_numbers",
    ),
    "registry": ("/skidway",),
}  # fmt: skip
"""The nodes that a program has, if it has no chroot. With a chroot, brokers have all that is there,
except what the registry has."""
_NAMED_MAX: Final = 5


def add_verb(verbs: Any) -> None:
    """Adds the verb `secure`."""
    words = "give the nodes that a program has in ZooKeeper to the users of its configuration"
    parser = verbs.add_parser("secure", help=words, description=words)
    parser.add_argument("program", choices=sorted(OWNED), help="whose nodes, and configuration")
    add_config_options(parser)
    parser.add_argument(
        "--open", action="store_true", dest="to_everybody", help="give them back to everybody"
    )
    add_json_option(parser)
    parser.set_defaults(run=_secure)


def _secure(args: argparse.Namespace) -> int:
    settings = load_part(ZooKeeperSettings, args.config, args.set, program=args.program)
    if settings.zookeeper_auth is None:
        raise UsageError("zookeeper.auth.location is not set: whose shall the nodes be?")
    with settings.zookeeper.open() as coordinator:
        report = _give(coordinator, args.program, to_everybody=args.to_everybody)
    if args.json:
        print_json(
            {
                "changed": report.changed,
                "unchanged": report.unchanged,
                "foreign": sorted(report.foreign),
            }
        )
    else:
        whose = "everybody" if args.to_everybody else "the users of zookeeper.auth.location"
        print(f"changed {report.changed} nodes; {report.unchanged} were {whose}'s already")
    if report.foreign:
        raise SkidwayError(_foreign(sorted(report.foreign), settings))
    return 0


def _give(coordinator: Coordinator, program: str, *, to_everybody: bool) -> Report:
    _, chroot = check_connect(coordinator.connect)
    whole = program == "broker" and chroot
    roots = ("/",) if whole else OWNED[program]
    report = give(coordinator, roots, OWNED["registry"] if whole else (), to_everybody=to_everybody)
    if program == "broker" and not chroot:
        share_root(coordinator, report, to_everybody=to_everybody)
    return report


def _foreign(paths: list[str], settings: ZooKeeperSettings) -> str:
    more = len(paths) - _NAMED_MAX
    named = ", ".join(paths[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
    return (
        f"these nodes of ZooKeeper at {settings.zookeeper_connect} belong to others, and were left"
        f" as they are: {named}; to take them, add a line with the user and password that they"
        f" belong to to zookeeper.auth.location: {settings.zookeeper_auth}"
    )
