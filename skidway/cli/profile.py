"""Reads the user's profile: a file with the addresses of the user's cluster, for interactive
commands.

    option                 environment                   profile, ~/.config/skidway/profile.yml
    --bootstrap-server     SKIDWAY_BOOTSTRAP_SERVER      bootstrap.servers
    --registry             SKIDWAY_REGISTRY              schema.registry.url
    --zookeeper            SKIDWAY_ZOOKEEPER             zookeeper.connect
                                                         schema.registry.*
                                                         security.protocol, ssl.*, sasl.*
                                                         zookeeper.ssl.*, zookeeper.auth.location

A command uses the address in its option. Without the option, it uses the address in the
environment; if the environment has no address either, it uses the address in the profile. The
variable SKIDWAY_PROFILE names another file; if this variable is set to an empty text, no profile is
read. Services (`run`, `drain`, `load`) have their own configuration and ignore the profile.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from skidway import settings
from skidway.kafka.settings import KafkaSecuritySettings
from skidway.settings import setting
from skidway.zookeeper_settings import ZooKeeperSecuritySettings

FILE: Final = "SKIDWAY_PROFILE"
ENVIRONMENT: Final = {
    "SKIDWAY_BOOTSTRAP_SERVER": "bootstrap_servers",
    "SKIDWAY_REGISTRY": "schema_registry_url",
    "SKIDWAY_ZOOKEEPER": "zookeeper_connect",
}


@dataclass(frozen=True, kw_only=True)
class Profile(KafkaSecuritySettings, ZooKeeperSecuritySettings):
    """The settings in a profile. A field is None if the profile does not set it. The profile's
    security counts for every cluster, and every ZooKeeper, that a command of the user asks."""

    bootstrap_servers: str | None = setting(
        "bootstrap.servers", None, help="Brokers to begin with: host:port, comma-separated."
    )
    zookeeper_connect: str | None = setting(
        "zookeeper.connect",
        None,
        help="ZooKeeper of consumer groups, with its chroot; by default the brokers' own.",
    )
    schema_registry_url: str | None = setting(
        "schema.registry.url", None, help="The registry's URLs, comma-separated."
    )
    schema_registry_user_info: Path | None = setting(
        "schema.registry.basic.auth.user.info.location",
        None,
        help="File whose first line is user:password.",
    )
    schema_registry_ca: Path | None = setting(
        "schema.registry.ssl.ca.location", None, help="PEM file of the authorities to trust."
    )
    schema_registry_certificate: Path | None = setting(
        "schema.registry.ssl.certificate.location", None, help="PEM file to show to a registry."
    )
    schema_registry_key: Path | None = setting(
        "schema.registry.ssl.key.location", None, help="PEM file of its key, not encrypted."
    )


def read(environment: Mapping[str, str] = os.environ) -> Profile:
    """Returns the profile. If a variable of the environment is set, its value replaces the
    profile's setting. Raises ConfigurationRefused if the profile is invalid."""
    path = _path(environment)
    found = Profile() if path is None else settings.load(Profile, path)
    named = {name: environment[key] for key, name in ENVIRONMENT.items() if environment.get(key)}
    return replace(found, **named)  # type: ignore[arg-type]


def _path(environment: Mapping[str, str]) -> Path | None:
    """Returns the path of the profile, or None if no profile is read. A file named by
    SKIDWAY_PROFILE must exist; the default file may be missing.
    """
    named = environment.get(FILE)
    if named is not None:
        return Path(named) if named else None
    home = environment.get("XDG_CONFIG_HOME") or os.path.join(
        environment.get("HOME") or os.path.expanduser("~"), ".config"
    )
    usual = Path(home) / "skidway" / "profile.yml"
    return usual if usual.exists() else None
