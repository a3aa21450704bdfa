"""Says for reports what agents cannot read: sources without files, and paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.judgement import fileless
from skidway.audit.judgement.clocks import present_ms
from skidway.audit.judgement.fileless import Fileless
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.rules.topic_facts import CommonFacts
from skidway.audit.reports.topic_names import topic_name
from skidway.audit.topic.messages import Tier
from skidway.dataclass import dataclass
from skidway.kafka.source import Source

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Unread:
    """What agents cannot read. fileless: the sources that have never matched a file; their topics
    are unknown. held: sentences about paths that hold a seal. others: about paths that hold none,
    and about sources that matched a file before."""

    fileless: tuple[Fileless, ...]
    held: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def sentences(self) -> list[str]:
        """A sentence for each of the first sources and paths."""
        return [*_first(self.held), *self.beside]

    @property
    def beside(self) -> list[str]:
        """The sentences without those about paths that hold a seal, which are told as causes (see
        explanation.present_causes)."""
        said = [f"{topic_name(x.source)} is unknown: {x.words}." for x in self.fileless[:SHOWN]]
        if self.fileless:
            more = len(self.fileless) - SHOWN
            others = f"{more:,} more sources have no file. " if more > 0 else ""
            said.append(f"{others}If such a log may be missing, set optional: true for its source.")
        return [*said, *_first(self.others)]


def unread(
    evidence: Evidence,
    policy: Policy,
    now_ms: int,
    is_meant: Callable[[Source], bool] | None = None,
) -> Unread:
    """Returns what agents cannot read now. Agents that are silent say nothing about paths.
    is_meant: whether a topic is asked for; None if all topics are."""
    common = CommonFacts(evidence, policy, present_ms(evidence, policy, now_ms))
    missing = [x for x in fileless.of_evidence(common) if is_meant is None or is_meant(x.source)]
    heard = (
        agent
        for agent in sorted(evidence.source_reports)
        if now_ms - evidence.heard_ms((Tier.AGENT, str(agent))) <= policy.silence_ms
    )
    said = [x for agent in heard for x in _of_agent(evidence, agent)]
    meant = [x for x in said if is_meant is None or is_meant(x[0])]
    held, others = ([words for _, holds, words in meant if holds is x] for x in (True, False))
    return Unread(tuple(missing), tuple(held), tuple(others))


def _first(said: Sequence[str]) -> list[str]:
    more = len(said) - SHOWN
    named = [f"Agents name {more:,} more such paths and sources."] if more > 0 else []
    return [*said[:SHOWN], *named]


def _of_agent(evidence: Evidence, agent: int) -> Iterator[tuple[Source, bool, str]]:
    """Yields the topic of each path and source that the agent names, whether it holds the seal, and
    a sentence."""
    report = evidence.source_reports[agent]
    host = evidence.hosts.get(agent, "") or str(agent)
    topics = {x.topic: x for x, topic in evidence.topics.items() if agent in topic.agents}
    for path in report.unread:
        held = ", and does not seal the topic" if path.holds else ""
        if path.topic in topics:
            yield topics[path.topic], path.holds, f"{path.topic} on {host}: {path.words}{held}."
    for source in report.fileless:
        if source.since_ms is None and source.topic in topics:
            yield topics[source.topic], False, f"{source.topic} on {host}: {source.words}."
