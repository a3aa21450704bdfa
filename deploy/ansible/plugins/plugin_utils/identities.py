"""Finds under which identity a program signs its messages to the audit. A program's key is made for
this identity (docs/audit.md, "Signatures")."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import urlsplit

from .settings import Settings

MODES = ("off", "warn", "require")
"""The values of the variable `skidway_signatures`."""

PARTS = {
    "agent": ("cluster.name", "host.name"),
    "counter": ("tier", "cluster.name"),
    "loader": ("cluster.name", "output"),
    "recount": ("host.name",),
}
"""For each role of a sender, the settings whose values are the parts of its identity."""


def identity(settings: Settings, role: str) -> str:
    """Returns the identity of a program with these settings, which have flat keys.

    A program without a name for its cluster asks the brokers for this name, which the inventory
    then does not know. So the name must be in the settings. Raises ValueError if a setting is
    missing.
    """
    settings = {"tier": "broker", **settings}
    missing = [key for key in PARTS[role] if settings.get(key) in (None, "")]
    if missing:
        raise ValueError(
            f"the settings of the {role} have no {missing[0]}, for which its audit key is made"
        )
    parts = [str(settings[key]) for key in PARTS[role]]
    if role == "loader":
        parts[-1] = _output(parts[-1])
    if role == "counter" and settings.get("producer"):
        parts.append(str(settings["producer"]))
    return "/".join((role, *parts))


def _output(text: str) -> str:
    """Returns the name that the loader has for its output."""
    if not text.startswith(("hdfs://", "viewfs://")):
        return str(PurePosixPath(text.removeprefix("file://")))
    url = urlsplit(text)
    return f"{url.scheme}://{url.netloc}/{url.path.strip('/')}"
