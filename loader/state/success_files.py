"""Reads the `_SUCCESS` files of hours, and writes new ones into a load's staging directory. An
hour's directory has this file if the hour is complete. This module also lists the hours that have
no `_SUCCESS` file.

A load that rewrites the files of an hour changes no row, so the hour stays complete. The load
deletes the hour's `_SUCCESS` before it moves its first file into the hour's directory. At the end
it moves a new `_SUCCESS` with the same content into this directory.
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
"""An event time that is more than this many hours ahead of the loader's clock counts as wrong (see
`unmarked`). Agents send no event time that is more than an hour ahead of their own clocks."""


def marked(topic: str, hours: Iterable[str]) -> Steps[dict[str, bytes]]:
    """Returns, for each of these hours, the content of its `_SUCCESS` file. Leaves out hours
    without a `_SUCCESS` file."""
    found = {}
    for hour in sorted(set(hours)):
        data: bytes | None = yield Read(layout.success(topic, hour))
        if data is not None:
            found[hour] = data
    return found


def stage(store: Store, load: LoadId, contents: Mapping[str, bytes]) -> tuple[Replacement, ...]:
    """Writes the `_SUCCESS` files of hours into the staging directory. Returns for each file its
    final path and its path in the staging directory. contents: for each hour, the content of its
    file."""
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
    """Returns the hours that have rows, but no `_SUCCESS` file, after a load. before: the hours
    without a `_SUCCESS` file before the load. hours: the hours that the load changes. now_marked:
    the hours to which the load adds a `_SUCCESS` file.

    The result has only the newest UNMARKED_MAX of these hours. It does not include hours that begin
    more than AHEAD_HOURS after the hour of the load. Otherwise, hours in the far future, which come
    from wrong event times, could take the place of real hours.
    """
    last = layout.hour_text(now_ms // layout.HOUR_MS + AHEAD_HOURS)
    found = {*before, *hours} - set(now_marked)
    return tuple(sorted(hour for hour in found if hour <= last)[-UNMARKED_MAX:])
