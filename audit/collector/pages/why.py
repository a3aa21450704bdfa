"""Lists the causes why a bucket is not complete, and what to do next, for the bucket's page.

Many hosts may have the same problem. So explanations with the same cause, place, file and command
become one entry, which lists the reason of each host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from skidway.audit.collector.pages import words
from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.explanation.explanation import Explanation
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Status
from skidway.audit.topic.messages import Tier

WORDS_SHOWN = 5
RANGES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Why:
    """One entry of the list of causes. status: the verdict that the cause leads to; "warned" if the
    cause changes no verdict. says: the first reasons, at most WORDS_SHOWN, each of which names its
    host. more: how many reasons are left out. where: tier, place, host, path, bytes and offsets, as
    far as they are known. command: the command to run next; "" if a person can only accept the
    bucket.
    """

    status: str
    cause: str
    meaning: str
    says: tuple[str, ...]
    more: int
    where: tuple[tuple[str, str], ...]
    command: str


def whys(verdict: BucketVerdict, found: Sequence[Explanation]) -> tuple[Why, ...]:
    """Returns the entries, the gravest cause first. If causes are equally grave, the cause in the
    earlier tier comes first.
    """
    names = {x.agent: x.name for x in verdict.agents}
    groups: dict[tuple[object, ...], list[Explanation]] = {}
    for each in found:
        repair = each.repair.line if each.repair and each.place else each.repair
        key = (each.cause, each.status, each.tier, each.place, each.file, each.path, repair)
        groups.setdefault(key, []).append(each)
    ordered = sorted(groups.values(), key=lambda x: (-x[0].status, _rank(x[0].tier)))
    return tuple(_why(each, names) for each in ordered)


def accepted(verdict: BucketVerdict) -> tuple[str, ...]:
    """Returns sentences about the findings and warnings that people accepted. Each sentence says
    who accepted the finding or warning, and why.
    """
    return tuple(dict.fromkeys(x.words for x in _findings(verdict) if x.acceptance is not None))


def _findings(verdict: BucketVerdict) -> Iterator[Finding]:
    yield from verdict.findings
    yield from verdict.warnings
    for agent in verdict.agents:
        yield from agent.findings


def _rank(tier: Tier | None) -> int:
    return -1 if tier is None else list(Tier).index(tier)


def _why(found: Sequence[Explanation], names: Mapping[int, str]) -> Why:
    first = found[0]
    said = dict.fromkeys(_said(x, names) for x in found)
    status = words.WARNED if first.status is Status.COMPLETE else first.status.word
    return Why(
        status,
        first.cause.value,
        first.meaning,
        tuple(said)[:WORDS_SHOWN],
        max(len(said) - WORDS_SHOWN, 0),
        tuple(_where(found)),
        str(first.repair or ""),
    )


def _said(found: Explanation, names: Mapping[int, str]) -> str:
    name = names.get(found.agent or NO_AGENT)
    return found.words if name is None else f"{name}: {found.words}"


def _where(found: Sequence[Explanation]) -> Iterator[tuple[str, str]]:
    first = found[0]
    if first.tier is not None:
        yield "tier", f"{first.tier.value.lower()} {first.place}".rstrip()
    hosts = list(dict.fromkeys(x.host for x in found if x.host))
    if hosts:
        more = f" and {len(hosts) - WORDS_SHOWN} more" if len(hosts) > WORDS_SHOWN else ""
        yield ("host" if len(hosts) == 1 else "hosts"), ", ".join(hosts[:WORDS_SHOWN]) + more
    if first.path:
        yield "path", first.path
    if first.file is not None:
        yield "file", str(first.file)
    ranges = list(dict.fromkeys(x for each in found for x in each.ranges))
    for part in ranges[:RANGES_SHOWN]:
        yield "bytes", f"{part.first:,} to {'its end' if part.end is None else f'{part.end:,}'}"
    offsets = list(dict.fromkeys(x for each in found for x in each.offsets))
    for span in offsets[:RANGES_SHOWN]:
        yield f"offsets of partition {span.partition}", f"{span.first:,} to {span.end:,}"
    if (left := len(ranges) + len(offsets) - 2 * RANGES_SHOWN) > 0:
        yield "further ranges", f"{left:,}"
