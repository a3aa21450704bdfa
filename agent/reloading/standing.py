"""Finds out whether the configuration files still contain the settings that the running agent uses.
Every LOOK_EVERY_S seconds, the agent checks the inodes, sizes and modification times of the files.
The agent reads the files only if one of these has changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from skidway.agent import events
from skidway.agent.configuration import Configuration, SourcesRefused
from skidway.agent.settings import AgentSettings
from skidway.agent.values.source_files import RefusedFile
from skidway.clock import Clock
from skidway.errors import SkidwayError

LOOK_EVERY_S: Final = 10.0

Stamp = tuple[tuple[str, int, int, int], ...]


def schema_files(settings: AgentSettings) -> list[Path]:
    """Returns the schema files that the sources name."""
    return sorted({each.schema_file for each in settings.sources if each.schema_file is not None})


class Standing:
    """Owns what the agent knows about the configuration files.

    differs_since_ms: since when the files differ from the settings in use; None if they do not
    differ. refusal: why the agent cannot use the settings in the files, in words for everybody;
    None if it knows no reason.
    files: the files of `sources.dir` that it refuses.
    """

    def __init__(self, configuration: Configuration, running: AgentSettings, clock: Clock) -> None:
        self._configuration = configuration
        self._running = running
        self._clock = clock
        self._stamp: Stamp = ()
        self._look_at = 0.0
        self.differs_since_ms: int | None = None
        self.refusal: str | None = None
        self.files: tuple[RefusedFile, ...] = ()
        self._judge(running)

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

    def took(self, running: AgentSettings) -> None:
        """Notes that the agent runs with these settings from now on."""
        self._running = running
        self._stamp, self._look_at = (), 0.0
        self.differs_since_ms = self.refusal = None
        self._judge(running)

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
            self._judge(self._configuration.read())
        except SkidwayError as error:
            self.refusal = error.public if isinstance(error, SourcesRefused) else str(error)
            self._differ()

    def _judge(self, said: AgentSettings) -> None:
        """Notes what the files say. What was refused when settings were taken stays so until they
        are taken again: not all that is checked then is checked here."""
        self.refusal = None
        known = {each.path: each for each in (*self._running.refused, *said.refused)}
        files = tuple(known.values())
        events.sources_files_refused(files, [each for each in files if each not in self.files])
        self.files = files
        if said != self._running or files:
            self._differ()
        else:
            self.differs_since_ms = None

    def _differ(self) -> None:
        if self.differs_since_ms is None:
            self.differs_since_ms = self._clock.time_ms()

    def _stamp_now(self) -> Stamp:
        running = self._running
        files = [*self._configuration.files(running.sources_dir), *schema_files(running)]
        return tuple(_stamps(files))


def _stamps(paths: Iterable[Path]) -> Iterable[tuple[str, int, int, int]]:
    for path in paths:
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            yield str(path), -1, -1, -1
        else:
            yield str(path), status.st_ino, status.st_mtime_ns, status.st_size
