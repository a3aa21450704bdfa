"""`skidway broker run|validate|dump-log|hand-over|take-over`.

`skidway mirror` is in broker.mirror.cli.
"""

from __future__ import annotations

import argparse
from typing import Any

from skidway import service
from skidway.broker import program
from skidway.broker.handover import cli as handover
from skidway.broker.log import cli as dump_log
from skidway.broker.mirror.cli import register as register_mirror
from skidway.broker.settings import BrokerSettings
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_good
from skidway.state_owner import become_owner

__all__ = ["register", "register_mirror"]

PROGRAM = "broker"


def register(subparsers: Any) -> None:
    """Adds the command `skidway broker`."""
    parser = subparsers.add_parser(PROGRAM, help="take, keep and hand out record batches")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="run the broker in the foreground until SIGTERM")
    add_config_options(run, BrokerSettings)
    run.set_defaults(run=_run)
    dump_log.register(verbs)
    handover.register(verbs)
    validate = verbs.add_parser("validate", help="check the settings, and end")
    add_config_options(validate, BrokerSettings)
    add_json_option(validate)
    validate.set_defaults(run=_validate)


def _run(args: argparse.Namespace) -> int:
    def body(shutdown: service.Shutdown) -> int:
        settings = load_settings(BrokerSettings, args, PROGRAM)
        for each in settings.log_dirs:
            become_owner(each)
        return program.run(settings, shutdown)

    return service.run(PROGRAM, body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    settings = load_settings(BrokerSettings, args, PROGRAM)
    directories = ", ".join(map(str, settings.log_dirs))
    words = (
        f"broker {settings.broker_id} of cluster {settings.cluster_name} on "
        f"{', '.join(settings.listeners)}, logs in {directories}"
    )
    return print_good(words, as_json=args.json)
