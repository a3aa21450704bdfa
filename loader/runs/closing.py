"""Chooses, at the end of a load, the closed log files that the loader forgets. The load then drops
the marks of these files (how far a file is loaded) and their names (host and path).

state/closures.py decides when a file is forgotten. The docstring of that module explains closures
(an agent's messages that a file is closed), seals, and the stages of a closed file. This module
passes the closures and seals that the run has read to `Closures`, and asks the brokers for the
topic's high watermarks. From the high watermarks and the offsets in seals, `Closures` makes a
fence, which has an offset for each partition. When the topic is loaded up to the fence, the loader
forgets the closed files that waited for the fence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skidway import log
from skidway.audit.counts.marks import NO_MARK, FileKey
from skidway.errors import SkidwayError
from skidway.kafka.client import LATEST, READ_UNCOMMITTED
from skidway.kafka.types import TopicPartition
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.runs.parts import Parts
from skidway.loader.state.closures import Closed, Stage
from skidway.loader.state.manifest import Manifest, PartitionRange
from skidway.loader.state.tables import Changes, Tables

_log = log.get(__name__)


class Closing:
    """Decides, for one topic and one load, which changes of the tables follow from the closed
    files.
    """

    def __init__(self, parts: Parts, topic: SourceTopic, newest: Manifest | None) -> None:
        self._parts, self._topic = parts, topic
        self._positions = newest.audit_positions if newest else {}

    def changes(self, tables: Tables, ranges: Sequence[PartitionRange]) -> Changes:
        """Returns the changes that closed files cause in a load's tables: the load drops the marks
        and names of the files that the loader forgets, and stores the new stage (`Stage` in
        state/closures.py) of every other closed file whose stage has changed.

        Also updates `tables.closures`. `tables` must already contain the load's marks and names.
        ranges: for each partition of the topic, how far the load has read the partition.
        """
        closures, before = tables.closures, dict(tables.closures.files)
        now_ms = self._parts.clock.time_ms()
        self._hear(tables, now_ms)
        ends = {each.partition: each.end for each in ranges}
        gone = closures.passed(ends)
        settled = closures.settled(now_ms)
        if settled and (watermarks := self._watermarks(ends)):
            closures.make_fence(settled, watermarks)
            gone += closures.passed(ends)
        moved = {key: each for key, each in closures.files.items() if before.get(key) != each}
        dropped = {key: Closed(0, 0, Stage.GONE) for key in gone if key in before}
        return Changes(
            marks=_drop(tables.marks, gone),
            locations=dict.fromkeys((key for key in gone if key in tables.locations), None),
            closed={**moved, **dropped},
        )

    def _hear(self, tables: Tables, now_ms: int) -> None:
        feed, source = self._parts.feed, self._topic.source
        closed = feed.closed(source, self._positions)
        tables.closures.close(closed, now_ms)
        tables.closures.name(feed.endings.named(source))
        tables.closures.seal(feed.seals(source, self._positions), closed.keys(), tables.marks)

    def _watermarks(self, ends: Mapping[int, int]) -> dict[int, int]:
        """Returns the high watermark that each partition has now, not the last stable offset: lines
        of the file may be behind an open transaction. If the leader of any partition does not
        answer, the result is empty."""
        partitions = [TopicPartition(self._topic.name, partition) for partition in ends]
        try:
            found, errors = self._parts.client.list_offsets_now(
                dict.fromkeys(partitions, LATEST), READ_UNCOMMITTED
            )
            if errors:
                raise next(iter(errors.values()))
        except SkidwayError as error:
            _log.warning("marks_kept", topic=self._topic.name, reason=str(error))
            return {}
        return {tp.partition: each.offset for tp, each in found.items()}


def _drop(
    marks: Mapping[int, Mapping[FileKey, int]], gone: Sequence[FileKey]
) -> dict[int, dict[FileKey, int]]:
    """Returns the changes of the table `marks` that drop the marks of the files `gone`."""
    dropped = {at: {key: NO_MARK for key in gone if key in each} for at, each in marks.items()}
    return {at: each for at, each in dropped.items() if each}
