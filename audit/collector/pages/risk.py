"""The table of what is at risk: bytes that only a host has, records that a later tier does not have
yet, and hosts without a recent seal.

First come the rows for which the time of loss is known (the time at which the row's bytes or
records will be lost). These rows are sorted by this time. All other rows follow, the oldest first,
because rotation and retention delete the oldest data first.
"""

from __future__ import annotations

from collections.abc import Iterator

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.hosts import next_step
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.collector.risks import HostRisk, TierRisk, host_risks, tier_risks
from skidway.audit.explanation.next_command import command_of
from skidway.audit.explanation.present_causes import nearest
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause, Run
from skidway.audit.judgement.hosts import MISSED, HostState
from skidway.audit.judgement.verdict import Place
from skidway.audit.topic.messages import Tier

SHOWN = 6
UNSEALED_MS = 60_000
"""The table names a host if the host's newest seal is older than the sum of `lateness.ms` and this
time.
"""

COLUMNS = (
    Column("what", "What"),
    Column("left", "Time left", "time"),
    Column("bytes", "Bytes", "number"),
    Column("since", "Since", "time", 3),
    Column("lacking", "Not yet in", rank=4),
    Column("records", "Records", "number", 4),
    Column("where", "Lies only", "path", 2),
    Column("command", "Next", "code"),
)

_CAUSES = {Tier.BROKER: Cause.COUNTER_STOPPED, Tier.MIRROR: Cause.MIRROR_BEHIND}
"""The cause if records are not in a tier yet, unless it follows from a cause nearer to the source
of trouble."""
_RUNS = {Tier.MIRROR: Run("mirror", "mirror status"), Tier.HDFS: Run("loader", "load status")}

Row = tuple[Cell, ...]
Order = tuple[bool, int]


def table(facts: Facts) -> Table:
    """Returns the rows of what is at risk, in the order that the module's docstring describes."""
    found = [*_tier_rows(facts), *_host_rows(facts)]
    found.sort(key=lambda x: x[0])
    rebuilding = facts.evidence.rebuilding
    return Table(
        "at_risk",
        "Not yet in every tier, or not vouched for: what is lost first, then the oldest",
        COLUMNS,
        tuple(row for _, row in found),
        empty=f"Not known: {reasons.of_rebuilding(rebuilding)}."
        if rebuilding
        else f"{facts.as_of}Nothing: every tier has what the newest minutes have, and every host "
        "has vouched.",
        shown_max=SHOWN,
        note=_unsafe_words(facts),
    )


def unproven(facts: Facts) -> list[HostState]:
    """Returns the expected hosts whose newest seal is too old; the oldest seal comes first. A host
    that never sent a seal comes before all others. The list is empty while the store is being
    rebuilt, because the store may not have the newest seals yet."""
    if facts.evidence.rebuilding:
        return []
    limit = facts.now_ms - facts.policy.lateness_ms - UNSEALED_MS
    late = [x for x in facts.hosts if x.expected and (x.sealed_until or 0) < limit]
    return sorted(late, key=lambda x: x.sealed_until or 0)


def _tier_rows(facts: Facts) -> Iterator[tuple[Order, Row]]:
    for found in tier_risks(facts.topics, facts.policy, facts.kept):
        yield _order(found.loss_ms, found.since), _tier_row(facts, found)


def _host_rows(facts: Facts) -> Iterator[tuple[Order, Row]]:
    """Yields a row for each host and topic, if the host has bytes of the topic at risk. Then yields
    a row for each other host that has no recent seal.
    """
    if facts.evidence.rebuilding:
        return
    named = set()
    for found in host_risks(facts.hosts, facts.backlogs, facts.now_ms):
        named.add((found.host.cluster, found.host.host))
        since = found.topic.oldest_ms or found.host.sealed_until or 0
        yield _order(found.topic.loss_ms, since), _backlog_row(facts, found)
    for state in unproven(facts):
        if (state.cluster, state.host) not in named:
            yield _order(None, state.sealed_until or 0), _host_row(facts, state)


def _order(loss_ms: int | None, since: int) -> Order:
    return loss_ms is None, since if loss_ms is None else loss_ms


def _tier_row(facts: Facts, found: TierRisk) -> Row:
    name = facts.names[found.source]
    return (
        Cell(name, href=words.link("/buckets", topic=name)),
        _left(found.loss_ms, facts.now_ms),
        Cell(words.size(found.bytes), found.bytes),
        Cell(words.near(found.since, facts.now_ms), found.since),
        Cell(", ".join(x.value.lower() for x in found.tiers)),
        Cell(f"{found.records:,}", found.records),
        Cell("" if found.holder is None else _place_words(found.holder)),
        Cell(_tier_command(facts, found)),
    )


def _tier_command(facts: Facts, found: TierRisk) -> str:
    tier, cluster, programs = found.tiers[0], found.source.cluster, facts.programs
    nearer = nearest(facts.present, _CAUSES.get(tier, Cause.LOAD_NOT_RUN), cluster, None)
    if nearer is not None:
        return str(nearer.command)
    if tier is Tier.BROKER:
        return programs.counter("status", tier, "", (cluster,))
    run = _RUNS[tier]
    return str(command_of(programs, run, "", cluster if tier is Tier.MIRROR else ""))


def _backlog_row(facts: Facts, found: HostRisk) -> Row:
    """Returns the row of a topic with unsafe bytes (bytes that no broker has acknowledged) on a
    host. If the host is silent or behind, it may have more unsafe bytes by now, so the number of
    bytes gets the sign "≥".
    """
    topic, state = found.topic, found.host
    since = topic.oldest_ms
    path = topic.files[0].path if topic.files else ""
    is_old = state.status in MISSED
    return (
        Cell(f"{found.cluster}.{topic.topic} on {state.host}", href=_link(state)),
        _left(topic.loss_ms, facts.now_ms),
        Cell(f"{'≥ ' if is_old else ''}{words.size(topic.bytes)}", topic.bytes),
        Cell("unknown" if since is None else words.near(since, facts.now_ms), since),
        Cell("broker"),
        Cell("unknown"),
        Cell(f"{state.host}: {path}" if path else state.host),
        Cell(_command(facts, state)),
    )


def _host_row(facts: Facts, state: HostState) -> Row:
    since = state.sealed_until
    return (
        Cell(f"host {state.host}", href=_link(state)),
        _left(None, facts.now_ms),
        Cell("unknown" if not _has_told(facts, state) else "none told"),
        Cell("never vouched" if since is None else words.near(since, facts.now_ms), since),
        Cell("unknown"),
        Cell("unknown"),
        Cell(state.host),
        Cell(_command(facts, state)),
    )


def _has_told(facts: Facts, state: HostState) -> bool:
    """Returns whether the host reports, and all its agents have reported their backlogs (how many
    bytes no broker has acknowledged)."""
    is_heard = state.status not in MISSED
    return is_heard and all(x.agent in facts.backlogs for x in state.agents)


def _left(loss_ms: int | None, now_ms: int) -> Cell:
    if loss_ms is None:
        return Cell("not known")
    left_s = (loss_ms - now_ms) / 1000
    return Cell("none" if left_s <= 0 else words.duration(left_s), round(max(left_s, 0)))


def _unsafe_words(facts: Facts) -> str:
    """Returns a sentence about all bytes that no broker has acknowledged, as agents have reported
    them. These bytes include those of the last seconds, which the table leaves out.
    """
    expected = {x.agent for state in facts.hosts if state.expected for x in state.agents}
    told = [found.bytes for agent, (_, found) in facts.backlogs.items() if agent in expected]
    silent = len(expected) - len(told)
    said = f"Bytes that no broker has acknowledged yet: {words.size(sum(told))} on"
    said += f" {words.counted(sum(1 for x in told if x), 'host')}"
    return said + (f"; {words.counted(silent, 'agent')} did not tell." if silent else ".")


def _place_words(place: Place) -> str:
    return "hosts" if place.tier is Tier.AGENT else f"{place.tier.value.lower()} {place.name}"


def _link(state: HostState) -> str:
    return words.link("/hosts", q=state.host)


def _command(facts: Facts, state: HostState) -> str:
    """Returns the command to run next, to find out why a host has bytes at risk or no recent seal.
    For a host that does not report, or is behind, it is the same command as in the table of silent
    hosts."""
    if state.status in MISSED:
        return next_step(facts, state)
    run = Run("agent", "agent state show")
    return str(command_of(facts.programs, run, state.host, state.cluster or ""))
