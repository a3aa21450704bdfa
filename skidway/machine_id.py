"""The id of this machine, which never changes, and which no other machine has."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PATHS: Final = (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id"))
_UNINITIALIZED: Final = "uninitialized"
"""systemd's text for an image that was not booted yet. All machines made of it have this text."""

MISSING: Final = "this machine has no machine id (/etc/machine-id is missing or empty)"
ADVICE: Final = (
    "mount the host's /etc/machine-id, or run systemd-machine-id-setup; in a container without it, "
    "give the container a fixed host name"
)
"""What to do, as the host name stands for a missing id."""


def read() -> str | None:
    """Returns the machine's id; None if it has none."""
    for path in PATHS:
        try:
            text = path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text and text != _UNINITIALIZED:
            return text
    return None
