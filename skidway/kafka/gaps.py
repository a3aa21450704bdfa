"""The topic config `mirror.gaps`: offsets that a mirror could not copy, as text.

0:120-300:expired,2:0-17:expired        partition:first-end:reason; end is one past the last

In ZooKeeper it is one value. Clients read no string above 32,767 bytes, so brokers show a long
value in parts, each of whole gaps: `mirror.gaps`, `mirror.gaps.2`, `mirror.gaps.3`.
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
"""A topic with more is stopped: its source loses records faster than anybody can look."""


class Gap(NamedTuple):
    """Offsets [first, end) of a partition that the source no longer had, and why."""

    partition: int
    first: int
    end: int
    reason: str


def encode(gaps: Iterable[Gap]) -> str:
    """The config's value."""
    return ",".join(f"{gap.partition}:{gap.first}-{gap.end}:{gap.reason}" for gap in gaps)


def shown(text: str, size_max: int) -> dict[str, str]:
    """Splits the value into configs whose values have at most `size_max` bytes."""
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
    """The whole value, joined from configs as a broker shows them."""
    parts = [configs.get(CONFIG, "")]
    while more := configs.get(f"{CONFIG}.{len(parts) + 1}"):
        parts.append(more)
    return ",".join(parts)


def decode(text: str) -> list[Gap]:
    """The gaps of a config's value. ValueError when it is none."""
    gaps = []
    for part in text.split(",") if text else ():
        partition, offsets, reason = part.split(":", 2)
        first, _, end = offsets.partition("-")
        gaps.append(Gap(int(partition), int(first), int(end), reason))
    return gaps


def refusal(text: str) -> str | None:
    """What is wrong with a value, in words that follow its name; None if nothing."""
    try:
        decode(text)
    except ValueError:
        return f"must be partition:first-end:reason,..., not {text!r}"
    return None


def added(known: Iterable[Gap], gap: Gap) -> list[Gap]:
    """The gaps with one more; one that lies within another is not named twice."""
    gaps = list(known)
    if any(_within(gap, each) for each in gaps):
        return gaps
    return [*(each for each in gaps if not _within(each, gap)), gap]


def covers(gaps: Iterable[Gap], partition: int, first: int, end: int) -> bool:
    """Whether every offset of [first, end) is named as missing from a partition."""
    for gap in sorted(each for each in gaps if each.partition == partition):
        if gap.first > first:
            break
        first = max(first, gap.end)
    return first >= end


def reason(gaps: Iterable[Gap], partition: int, first: int, end: int) -> str | None:
    """Why offsets [first, end) of a partition are missing, where gaps name all of them."""
    here = sorted(each for each in gaps if each.partition == partition)
    if first >= end or not covers(here, partition, first, end):
        return None
    reasons = (each.reason for each in here if each.first < end and each.end > first)
    return "; ".join(dict.fromkeys(reasons))


def named_by_mirrors(client: Client, topics: Sequence[str]) -> dict[str, list[Gap]]:
    """The gaps that mirrors recorded for these topics; none for a topic that is no mirror.

    A mirror writes a gap down before it copies anything behind it: a caller that asks after it has
    seen an offset learns of every gap below it. Raises what the client raises.
    """
    configs = client.topic_configs(sorted(topics))
    return {name: _of_mirror(name, configs.get(name, {})) for name in topics}


def _of_mirror(topic: str, configs: Mapping[str, str]) -> list[Gap]:
    text = told(configs)
    if not configs.get(CLUSTER_CONFIG) or not text:
        return []
    wrong = refusal(text)
    if wrong is not None:  # an unreadable value names no gap
        _log.error("gaps_unreadable", topic=topic, reason=f"{CONFIG} {wrong}")
        return []
    return decode(text)


def _within(inner: Gap, outer: Gap) -> bool:
    return (
        inner.partition == outer.partition and outer.first <= inner.first and inner.end <= outer.end
    )
