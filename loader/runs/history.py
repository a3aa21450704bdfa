"""Lists the loads of an output, and what each load committed. Reads only manifests, and sends no
request to a broker."""

from __future__ import annotations

from typing import Any, Final

from skidway.loader.planning.topics import choose
from skidway.loader.settings import LoaderSettings
from skidway.loader.state import chain, layout, operations
from skidway.loader.state.manifest import ROWS, Manifest
from skidway.loader.store import Store

COLUMNS: Final = (
    "topic", "load", "at", "seconds", "offsets", "rows", "rows_per_second", "rejects", "files",
    "bytes", "replaced", "schema",
)  # fmt: skip

Row = dict[str, Any]


def history(settings: LoaderSettings, last: int) -> list[Row]:
    """Returns the newest loads of each chosen topic, at most `last` of each topic. The oldest of
    these loads comes first."""
    store = settings.output.store()
    chosen, _ = choose(settings.topics, store.names(layout.STATE))
    return [row for topic in chosen for row in topic_history(store, topic, last)]


def topic_history(store: Store, topic: str, last: int) -> list[Row]:
    """Returns the newest loads of one topic, at most `last`. The oldest of these loads comes
    first."""
    found = operations.run(chain.chain(topic), store)
    first = max(found.oldest, found.newest - last + 1)
    manifests = operations.run(chain.read_all(topic, first, found.newest + 1), store)
    return [_row(each) for each in manifests]


def _row(manifest: Manifest) -> Row:
    files = [each for each in manifest.files if each.kind == ROWS]
    # A load that rewrites files adds no rows, so its duration says nothing about rows per second.
    seconds = None if manifest.removed else manifest.seconds
    return {
        "topic": manifest.topic,
        "load": manifest.number,
        "at": manifest.created_text,
        "seconds": manifest.seconds,
        "offsets": sum(each.end - each.first for each in manifest.partitions),
        "rows": manifest.rows(),
        "rows_per_second": round(manifest.rows() / seconds) if seconds else None,
        "rejects": manifest.rejects(),
        "files": len(files),
        "bytes": sum(each.length for each in files),
        "replaced": len(manifest.removed),
        "schema": manifest.schema.version if manifest.schema else None,
    }
