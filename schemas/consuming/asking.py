"""Chooses the registry that a command asks for schemas. Its URL comes from --registry, the
environment or the profile, or is the default URL."""

from __future__ import annotations

import argparse
from typing import Final

from skidway.cli import profile
from skidway.cli.profile import Profile
from skidway.schemas.client import RegistryClient, RegistryConnection, Security, no_pause

REGISTRY: Final = "http://127.0.0.1:8081"
TIMEOUT_S: Final = 5.0


def add_registry_option(parser: argparse.ArgumentParser) -> None:
    """Adds the option --registry URL[,URL...]."""
    parser.add_argument(
        "--registry",
        metavar="URL",
        help=f"has the schemas of the values (SKIDWAY_REGISTRY, the profile's, {REGISTRY})",
    )


def registry(args: argparse.Namespace) -> tuple[RegistryClient, bool]:
    """Returns a client of the registry, and whether the registry's URL is set (with the option, in
    the environment or in the profile). If it is not set, the client uses the default URL. Raises
    ConfigurationRefused."""
    known = profile.read()
    named = args.registry or known.schema_registry_url
    connection = RegistryConnection(named or REGISTRY, security_of(known))
    client = connection.client(timeout_s=TIMEOUT_S, pause=no_pause)
    return client, named is not None


def security_of(known: Profile) -> Security:
    """Returns the profile's credentials and certificate files for the registry."""
    return Security(
        known.schema_registry_user_info,
        known.schema_registry_ca,
        known.schema_registry_certificate,
        known.schema_registry_key,
    )
