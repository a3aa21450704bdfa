"""Where a reload begins to read: at the newest load before all loads that took the records.

The reload reads each partition from where that load ended, with the marks that the load left. So it
recognizes the same repeats as the loads that read these offsets before. It passes over the gaps
that those loads passed over, and over no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skidway.loader.planning import plan
from skidway.loader.planning.plan import Bounds, Planned
from skidway.loader.reloading.hours import ReloadRefused
from skidway.loader.reloading.lineage import Lineage, lineage
from skidway.loader.state import commit, layout
from skidway.loader.state.live import LiveFile
from skidway.loader.state.manifest import Gap, Manifest, PartitionRange
from skidway.loader.state.operations import Steps


@dataclass(frozen=True, slots=True)
class Beginning:
    """before: the manifest with whose marks the reload begins; None for the beginning of the first
    load. last: the manifest of the last load that took records of the hours. gaps: the gaps that
    loads from the beginning to the last one passed over, by partition."""

    before: Manifest | None
    last: Manifest
    lineage: Lineage
    gaps: Mapping[int, tuple[Gap, ...]]

    def position(self, partition: int) -> PartitionRange:
        """The partition as the load before the beginning left it."""
        return plan.positions(self.before).get(partition, PartitionRange(partition, 0, 0))


def beginning(topic: str, files: Mapping[str, LiveFile]) -> Steps[Beginning]:
    """Where to begin, to read the records of these files again. Raises ReloadRefused if the
    manifest before them is not kept."""
    kept = yield from commit.committed(topic)
    found = yield from lineage(topic, files, kept[0])
    number = min(found.loads) - 1
    if number and number < kept[0]:
        hours = {layout.hour_of(path) for path in files}
        raise ReloadRefused(
            hours,
            f"{topic}: the first records of the hours from {min(hours)} on are of load "
            f"{number + 1}, and the manifest of load {number}, whose marks are needed, is no "
            "longer kept",
        )
    before = (yield from commit.read(topic, number)) if number else None
    gaps: dict[int, tuple[Gap, ...]] = {}
    last = before
    for load in range(number + 1, max(found.loads) + 1):
        last = yield from commit.read(topic, load)
        for each in last.partitions:
            gaps[each.partition] = gaps.get(each.partition, ()) + each.gaps
    assert last is not None  # at least one load took the records
    return Beginning(before, last, found, gaps)


def planned(
    topic: str, bounds: Bounds, position: PartitionRange, end: int, gaps: Sequence[Gap]
) -> Planned:
    """The offsets of a partition that a reload reads: from a position to `end`. If they cannot be
    read, `refused` says why."""
    where, at, number = f"{topic} partition {bounds.partition}", position.end, bounds.partition
    if bounds.high_watermark < end:
        reason = (
            f"{where}: loaded up to offset {end}, but the log ends at {bounds.high_watermark}: it "
            "is not the log that was loaded"
        )
        return Planned(number, at, at, at, None, position.below, reason)
    first = min(max(at, bounds.log_start), end)
    if first > at and plan.cover(at, first, gaps) is None:
        reason = (
            f"{where}: offsets {at} to {first - 1} are gone from the log, so the records from "
            f"offset {at} on cannot be loaded again"
        )
        return Planned(number, at, at, at, None, position.below, reason)
    return Planned(number, at, first, end, None, position.below)
