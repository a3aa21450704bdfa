"""Finds where a reload begins to read. A reload replaces the records of some hours. Certain earlier
loads have read these records from Kafka's log. The reload begins where the first of these loads
began: in each partition, at the offset at which the previous load had ended.

The reload begins with the marks that the loader had when the first of these loads began. (Marks say
how far each log file is loaded; a record below its file's mark is a repeat.) So the reload
recognizes the same repeats as the loads that first read these offsets. The reload skips only the
gaps that those loads skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from skidway.loader.planning import plan
from skidway.loader.planning.plan import Bounds, Planned
from skidway.loader.reloading.lineage import Lineage, ReloadRefused, lineage
from skidway.loader.state import chain
from skidway.loader.state.manifest import Gap, Manifest, PartitionRange
from skidway.loader.state.operations import Steps


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a reload begins to read. before: the manifest from which the reload takes its first
    marks; None if the reload begins where the first load began. gaps: for each partition, the gaps
    that were skipped by the loads after `before`, up to the last load that read records of the
    reloaded hours from the log.
    """

    before: Manifest | None
    lineage: Lineage
    gaps: Mapping[int, tuple[Gap, ...]]

    def position(self, partition: int) -> PartitionRange:
        """Returns the range that the manifest `before` has for a partition. The reload begins to
        read the partition at the end of this range. If the manifest has no range for the partition,
        returns an empty range at offset 0.
        """
        return plan.positions(self.before).get(partition, PartitionRange(partition, 0, 0))


def beginning(topic: str, files: Collection[str]) -> Steps[Beginning]:
    """Returns where a reload of the records of these files begins to read. Raises ReloadRefused if
    a checkpoint has replaced the manifest that has the first marks of the reload, or the manifest
    of a load that wrote one of the files."""
    oldest = yield from chain.oldest_kept(topic)
    found = yield from lineage(topic, files, oldest)
    number = min(found.loads) - 1
    yield from check_kept(topic, number)
    before = (yield from chain.read(topic, number)) if number else None
    gaps: dict[int, tuple[Gap, ...]] = {}
    for manifest in (yield from chain.read_all(topic, number + 1, max(found.loads) + 1)):
        for each in manifest.partitions:
            gaps[each.partition] = gaps.get(each.partition, ()) + each.gaps
    return Beginning(before, found, gaps)


def check_kept(topic: str, before: int) -> Steps[None]:
    """Raises ReloadRefused if the manifest of the load `before` has been deleted. A reload begins
    with the marks of that load. `before` is 0 if the reload begins where the first load began; then
    this function checks the manifest of the first load."""
    oldest = yield from chain.oldest_kept(topic)
    if max(before, 1) < oldest:
        raise ReloadRefused(
            f"{topic}: the first records of these hours are of load {before + 1}, and the "
            f"manifests below load {oldest} are deleted, so nobody can tell any more which records "
            "were repeats (manifests.keep says how many manifests are kept)"
        )


def planned(
    topic: str, bounds: Bounds, position: PartitionRange, end: int, gaps: Sequence[Gap]
) -> Planned:
    """Returns the offsets of a partition that a reload reads: from `position` to `end`. If these
    offsets cannot be read, the result is an empty range whose field `refused` says why.
    """
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
