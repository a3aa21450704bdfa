"""Finds the registry's address and credentials, for example in options or in a configuration file,
in the same way for all verbs."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from skidway import settings
from skidway.cli import profile
from skidway.cli.options import add_json_option
from skidway.schemas.client import (
    RegistryAdministration,
    RegistryClientSettings,
    RegistryConnection,
)
from skidway.schemas.client.urls import SETTING
from skidway.schemas.consuming.asking import security_of
from skidway.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionSettings(RegistryClientSettings):
    """The settings that the verbs of `skidway schemas` read: the registry's URL and credentials."""

    schema_registry_url: str = setting(
        SETTING,
        "http://127.0.0.1:8081",
        help="One or several registries, comma-separated: http://host:port.",
    )


def add_verb(verbs: Any, name: str, words: str, run: Any) -> argparse.ArgumentParser:
    """Adds a verb with the options for the registry's address, and with --json."""
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=words, description=words)
    parser.add_argument(
        "--registry", metavar="URL", help="its URL, before environment, profile and file"
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="YAML file (/etc/skidway/schemas.yml, if it exists)",
    )
    add_json_option(parser)
    parser.set_defaults(run=run)
    return parser


def connect(args: argparse.Namespace) -> RegistryAdministration:
    """Returns a client of the registry. The registry's URL comes from the option --registry if it
    is given, and otherwise from the file that the option --config names. If neither option is
    given, the URL comes from the first of these sources that has one: the environment, the profile,
    the configuration file in /etc. If none of them has one, the URL is the default of the setting.

    If --config is not given, and the environment or the profile has a registry's URL, the
    credentials come from the environment and the profile. Otherwise, the credentials come from the
    file of --config, or, without --config, from the configuration file in /etc. Raises
    `ConfigurationRefused`.
    """
    known = profile.read() if args.config is None else profile.Profile()
    if known.schema_registry_url is not None:
        url = args.registry or known.schema_registry_url
        return RegistryConnection(url, security_of(known)).administration()
    found = settings.load(ConnectionSettings, args.config, program="schemas")
    registry = found.registry
    return replace(registry, urls=args.registry or registry.urls).administration()
