"""Checks the URLs of a registry, as settings and options give them."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlsplit

from skidway.errors import ConfigurationRefused

SETTING: Final = "schema.registry.url"
"""The name of the setting, which agent, loader, commands, profile and data source share."""
USER_INFO: Final = "schema.registry.basic.auth.user.info.location"


def parsed(urls: str) -> list[SplitResult]:
    """Returns the parts of one or more URLs, separated by commas. Raises `ConfigurationRefused` if
    they are not valid."""
    if "@" in urls:  # looked for first, because a message must not repeat a part of a password
        raise ConfigurationRefused(f"{SETTING} takes no user and password; set {USER_INFO}")
    return [_parsed(each.strip()) for each in urls.split(",")]


def _parsed(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment:
        raise ConfigurationRefused(
            f"{SETTING}: {url!r} is no URL of a schema registry (http://host:port)"
        )
    return parts
