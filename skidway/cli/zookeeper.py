"""`skidway zookeeper run|validate|secure`: runs a ZooKeeper server, checks its settings, or gives
the nodes in ZooKeeper to a program's users (`zookeeper_acls`)."""

from __future__ import annotations

import argparse
from typing import Any

from skidway import java, service, zookeeper
from skidway.cli import zookeeper_acls
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_good
from skidway.state_owner import become_owner
from skidway.zookeeper import ZookeeperSettings

PROGRAM = "zookeeper"


def register(subparsers: Any) -> None:
    """Adds the command `skidway zookeeper`."""
    parser = subparsers.add_parser(PROGRAM, help="a real ZooKeeper server")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="run the server in the foreground until SIGTERM")
    add_config_options(run, ZookeeperSettings)
    run.set_defaults(run=_run)
    validate = verbs.add_parser("validate", help="check the settings, Java and the jars, and end")
    add_config_options(validate, ZookeeperSettings)
    add_json_option(validate)
    validate.set_defaults(run=_validate)
    zookeeper_acls.add_verb(verbs)


def _run(args: argparse.Namespace) -> int:
    def body(shutdown: service.Shutdown) -> int:
        settings = load_settings(ZookeeperSettings, args, PROGRAM)
        become_owner(settings.data_dir)
        return zookeeper.run(settings, shutdown)

    return service.run(PROGRAM, body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    settings = load_settings(ZookeeperSettings, args, PROGRAM)
    found = java.find()
    zookeeper.start_command(settings, found)
    settings.tls()
    words = f"dataDir {settings.data_dir}, Java {found.version} ({found.source})"
    return print_good(words, as_json=args.json)
