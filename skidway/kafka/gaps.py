"""The topic config `mirror.gaps`: the offsets that a mirror could not copy, as text.

A mirror is a topic into which a broker copies a topic of another cluster, its source.

    0:120-300:expired,2:0-17:expired

In this example, each gap is partition:first-end:reason. The end of a gap is the offset after its
last offset.

In ZooKeeper the config is one value. Clients read no string longer than 32,767 bytes, so brokers
show a long value as several configs: `mirror.gaps`, `mirror.gaps.2`, `mirror.gaps.3`. No gap is
divided between two configs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from skidway import log
from skidway.kafka.source import CLUSTER_CONFIG

if TYPE_CHECKING:
    from skidway.kafka.client import Client

_log = log.get(__name__)

CONFIG = "mirror.gaps"
GAPS_MAX = 1000
"""The highest number of gaps (ranges of missing offsets) of one topic. If a partition has a further
gap, the mirror no longer copies this partition, because so many gaps mean that the source loses
records faster than a person can investigate."""


class Gap(NamedTuple):
    """A range of offsets [first, end) in a partition, and the reason why the source no longer had
    the records in this range."""

    partition: int
    first: int
    end: int
    reason: str


def encode(gaps: Iterable[Gap]) -> str:
    """Returns the value of the config `mirror.gaps` for these gaps."""
    return ",".join(f"{gap.partition}:{gap.first}-{gap.end}:{gap.reason}" for gap in gaps)


def shown(text: str, size_max: int) -> dict[str, str]:
    """Divides the value `text` of `mirror.gaps` among several configs, so that no config's value
    has more than `size_max` bytes. Returns the configs' values by name.
    """
    parts: list[str] = []
    size = size_max
    for gap in text.split(","):
        size += len(gap.encode()) + 1
        if size > size_max:
            parts.append(gap)
            size = len(gap.encode())
        else:
            parts[-1] += f",{gap}"
    return {CONFIG if n == 1 else f"{CONFIG}.{n}": part for n, part in enumerate(parts, 1)}


def told(configs: Mapping[str, str]) -> str:
    """Returns the whole value of `mirror.gaps`, joined from the configs that a broker shows."""
    parts = [configs.get(CONFIG, "")]
    while more := configs.get(f"{CONFIG}.{len(parts) + 1}"):
        parts.append(more)
    return ",".join(parts)


def decode(text: str) -> list[Gap]:
    """Returns the gaps in a config's value. Raises ValueError for a malformed value."""
    gaps = []
    for part in text.split(",") if text else ():
        partition, offsets, reason = part.split(":", 2)
        first, _, end = offsets.partition("-")
        gaps.append(Gap(int(partition), int(first), int(end), reason))
    return gaps


def refusal(text: str) -> str | None:
    """Returns what is wrong with a value of `mirror.gaps`, or None if it is valid. The caller's
    message puts the config's name before this text."""
    try:
        decode(text)
    except ValueError:
        return f"must be partition:first-end:reason,..., not {text!r}"
    return None


def added(known: Iterable[Gap], gap: Gap) -> list[Gap]:
    """Returns the gaps in `known` together with `gap`, but leaves out each gap that lies inside
    another gap."""
    gaps = list(known)
    if any(_within(gap, each) for each in gaps):
        return gaps
    return [*(each for each in gaps if not _within(each, gap)), gap]


def covers(gaps: Iterable[Gap], partition: int, first: int, end: int) -> bool:
    """Returns whether `gaps` together contain every offset of [first, end) of a partition."""
    for gap in sorted(each for each in gaps if each.partition == partition):
        if gap.first > first:
            break
        first = max(first, gap.end)
    return first >= end


def reason(gaps: Iterable[Gap], partition: int, first: int, end: int) -> str | None:
    """Returns the reason why offsets [first, end) of a partition are missing, or None if one of
    these offsets is not in `gaps`."""
    here = sorted(each for each in gaps if each.partition == partition)
    if first >= end or not covers(here, partition, first, end):
        return None
    reasons = (each.reason for each in here if each.first < end and each.end > first)
    return "; ".join(dict.fromkeys(reasons))


def named_by_mirrors(client: Client, topics: Sequence[str]) -> dict[str, list[Gap]]:
    """Returns the gaps that brokers recorded for these topics, or an empty list for a topic that is
    no mirror.

    A broker records a mirror's gap before it copies any record after the gap. So a caller that
    first sees an offset, and then calls this function, gets every gap before that offset. Raises
    the client's errors.
    """
    configs = client.topic_configs(sorted(topics))
    return {name: _of_mirror(name, configs.get(name, {})) for name in topics}


def _of_mirror(topic: str, configs: Mapping[str, str]) -> list[Gap]:
    text = told(configs)
    if not configs.get(CLUSTER_CONFIG) or not text:
        return []
    wrong = refusal(text)
    if wrong is not None:  # if the value cannot be read, the mirror has no known gaps
        _log.error("gaps_unreadable", topic=topic, reason=f"{CONFIG} {wrong}")
        return []
    return decode(text)


def _within(inner: Gap, outer: Gap) -> bool:
    return (
        inner.partition == outer.partition and outer.first <= inner.first and inner.end <= outer.end
    )
