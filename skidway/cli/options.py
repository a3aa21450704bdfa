"""Options of every program (--config, --set, --log-level), and options that several commands
use."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any, TypeVar

from skidway import log, settings
from skidway.cli import profile

T = TypeVar("T")

BOOTSTRAP_SERVER = "127.0.0.1:9092"


def add_config_options(parser: argparse.ArgumentParser, cls: type[Any] | None = None) -> None:
    """Adds the options --config FILE, --set KEY=VALUE and --log-level. If `cls` (a class of
    settings) is given, also adds --example, which prints a configuration file with all settings."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file with the settings")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one setting, which overrides the file's; may be repeated",
    )
    parser.add_argument(
        "--log-level", choices=log.LEVELS, default="info", help="lowest level to write (info)"
    )
    if cls is not None:
        parser.add_argument(
            "--example",
            action=_Example,
            cls=cls,
            help="print a configuration file with every key, and end",
        )


def load_settings(cls: type[T], args: argparse.Namespace, program: str) -> T:
    """Returns the settings that the options of `add_config_options` give. Raises
    ConfigurationRefused if they are invalid."""
    return settings.load(cls, args.config, args.set, program=program)


def add_bootstrap_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option --bootstrap-server HOST:PORT[,HOST:PORT...], which the function
    `bootstrap_server` reads."""
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="one or more brokers of the cluster, comma-separated "
        f"(SKIDWAY_BOOTSTRAP_SERVER, the profile's, {BOOTSTRAP_SERVER})",
    )


def bootstrap_server(args: argparse.Namespace) -> str:
    """Returns the addresses of the brokers from the option, the environment or the profile. The
    default is `BOOTSTRAP_SERVER`. Raises ConfigurationRefused if the profile is invalid."""
    named: str | None = args.bootstrap_server
    return named or profile.read().bootstrap_servers or BOOTSTRAP_SERVER


def add_zookeeper_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option --zookeeper HOST:PORT[,HOST:PORT...][/CHROOT], which the function `zookeeper`
    reads."""
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[/CHROOT]",
        help="ZooKeeper of the consumer groups, if not the one that the brokers name "
        "(SKIDWAY_ZOOKEEPER, the profile's, the brokers')",
    )


def zookeeper(args: argparse.Namespace) -> str | None:
    """Returns the address of ZooKeeper from the option, the environment or the profile. Returns
    None if none of the three has the address; the command then asks the brokers for it."""
    named: str | None = args.zookeeper
    return named or profile.read().zookeeper_connect


def add_timeout_option(
    parser: argparse.ArgumentParser, words: str, default: float | None = None
) -> None:
    """Adds the option --timeout-s N, which may also be written --timeout. Its value is in
    `args.timeout_s`."""
    parser.add_argument(
        "--timeout-s", "--timeout", type=_seconds, default=default, metavar="N", help=words
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if math.isnan(seconds):
        raise ValueError("no number")
    return seconds


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option --json, with which a command prints one JSON document instead of a table."""
    parser.add_argument("--json", action="store_true", help="JSON for programs instead of a table")


class _Example(argparse.Action):
    def __init__(self, *, cls: type[Any], **kwargs: Any) -> None:
        super().__init__(nargs=0, default=argparse.SUPPRESS, **kwargs)
        self._cls = cls

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(settings.example(self._cls, title=f"Settings of `{parser.prog}`."), end="")
        parser.exit()
