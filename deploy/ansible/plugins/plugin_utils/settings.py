"""Combines the settings that the inventory has for a program with the settings that a role derives.
The inventory's settings override the role's settings. Both may be flat or nested."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

Settings = dict[str, Any]

_SECRET = re.compile(r"password|secret|user\.info|credential|token", re.IGNORECASE)
_USER_IN_URL = re.compile(r"://[^/@\s]+@")


def over(given: Mapping[str, Any], derived: Mapping[str, Any]) -> Settings:
    """Returns the settings of a program: the inventory's settings `given` override the role's
    settings `derived`.

    Nested sections become flat keys, such as `metrics.listener`, which the programs also read. A
    list in `given` replaces the whole list in `derived`.
    """
    return dict(sorted((flat(derived) | flat(given)).items()))


def flat(settings: Mapping[str, Any], prefix: str = "") -> Settings:
    """Returns the settings with flat keys: it joins the keys of nested sections with dots."""
    found: Settings = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def texts(value: Any) -> list[str]:
    """Returns the items of a list, or of the comma-separated text that the programs accept instead
    of a list."""
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    return [str(each) for each in value]


def holds_secret(settings: Mapping[str, Any]) -> bool:
    """Whether these settings contain a secret at any depth of nesting. A secret is a value whose
    key is, for example, `password`, or a URL with a user. Ansible's output must not show settings
    with a secret."""
    return any(_SECRET.search(key) or _secret(value) for key, value in flat(settings).items())


def not_named_by(directories: Iterable[str], settings: Mapping[str, Any]) -> list[str]:
    """Returns those of `directories` that are neither a value in `settings` nor an item of a list
    there."""
    values = [value for value in flat(settings).values() if isinstance(value, str | list)]
    named = {path for value in values for path in texts(value)}
    return [directory for directory in directories if directory not in named]


def outside(directories: Iterable[str], folder: str) -> list[str]:
    """Returns those of `directories` that are not in `folder`. The role gives the systemd unit
    write access to the returned directories."""
    inside = folder.rstrip("/") + "/"
    return sorted({d for d in directories if d and not f"{d.rstrip('/')}/".startswith(inside)})


def _secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return holds_secret(value)
    if isinstance(value, str):
        return bool(_USER_IN_URL.search(value))
    return isinstance(value, Iterable) and any(_secret(each) for each in value)
