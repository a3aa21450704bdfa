"""The files that mark hours as complete (`_SUCCESS`), as far as a load must know them.

A load that rewrites the files of an hour changes no row, so the hour stays complete. The load
deletes the hour's file before it moves the first file, and puts the same file back at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from skidway.loader.state import layout
from skidway.loader.state.layout import LoadId
from skidway.loader.state.manifest import UNMARKED_MAX, Replacement
from skidway.loader.state.operations import Read, Steps
from skidway.loader.store import Store

AHEAD_HOURS: Final = 2
"""Agents send no event time more than an hour ahead."""


def marked(topic: str, hours: Iterable[str]) -> Steps[dict[str, bytes]]:
    """The content of the files that mark these hours, by hour. Hours without such a file are left
    out."""
    found = {}
    for hour in sorted(set(hours)):
        data: bytes | None = yield Read(layout.success(topic, hour))
        if data is not None:
            found[hour] = data
    return found


def stage(store: Store, load: LoadId, contents: Mapping[str, bytes]) -> tuple[Replacement, ...]:
    """Stages files that mark hours. contents: by hour."""
    files = []
    for hour, content in sorted(contents.items()):
        file = Replacement(layout.success(load.topic, hour), f"{load.staging}/success-{hour}")
        writer = store.create(file.staged)
        writer.write(content)
        writer.close()
        files.append(file)
    return tuple(files)


def unmarked(
    before: Iterable[str], hours: Iterable[str], now_ms: int, now_marked: Iterable[str] = ()
) -> tuple[str, ...]:
    """The hours that have rows but no file after a load: those before it, and the hours that the
    load changes, except those that it marks. At most the newest UNMARKED_MAX hours. Hours far ahead
    of the time of the load are left out, because wrong event times must not push out others."""
    last = layout.hour_text(now_ms // layout.HOUR_MS + AHEAD_HOURS)
    found = {*before, *hours} - set(now_marked)
    return tuple(sorted(hour for hour in found if hour <= last)[-UNMARKED_MAX:])
