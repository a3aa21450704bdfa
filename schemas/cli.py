"""The nouns `registry` (`run`, `validate`) and `schemas` (see `schemas.commands`)."""

from __future__ import annotations

import argparse
from typing import Any

from skidway import service
from skidway.cli.options import add_config_options, load_settings


def register_registry(subparsers: Any) -> None:
    """Adds the noun `registry`."""
    from schemas.registry.program import RegistrySettings

    parser = subparsers.add_parser("registry", help="the schema registry")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="run the registry in the foreground until SIGTERM")
    add_config_options(run, RegistrySettings)
    run.set_defaults(run=_run)
    validate = verbs.add_parser("validate", help="check the settings, and end")
    add_config_options(validate, RegistrySettings)
    validate.set_defaults(run=_validate)


def register_schemas(subparsers: Any) -> None:
    """Adds the noun `schemas`."""
    from schemas import commands

    parser = subparsers.add_parser("schemas", help="schemas in a registry")
    commands.register(parser.add_subparsers(dest="verb", metavar="VERB"))


def _run(args: argparse.Namespace) -> int:
    from schemas.registry import program

    def body(shutdown: service.Shutdown) -> int:
        return program.run(load_settings(program.RegistrySettings, args, "registry"), shutdown)

    return service.run("registry", body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    from schemas.registry.program import RegistrySettings

    settings = load_settings(RegistrySettings, args, "registry")
    print(f"good: {', '.join(settings.listeners)}, ZooKeeper {settings.zookeeper_connect}")
    return 0
