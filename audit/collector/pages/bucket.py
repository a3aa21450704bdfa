"""The page of a bucket, and the list of buckets. The page shows the flow of the records through the
tiers, why the bucket is not complete and what to do next, its history, and its hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.table import Cell, Column, Rows, Table
from skidway.audit.collector.pages.why import Why, accepted, whys
from skidway.audit.counts.counts import Sums
from skidway.audit.explanation.document import Acceptance, acceptance
from skidway.audit.explanation.explanation import Explanation
from skidway.audit.judgement.verdict import AgentVerdict, BucketVerdict, Place, Status
from skidway.audit.judgement.verdicts_of_agents import GravestFirst
from skidway.audit.reports import report
from skidway.audit.reports.latencies import ByPlace, latencies_ms
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

PAGE_BUCKETS = 60
AGENTS_SHOWN = 100
"""The page of a bucket shows at most this many hosts. Hosts whose records are not complete come
first."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one place counted in the bucket; records flow from place to place. count: the number of
    records; None if the place never reported the topic. short: how many fewer records this place
    has than the place with the most records. latency: in words, how long after the bucket's end
    this place first had all records; "" if the place lacks records, or if the time is not known.
    """

    tier: str
    place: str
    count: int | None
    short: int
    bytes: int
    rejects: int
    repeats: int
    is_retired: bool
    latency: str = ""


@dataclass(frozen=True, slots=True)
class BucketPage:
    """One bucket. acceptance: the command that accepts the bucket; None if the bucket cannot be
    accepted yet. alike: how many of the next buckets have the same causes as this bucket; the
    command accepts them, too. latency: a sentence that says how long after its end the bucket was
    first complete, or that it is not complete. changes: the lines of the history, the oldest first.
    """

    name: str
    bucket: int
    bucket_ms: int
    status: str
    word: str
    steps: tuple[Step, ...]
    whys: tuple[Why, ...]
    acceptance: Acceptance | None
    alike: int
    accepted: tuple[str, ...]
    latency: str
    changes: tuple[str, ...]
    agents: Table
    filtered: Table


def bucket_page(
    verdict: BucketVerdict,
    name: str,
    now_ms: int,
    explanations: Sequence[Explanation],
    alike: int = 0,
    complete_ms: int | None = None,
    changes: Sequence[str] = (),
    arrivals: ByPlace = MappingProxyType({}),
    explained: BucketVerdict | None = None,
) -> BucketPage:
    """Returns the page of one bucket. explanations: the causes why the bucket is not complete.
    alike: how many buckets after this bucket have the same causes. complete_ms: when the bucket was
    first complete; None if the history does not say. changes: the lines of the bucket's history.
    arrivals: since when each place has had its present count. explained: a copy of the verdict that
    has only the agents whose findings the page explains; None if the page explains the findings of
    all agents.
    """
    explained = explained or verdict
    return BucketPage(
        name,
        verdict.bucket,
        verdict.bucket_ms,
        words.colour(verdict),
        words.word(verdict),
        tuple(steps(verdict, arrivals)),
        whys(explained, explanations),
        acceptance(explanations),
        alike,
        accepted(explained),
        _latency(verdict, complete_ms, now_ms),
        tuple(changes),
        agents_table(verdict, len(explained.agents)),
        filtered_table(verdict),
    )


def steps(verdict: BucketVerdict, arrivals: ByPlace) -> Iterable[Step]:
    """Yields, for each place, what it counted in the bucket (a `Step`), in the order in which
    records pass through the places."""
    latencies = latencies_ms(verdict, arrivals)
    found = sorted(verdict.places().items(), key=lambda x: (list(Tier).index(x[0].tier), x[0].name))
    most = max((sums.count for _, sums in found if sums is not None), default=0)
    for place, sums in found:
        tier = place.tier.value.lower()
        if sums is None:
            yield Step(tier, place.name, None, most, 0, 0, 0, place.is_retired)
        else:
            yield Step(
                tier, place.name, sums.count, most - sums.count, sums.bytes, sums.rejects,
                sums.repeats, place.is_retired,
                _after(latencies[place]),
            )  # fmt: skip


def _after(after_ms: int | None) -> str:
    """Returns in words when records arrived: `after_ms` after the bucket's end. Returns "" if
    `after_ms` is None."""
    if after_ms is None:
        return ""
    return f"after {words.duration(after_ms / 1000)}" if after_ms > 0 else "before its end"


def agents_table(verdict: BucketVerdict, explained: int | None = None) -> Table:
    """Returns a table with a row for each agent: how many of its records each place counted. Agents
    whose records are not complete come first. explained: the number of agents whose findings the
    page explains; None if the page explains the findings of all agents.
    """
    agents, count = GravestFirst(verdict.agents), len(verdict.agents)
    note = ""
    if explained is not None and explained < count:
        note = f"The causes above are those of the {explained:,} gravest of {count:,} hosts."
    places = sorted(verdict.places(), key=lambda x: (list(Tier).index(x.tier), x.name))
    return Table(
        "agents",
        "What each place counted of each agent",
        (
            Column("host", "Host"),
            Column("agent", "Agent", rank=4),
            Column("verdict", "Verdict"),
            *(Column(_place_key(x), _place_title(x, places), "number") for x in places),
            Column("why", "Why", rank=2),
        ),
        Rows(agents, lambda x: _agent_row(x, places)),
        shown_max=AGENTS_SHOWN,
        note=note,
        title="By host",
    )


def buckets_table(
    found: Sequence[BucketVerdict], names: Mapping[Source, str], tiers: Sequence[Tier]
) -> Table:
    """Returns a table with a row for each bucket, the newest first. Buckets with the same start are
    in the order of `found`."""
    return Table(
        "buckets",
        "Buckets, the newest first",
        (
            Column("topic", "Topic"),
            Column("bucket", "Bucket", "time"),
            Column("verdict", "Verdict"),
            *(Column(x.value.lower(), x.value.lower(), "number", 2) for x in tiers),
            Column("why", "Why"),
        ),
        tuple(
            _bucket_row(x, names[x.source], tiers)
            for x in sorted(found, key=lambda x: x.bucket, reverse=True)
        ),
        empty="No bucket with records here.",
        shown_max=PAGE_BUCKETS * 20,
    )


def _bucket_row(verdict: BucketVerdict, name: str, tiers: Sequence[Tier]) -> tuple[Cell, ...]:
    href = words.link("/buckets", topic=name, bucket=verdict.bucket)
    return (
        Cell(name, href=words.link("/buckets", topic=name)),
        Cell(words.moment(verdict.bucket), verdict.bucket, href),
        Cell(words.word(verdict), status=words.colour(verdict)),
        *(_count(verdict.count(tier)) for tier in tiers),
        Cell(report.reasons_text(verdict.words), list(verdict.words)),
    )


def _count(count: int | None) -> Cell:
    return Cell("never reported") if count is None else Cell(f"{count:,}", count)


def _agent_row(agent: AgentVerdict, places: Sequence[Place]) -> tuple[Cell, ...]:
    found = [(place, agent.sums.get(place)) for place in places]
    most = max((sums.count for _, sums in found if sums is not None), default=0)
    return (
        Cell(agent.host + (" (retired)" if agent.retired else ""), agent.host),
        Cell(str(agent.agent), agent.agent),
        Cell(agent.status.word, status=agent.status.word),
        *(_agent_count(sums, most, is_retired=place.is_retired) for place, sums in found),
        Cell("; ".join(agent.reasons), list(agent.reasons)),
    )


def _agent_count(sums: Sums | None, most: int, *, is_retired: bool) -> Cell:
    if sums is None:
        return Cell("never reported")
    is_short = sums.count < most and not is_retired
    return Cell(f"{sums.count:,}", sums.count, status=Status.INCOMPLETE.word if is_short else "")


def _place_key(place: Place) -> str:
    return f"{place.tier.value.lower()} {place.name}".strip()


def _place_title(place: Place, places: Sequence[Place]) -> str:
    """Returns the tier as the title of a column, and the place's name if the tier has several
    places."""
    is_alone = sum(x.tier is place.tier for x in places) == 1
    title = place.tier.value.lower() if is_alone else _place_key(place)
    return title + (" (retired)" if place.is_retired else "")


def filtered_table(verdict: BucketVerdict) -> Table:
    """Returns a table with a row for each rule by which agents left out records."""
    return Table(
        "filtered",
        "Left out by rules of the agents",
        (
            Column("rule", "Rule"),
            Column("records", "Records", "number"),
            Column("bytes", "Bytes", "number"),
        ),
        tuple(
            (Cell(x.rule), Cell(f"{x.records:,}", x.records), Cell(f"{x.bytes:,}", x.bytes))
            for x in verdict.filtered
        ),
    )


def _latency(verdict: BucketVerdict, complete_ms: int | None, now_ms: int) -> str:
    end = verdict.bucket + verdict.bucket_ms
    if complete_ms is not None:
        return f"First complete {words.duration((complete_ms - end) / 1000)} after its end."
    if verdict.status is Status.COMPLETE:
        return "Complete; the history does not say since when."
    return f"Not complete {words.duration((now_ms - end) / 1000)} after its end."
