"""The commands `skidway registry` (runs the registry, checks its settings) and `skidway schemas`
(the verbs are in `skidway.schemas.commands`)."""

from __future__ import annotations

import argparse
import getpass
import sys
from typing import Any

from skidway import service
from skidway.cli.options import add_config_options, add_json_option, load_settings
from skidway.cli.output import print_good
from skidway.errors import UsageError


def register_registry(subparsers: Any) -> None:
    """Adds the command `skidway registry`, with its subcommands."""
    from skidway.schemas.registry.program import RegistrySettings

    parser = subparsers.add_parser("registry", help="the schema registry")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    run = verbs.add_parser("run", help="run the registry in the foreground until SIGTERM")
    add_config_options(run, RegistrySettings)
    run.set_defaults(run=_run)
    validate = verbs.add_parser("validate", help="check the settings, and end")
    add_config_options(validate, RegistrySettings)
    add_json_option(validate)
    validate.set_defaults(run=_validate)
    words = "make a line of authentication.users.file; the password comes from standard input"
    hashing = verbs.add_parser("hash-password", help=words, description=words)
    hashing.add_argument("user")
    hashing.set_defaults(run=_hash_password)


def register_schemas(subparsers: Any) -> None:
    """Adds the command `skidway schemas`, with its subcommands."""
    from skidway.schemas import commands

    parser = subparsers.add_parser("schemas", help="schemas in a registry")
    commands.register(parser.add_subparsers(dest="verb", metavar="VERB"))


def _run(args: argparse.Namespace) -> int:
    from skidway.schemas.registry import program

    def body(shutdown: service.Shutdown) -> int:
        return program.run(load_settings(program.RegistrySettings, args, "registry"), shutdown)

    return service.run("registry", body, level=args.log_level)


def _validate(args: argparse.Namespace) -> int:
    from skidway.schemas.registry.program import RegistrySettings

    settings = load_settings(RegistrySettings, args, "registry")
    words = f"{', '.join(settings.listeners)}, ZooKeeper {settings.zookeeper_connect}"
    return print_good(words, as_json=args.json)


def _hash_password(args: argparse.Namespace) -> int:
    from skidway.schemas.registry.passwords import Hash

    if not args.user or ":" in args.user or not args.user.isprintable():
        raise UsageError("A user's name has no colon and no control characters.")
    if sys.stdin.isatty():
        password = getpass.getpass()
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsageError("The password is empty.")
    print(f"{args.user}:{Hash.of(password)}")
    return 0
