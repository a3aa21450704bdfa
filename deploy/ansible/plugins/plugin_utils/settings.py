"""Combines the settings of programs, which may be flat or nested. The inventory's settings override
the role's settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

Settings = dict[str, Any]

_SECRET = re.compile(r"password|secret|user\.info|credential|token", re.IGNORECASE)
_USER_IN_URL = re.compile(r"://[^/@\s]+@")


def over(given: Mapping[str, Any], derived: Mapping[str, Any]) -> Settings:
    """The settings of a program: the given ones override the derived ones.

    Nested sections become flat keys, as the programs read them. A given list replaces the whole
    derived list.
    """
    return dict(sorted((flat(derived) | flat(given)).items()))


def flat(settings: Mapping[str, Any], prefix: str = "") -> Settings:
    """The settings with nested sections as flat keys."""
    found: Settings = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def texts(value: Any) -> list[str]:
    """The items of a list, or of the comma-separated text that the programs accept instead."""
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    return [str(each) for each in value]


def holds_secret(settings: Mapping[str, Any]) -> bool:
    """Whether these settings contain a secret at any depth: a key such as password, or a URL with a
    user. Ansible's output must not show settings with a secret."""
    return any(_SECRET.search(key) or _secret(value) for key, value in flat(settings).items())


def not_named_by(directories: Iterable[str], settings: Mapping[str, Any]) -> list[str]:
    """The directories that these settings do not name."""
    values = [value for value in flat(settings).values() if isinstance(value, str | list)]
    named = {path for value in values for path in texts(value)}
    return [directory for directory in directories if directory not in named]


def outside(directories: Iterable[str], folder: str) -> list[str]:
    """The directories that do not lie in `folder`. The unit must get write access to them."""
    inside = folder.rstrip("/") + "/"
    return sorted({d for d in directories if d and not f"{d.rstrip('/')}/".startswith(inside)})


def _secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return holds_secret(value)
    if isinstance(value, str):
        return bool(_USER_IN_URL.search(value))
    return isinstance(value, Iterable) and any(_secret(each) for each in value)
