"""Finds the loads that read the records of some files from the log, and the offsets up to which
these loads read.

The name of a file of rows or rejects contains the number of the load that wrote the file. If that
load read new offsets of the log, the file's records come from the offsets that the load read of the
file's partition. But the load may have replaced files by compacting, rewriting or reloading an
hour. In this case, the file's records come from the files that the load removed in the same hour.
This module follows the names of those files to the loads that wrote them, until it has found all
loads that read the records from the log. No file is opened, so files may be gone or damaged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from skidway.errors import SkidwayError
from skidway.loader.state import chain, layout
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.operations import Steps


class ReloadRefused(SkidwayError):
    """Raised if records cannot be read again from the log. Then the output stays as it is."""


@dataclass(slots=True)
class Lineage:
    """Says from which loads the records of some Parquet files come. loads: the loads that read
    these records from Kafka's log. ends: for each partition that may have these records, one past
    the last offset that these loads read. written: the ids of the schemas of the records. given:
    the ids of the schemas whose columns these loads, and those that replaced files, gave the rows.
    """

    loads: set[int] = field(default_factory=set)
    ends: dict[int, int] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)
    given: set[int] = field(default_factory=set)

    def add(self, load: int, partition: int, end: int) -> None:
        """Notes that a load read records of a partition up to, but not including, the offset
        `end`."""
        self.loads.add(load)
        self.ends[partition] = max(end, self.ends.get(partition, 0))


def lineage(topic: str, paths: Iterable[str], oldest: int) -> Steps[Lineage]:
    """Returns the loads that read the records of these files from the log, and the offsets up to
    which these loads read. oldest: the oldest load whose manifest has not been deleted. Raises
    ReloadRefused if one of the files is from a load whose manifest has been deleted, or has an
    unknown name."""
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
                f"{path} has records of load {load} or earlier loads, and the manifests of {topic} "
                f"below load {oldest} are deleted, so nobody can tell any more which records were "
                "repeats (manifests.keep says how many manifests are kept)"
            )
        if load not in manifests:
            manifests[load] = yield from chain.read(topic, load)
            found.written |= manifests[load].schema_ids.keys()
            if (schema := manifests[load].schema) is not None:
                found.given.add(schema.id)
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
    return ReloadRefused(
        f"{path}: neither name nor manifests say which records this file of {topic} has"
    )
