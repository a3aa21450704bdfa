"""Makes one attempt at the next load of a topic. Owns the attempt's staging directory.

If another loader commits a load with the same number first, the attempt deletes everything that it
staged. The caller may then begin a new attempt after the other loader's manifest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar
from uuid import uuid4

from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.spark.runner import Interrupted
from skidway.loader.state import commit, operations
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import Manifest
from skidway.loader.store import Store

M = TypeVar("M", bound=Manifest | None)
T = TypeVar("T")


class LostRace(SkidwayError):
    """Raised if another loader has already committed a load with the number of this attempt."""


class Attempt:
    """One attempt at one load. Owns the attempt's staging directory, and commits the load."""

    def __init__(
        self, store: Store, clock: Clock, host: str, topic: str, newest: Manifest | None
    ) -> None:
        self._store, self._clock, self._host = store, clock, host
        self.load = LoadId(topic, newest.number + 1 if newest else 1, uuid4().hex)

    def make(self, work: Callable[[], tuple[M, T]]) -> tuple[M, T]:
        """Makes the staging directory, with a file that identifies this process. Then calls `work`,
        which stages files and returns a manifest and a result. If the manifest is None, deletes the
        staged files; otherwise commits the manifest.

        Raises LostRace if another loader committed the same load number first. If `work` or the
        commit raises another error, raises the same error. After a failed commit, the staged files
        are not deleted, because the manifest may already exist.
        """
        manifest, result = self._staged(work)
        if manifest is None:
            self._discard()
        else:
            self._commit(manifest)
        return manifest, result

    def check(self) -> None:
        """Raises LostRace if another loader has already committed this attempt's load number."""
        if operations.run(commit.taken(self.load.topic, self.load.number), self._store):
            raise self._lost()

    def _staged(self, work: Callable[[], tuple[M, T]]) -> tuple[M, T]:
        try:
            self._claim()
            return work()
        except Interrupted:
            self._discard()
            raise
        except SkidwayError:
            self._discard()
            self.check()  # raises LostRace if another loader committed first
            raise

    def _discard(self) -> None:
        """Deletes this attempt's staging directory. The attempt has failed, and will never be
        committed."""
        # An error of the deletion is not raised, because the caller raises the error that ended the
        # load.
        with contextlib.suppress(SkidwayError):
            self._store.delete(self.load.staging)

    def _commit(self, manifest: Manifest) -> None:
        try:
            mine = operations.run(commit.commit(manifest), self._store)
        except SkidwayError as error:
            if operations.run(commit.is_lost(manifest), self._store):
                raise self._lost() from error
            raise
        if not mine:
            raise self._lost()

    def _claim(self) -> None:
        """Writes into the staging directory a file that identifies the process of this attempt. If
        the output cannot be written, the load fails here, before Spark starts."""
        now = datetime.fromtimestamp(self._clock.time_ms() / 1000, UTC)
        text = f"process {os.getpid()} on {self._host} since {now:%Y-%m-%dT%H:%M:%SZ}\n"
        writer = self._store.create(f"{self.load.staging}/owner")
        writer.write(text.encode())
        writer.close()

    def _lost(self) -> LostRace:
        return LostRace(
            f"another loader committed load {self.load.number} of {self.load.topic} meanwhile"
        )
