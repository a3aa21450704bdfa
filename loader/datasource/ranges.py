"""Decides which offsets each task of a query reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.datasource import InputPartition

from skidway.loader.planning import plan
from skidway.loader.planning.plan import Bounds, Planned
from skidway.loader.planning.topic import SourceTopic


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """The offsets [first, end) of one partition. Spark copies this object to the task that reads
    the offsets.

    topic_id: empty if it is unknown. schema: the Avro schema of the rows; empty if values are not
    decoded.
    """

    topic: str
    topic_id: str
    partition: int
    first: int
    end: int
    schema: str


def within(
    topic: SourceTopic, firsts: Mapping[int, int], ends: Mapping[int, int]
) -> tuple[list[Planned], list[str]]:
    """Returns, for each partition in `ends` that exists, the wanted offsets that the log has. Also
    returns sentences about what is missing: one for each range of wanted offsets that the log
    lacks, and one for each partition that does not exist. firsts: for each partition, the first
    wanted offset (0 for a partition that is not in `firsts`). ends: for each partition, one past
    the last wanted offset.
    """
    known = {each.partition: each for each in topic.bounds}
    planned: list[Planned] = []
    losses: list[str] = []
    for number, end in sorted(ends.items()):
        first = firsts.get(number, 0)
        where = f"{topic.name} partition {number}"
        bounds = known.get(number)
        if bounds is None:
            losses.append(f"{where} does not exist now")
            continue
        losses += _missing(where, first, end, bounds)
        first = min(max(first, bounds.log_start), bounds.high_watermark)
        end = max(first, min(end, bounds.high_watermark))
        planned.append(Planned(number, first, first, end))
    return planned, losses


def cut(
    topic: SourceTopic, planned: Sequence[Planned], records: int, schema: str
) -> list[OffsetRange]:
    """Cuts the planned ranges into ranges of at most `records` offsets, one for each task."""
    return [
        OffsetRange(topic.name, topic.topic_id, each.partition, each.first, each.end, schema)
        for each in plan.cut(planned, records)
    ]


def _missing(where: str, first: int, end: int, bounds: Bounds) -> list[str]:
    missing = []
    if first < bounds.log_start and first < end:
        last = min(bounds.log_start, end) - 1
        missing.append(
            f"{where}: offsets {first} to {last} have expired; the log begins at {bounds.log_start}"
        )
    beyond = max(first, end)
    if beyond > bounds.high_watermark:
        missing.append(
            f"{where}: the log ends at offset {bounds.high_watermark}, before offset {beyond}"
        )
    return missing
