"""The chain of a topic's manifests: 1, 2, 3 ... Each load adds a manifest at the end. From time to
time a load writes a checkpoint, which replaces the oldest manifests, and deletes these manifests
(checkpoint.py).

    _skidway/<topic>/00000000000000000301.json      the oldest manifest that is kept
    ...
    _skidway/<topic>/00000000000000001400.json      the newest manifest
    _skidway/<topic>/checkpoints/...0300-...0001.jsonl
    _skidway/<topic>/checkpoints/...1300-...0301.jsonl   manifests below 301 may be gone

A manifest is deleted only after the checkpoint that replaces it is durable. So if a reader does not
find manifest 300, it can find the checkpoint that explains why manifest 300 is gone.

A loader that was stopped for a long time may create a manifest with the number of a deleted
manifest, because creating a file fails only if the file exists. Such a manifest is not valid.
Therefore a program looks at the checkpoints after it has created or read a manifest. If a
checkpoint says that manifests with this number may be gone, the manifest is not valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Final

from skidway.errors import SkidwayError, StateRefused
from skidway.loader.state import layout
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.operations import Names, Read, Steps

LOOKS_MAX: Final = 20
"""A reader lists the manifests and checkpoints at most this many times. It must list again if
another loader has changed the manifests or checkpoints in the meantime.
"""


class Folded(SkidwayError):
    """Raised if a checkpoint has replaced a manifest before a program could read the manifest. This
    happens if other loaders commit many loads in the meantime."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The valid manifests have the numbers oldest, oldest + 1 ... newest. newest: 0 if there is no
    load."""

    oldest: int
    newest: int


def chain(topic: str) -> Steps[Chain]:
    """Returns which manifests are valid. Raises StateRefused if one of them is missing, or if a
    checkpoint has replaced the oldest manifests and no later manifest exists."""
    before = 0
    for _ in range(LOOKS_MAX):
        numbers = yield from _numbers(topic)
        # Lists the names first, and asks for the oldest manifest afterwards. In the other order, a
        # manifest that was deleted in between would seem to be missing.
        oldest = yield from oldest_kept(topic)
        newest = max(numbers, default=0)
        gone = next(number for number in count(oldest) if number not in numbers)
        if gone > newest >= oldest or (oldest == 1 and not newest):
            return Chain(oldest, newest)
        if gone == before:
            break
        # Lists again: another loader may have added manifests while the names were listed.
        before = gone
    raise StateRefused(
        f"the manifest {layout.manifest(topic, gone)} is missing although load "
        f"{newest} is committed; restore it before loading on"
    )


def newest_manifest(topic: str) -> Steps[Manifest | None]:
    """Returns the newest manifest, or None if the topic has no manifests at all. Raises
    StateRefused if a manifest between the oldest and the newest is missing, or if the newest is
    damaged. Raises Folded if other loaders commit too fast."""
    for _ in range(LOOKS_MAX):
        found = yield from chain(topic)
        if not found.newest:
            return None
        try:
            return (yield from read(topic, found.newest))
        except Folded:
            continue
    raise Folded(f"{topic}: other loaders commit faster than this one can read their manifests")


def read(topic: str, load: int) -> Steps[Manifest]:
    """Returns the manifest of a load. Raises Folded if a checkpoint has replaced the manifest.
    Raises StateRefused if the manifest is damaged, or if it is gone and no checkpoint has replaced
    it."""
    manifest = yield from read_unchecked(topic, load)
    if (yield from oldest_kept(topic)) > load:
        raise Folded(f"load {load} of {topic} was folded into a checkpoint; run the command again")
    if manifest is None:
        raise _vanished(topic, load)
    return manifest


def read_all(topic: str, first: int, end: int) -> Steps[list[Manifest]]:
    """Reads the manifests of the loads [first, end). Raises what `read` raises."""
    manifests = []
    for load in range(first, end):
        manifest = yield from read_unchecked(topic, load)
        if manifest is None:
            break
        manifests.append(manifest)
    if (yield from oldest_kept(topic)) > first:
        raise Folded(f"load {first} of {topic} was folded into a checkpoint meanwhile")
    if len(manifests) < end - first:
        raise _vanished(topic, first + len(manifests))
    return manifests


def read_unchecked(topic: str, load: int) -> Steps[Manifest | None]:
    """Returns the manifest with this number, or None if it does not exist. Raises StateRefused if
    the manifest is damaged. The caller must call `oldest_kept` afterwards. If `oldest_kept` returns
    a number above `load`, the manifest is not valid."""
    path = layout.manifest(topic, load)
    data: bytes | None = yield Read(path)
    return None if data is None else Manifest.from_json(data, path)


def oldest_kept(topic: str) -> Steps[int]:
    """Returns the number of the oldest valid manifest. Manifests with lower numbers may be gone; if
    they still exist, they are not valid."""
    names: list[str] = yield Names(layout.checkpoints(topic))
    found = map(layout.checkpoint_numbers, names)
    return max((each[1] for each in found if each), default=1)


def _numbers(topic: str) -> Steps[set[int]]:
    names: list[str] = yield Names(layout.state(topic))
    return {number for number in map(layout.manifest_number, names) if number is not None}


def _vanished(topic: str, load: int) -> StateRefused:
    return StateRefused(f"the manifest {layout.manifest(topic, load)} vanished while it was read")
