"""Finds out whether the configuration files still contain the settings that the running agent uses.
Every LOOK_EVERY_S seconds, the agent checks the inodes, sizes and modification times of the files.
The agent reads the files only if one of these has changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from skidway.agent.configuration import Configuration
from skidway.agent.settings import AgentSettings
from skidway.clock import Clock
from skidway.dataclass import dataclass
from skidway.errors import SkidwayError

LOOK_EVERY_S: Final = 10.0

Stamp = tuple[tuple[str, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings as they were read, and a hash of each schema file that the settings name."""

    settings: AgentSettings
    schemas: tuple[tuple[str, str], ...]


def loaded(settings: AgentSettings) -> Loaded:
    """Returns the settings, and a hash of the present content of each schema file that they
    name."""
    return Loaded(settings, tuple((str(path), _digest(path)) for path in schema_files(settings)))


def schema_files(settings: AgentSettings) -> list[Path]:
    """Returns the schema files that the sources name."""
    return sorted({each.schema_file for each in settings.sources if each.schema_file is not None})


class Standing:
    """Owns what the agent knows about the configuration files.

    differs_since_ms: since when the files differ from the settings in use; None if they do not
    differ. refusal: why the agent cannot use the settings in the files; None if it knows no reason.
    """

    def __init__(self, configuration: Configuration, running: Loaded, clock: Clock) -> None:
        self._configuration = configuration
        self._running = running
        self._clock = clock
        self._stamp: Stamp = ()
        self._look_at = 0.0
        self.differs_since_ms: int | None = None
        self.refusal: str | None = None

    def look(self, now: float) -> None:
        """Checks the files, at most once in LOOK_EVERY_S seconds. The first call, and the first
        call after `took`, check nothing: the agent has just read the files."""
        if now < self._look_at:
            return
        is_first, self._look_at = not self._look_at, now + LOOK_EVERY_S
        if is_first:
            return  # the settings in use were just read from these files
        if self._stamp_now() != self._stamp:
            self._compare()

    def took(self, running: Loaded) -> None:
        """Notes that the agent runs with these settings from now on."""
        self._running = running
        self._stamp, self._look_at = (), 0.0
        self.differs_since_ms = self.refusal = None

    def refused(self, reason: str) -> None:
        """Notes why the agent did not take the settings in the files. Notes nothing if the files
        now contain the settings in use. If the files cannot be read now, notes why they cannot be
        read, instead of `reason`.
        """
        self._compare()
        if self.differs_since_ms is not None and self.refusal is None:
            self.refusal = reason

    def _compare(self) -> None:
        """Reads the files and compares them with the settings in use. If the files change
        meanwhile, the next `look` reads them again."""
        self._stamp = self._stamp_now()
        try:
            differs, self.refusal = loaded(self._configuration.read()) != self._running, None
        except SkidwayError as error:
            differs, self.refusal = True, str(error)
        if not differs:
            self.differs_since_ms = None
        elif self.differs_since_ms is None:
            self.differs_since_ms = self._clock.time_ms()

    def _stamp_now(self) -> Stamp:
        running = self._running.settings
        files = [*self._configuration.files(running.sources_dir), *schema_files(running)]
        return tuple(_stamps(files))


def _stamps(paths: Iterable[Path]) -> Iterable[tuple[str, int, int, int]]:
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            yield str(path), -1, -1, -1
        else:
            yield str(path), status.st_ino, status.st_mtime_ns, status.st_size


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
