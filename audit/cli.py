"""`skidway audit run|count|validate`. The package `commands` has the other subcommands."""

from __future__ import annotations

import argparse
from typing import Any

from skidway import service
from skidway.audit.commands import (
    accept,
    compare,
    complete,
    hosts,
    keys,
    options,
    recount,
    report,
    trace,
    why,
)
from skidway.audit.settings import AuditSettings, CounterSettings
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_good
from skidway.clock import SystemClock
from skidway.state_owner import become_owner

PROGRAM = options.PROGRAM
COUNTER = "audit count"


def register(subparsers: Any) -> None:
    """Adds the command `skidway audit` with its subcommands."""
    parser = subparsers.add_parser(PROGRAM, help="count, compare and report completeness")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="collect counts and serve the dashboard until SIGTERM")
    add_config_options(run, AuditSettings)
    run.set_defaults(run=_run)
    count = verbs.add_parser("count", help="count a cluster's topics for a tier until SIGTERM")
    add_config_options(count, CounterSettings)
    count.add_argument(
        "--new-epoch",
        action="store_true",
        help="forget the state and count everything again from the beginning of every log",
    )
    count.set_defaults(run=_count)
    for command in (report, why, complete, recount, hosts, accept, keys, trace, compare):
        command.register(verbs)
    validate = verbs.add_parser("validate", help="check settings, and end")
    validate.add_argument("program", nargs="?", choices=("run", "count"), default="run")
    add_config_options(validate)
    add_json_option(validate)
    validate.set_defaults(run=_validate)


def _run(args: argparse.Namespace) -> int:
    from skidway.audit.collector.collector import run_collector

    def body(shutdown: service.Shutdown) -> int:
        settings = load_settings(AuditSettings, args, PROGRAM)
        become_owner(settings.store_dir)
        return run_collector(settings, SystemClock(), shutdown)

    return service.run(PROGRAM, body, level=args.log_level)


def _count(args: argparse.Namespace) -> int:
    from skidway.audit.counter.program import run_counter

    def body(shutdown: service.Shutdown) -> int:
        settings = load_settings(CounterSettings, args, PROGRAM)
        become_owner(settings.state_dir)
        return run_counter(settings, SystemClock(), shutdown, new_epoch=args.new_epoch)

    return service.run(COUNTER, body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    if args.program == "count":
        counter = load_settings(CounterSettings, args, PROGRAM)
        words = (
            f"tier {counter.tier} counts {', '.join(counter.topics)} of"
            f" {counter.bootstrap_servers}, state in {counter.state_dir}"
        )
        return print_good(words, as_json=args.json)
    settings = load_settings(AuditSettings, args, PROGRAM)
    options.listed(settings)
    words = (
        f"audit of {', '.join(settings.tiers)} from {settings.bootstrap_servers},"
        f" store in {settings.store_dir}, dashboard on {settings.listener}"
    )
    return print_good(words, as_json=args.json)
