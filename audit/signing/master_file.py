"""The file with the master keys, where a program runs that checks signatures."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from skidway import log
from skidway.audit.signing.key_file import KeyFile
from skidway.audit.signing.keys import KeyRefused, master_keys_in
from skidway.audit.signing.verifier import Verifier
from skidway.clock import Clock

LOOK_EVERY_S: Final = 5.0

_log = log.get(__name__)


class MasterFile:
    """Owns a verifier with the keys in the file. If the file cannot be used any more, the keys that
    were read last stay in use. Only one thread uses this object."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Raises KeyRefused if the file cannot be used."""
        self._file = KeyFile(path, master_keys_in)
        self._clock = clock
        self._look_at = clock.monotonic() + LOOK_EVERY_S
        self.verifier = Verifier()
        self.problem: str | None = None
        try:
            self._read()
        except KeyRefused as error:
            raise KeyRefused(self._sentence(error)) from error

    def look(self) -> None:
        """Reads the file again if it has changed. Looks at it once in LOOK_EVERY_S seconds."""
        if self._clock.monotonic() < self._look_at:
            return
        self._look_at = self._clock.monotonic() + LOOK_EVERY_S
        before, self.problem = self.problem, None
        try:
            self._read()
        except KeyRefused as error:
            self.problem = f"{self._sentence(error)} The keys read before hold."
            if self.problem != before:
                _log.error("master_keys_refused", reason=self.problem)

    def _read(self) -> None:
        keys = self._file.changed()
        if keys is not None:
            self.verifier.use(keys)
            _log.info("master_keys_taken", numbers=[key.number for key in keys])

    def _sentence(self, error: KeyRefused) -> str:
        return f"The file of the master keys ({self._file.path}) {error}."
