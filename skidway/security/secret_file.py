"""A secret in a file of its own: so no configuration, command line or Spark task has it. Programs
read it again each time they need it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from skidway.errors import ConfigurationRefused
from skidway.regular_file import open_regular
from skidway.text_file import NotUtf8, decoded, read_text


def secret_of(path: Path, setting: str) -> str:
    """Returns the first line of a file. setting: that names the file. Raises ConfigurationRefused
    if the file cannot be read, or the line is empty."""
    place = f"{setting}: {path}"
    try:
        lines = read_text(path).splitlines()
    except (OSError, NotUtf8) as error:
        raise _unreadable(place, error) from error
    if not lines or not lines[0]:
        raise ConfigurationRefused(f"{place} is empty")
    return lines[0]


def secret_lines(path: Path, setting: str) -> list[str]:
    """Returns the lines of a file that are not empty. setting: that names the file. Raises
    ConfigurationRefused if the file cannot be read, has no line, or may be read by every user of
    the host."""
    place = f"{setting}: {path}"
    try:
        with open_regular(path) as file:
            is_public = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o007
            lines = [each.strip() for each in decoded(file.read()).splitlines()]
    except (OSError, NotUtf8) as error:
        raise _unreadable(place, error) from error
    if is_public:
        raise ConfigurationRefused(f"{place} is open to every user of this host; chmod 0640 {path}")
    found = [each for each in lines if each]
    if not found:
        raise ConfigurationRefused(f"{place} is empty")
    return found


def _unreadable(place: str, error: OSError | NotUtf8) -> ConfigurationRefused:
    why = (error.strerror if isinstance(error, OSError) else None) or error
    return ConfigurationRefused(f"{place} cannot be read: {why}")
