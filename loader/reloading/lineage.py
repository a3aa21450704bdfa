"""Which loads took the records of some files from the log, and up to which offsets.

The name of a file of rows or rejects has the number of its load. If the load took offsets, the
file's records lie in the offsets that the load took of the file's partition. If the load replaced
files (it compacted, rewrote or reloaded an hour), the records are those of the files that it
removed in the same hour; so their names, too, are followed, until all loads are known that took
offsets. No file is opened, so it makes no difference whether files are gone or damaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from skidway.loader.reloading.hours import ReloadRefused
from skidway.loader.state import chain, layout
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.operations import Steps


@dataclass(slots=True)
class Lineage:
    """loads: the loads that took the records. ends: for each partition that may have such records,
    one past the last offset that these loads took."""

    loads: set[int] = field(default_factory=set)
    ends: dict[int, int] = field(default_factory=dict)

    def add(self, load: int, partition: int, end: int) -> None:
        """Notes that a load took records of a partition, up to `end`."""
        self.loads.add(load)
        self.ends[partition] = max(end, self.ends.get(partition, 0))


def lineage(topic: str, paths: Iterable[str], oldest: int) -> Steps[Lineage]:
    """The lineage of these files. oldest: the oldest load whose manifest is kept. Raises
    ReloadRefused if the manifest of one of their loads is not kept."""
    found, manifests = Lineage(), dict[int, Manifest]()
    left, seen = sorted(paths), set[str]()
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        load, partition = _name(topic, path)
        if load < oldest:
            raise ReloadRefused(
                [layout.hour_of(path)],
                f"{path} has records of load {load} or earlier loads, and the manifests of {topic} "
                f"below load {oldest} are deleted, so nobody can tell any more which records were "
                "repeats (manifests.keep says how many manifests are kept)",
            )
        if load not in manifests:
            manifests[load] = yield from chain.read(topic, load)
        manifest, hour = manifests[load], layout.hour_of(path)
        if manifest.removed:
            left += [each for each in manifest.removed if layout.hour_of(each) == hour]
        else:
            ends = {each.partition: each.end for each in manifest.partitions}
            if partition is None or partition not in ends:
                raise _unknown(topic, path)
            found.add(load, partition, ends[partition])
    return found


def _name(topic: str, path: str) -> tuple[int, int | None]:
    name = layout.file_of(path)
    if name is None:
        raise _unknown(topic, path)
    return name


def _unknown(topic: str, path: str) -> ReloadRefused:
    sentence = f"{path}: neither name nor manifests say which records this file of {topic} has"
    return ReloadRefused([layout.hour_of(path)], sentence)
