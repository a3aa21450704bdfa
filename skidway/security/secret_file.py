"""A secret in a file of its own: so no configuration, command line or Spark task has it. Programs
read it again each time they need it."""

from __future__ import annotations

from pathlib import Path

from skidway.errors import ConfigurationRefused
from skidway.text_file import NotUtf8, read_text


def secret_of(path: Path, setting: str) -> str:
    """Returns the first line of a file. setting: that names the file. Raises ConfigurationRefused
    if the file cannot be read, or the line is empty."""
    place = f"{setting}: {path}"
    try:
        lines = read_text(path).splitlines()
    except (OSError, NotUtf8) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise ConfigurationRefused(f"{place} cannot be read: {why}") from error
    if not lines or not lines[0]:
        raise ConfigurationRefused(f"{place} is empty")
    return lines[0]
