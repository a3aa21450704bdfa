"""Folds old manifests after a load: writes one file (a checkpoint) that replaces the old manifests,
and deletes the old manifests (loader/state/folding.py)."""

from __future__ import annotations

from skidway import log
from skidway.errors import SkidwayError
from skidway.loader.state import folding, operations
from skidway.loader.state.chain import Folded
from skidway.loader.state.manifest import Manifest
from skidway.loader.store import Store

_log = log.get(__name__)


def fold(store: Store, newest: Manifest, keep: int) -> None:
    """From time to time (state/folding.py says when), replaces the old manifests by a checkpoint, a
    file that lists all files of the output. A failure does not harm the newest load, which is
    already committed; a later load replaces the manifests. keep: the least number of manifests that
    are kept."""
    try:
        if operations.run(folding.fold(newest, keep), store):
            _log.info("checkpoint_written", topic=newest.topic, load=newest.number)
    except Folded:
        return  # other loaders have committed newer loads, and replace the old manifests
    except SkidwayError as error:
        _log.warning("checkpoint_failed", topic=newest.topic, reason=str(error))
