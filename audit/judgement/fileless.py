"""Finds, without I/O, the sources of which no file was ever found. The seals of their agents say so
(see topic.seal_columns); the agents' notes say which patterns they have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence, TopicEvidence
from skidway.audit.judgement import reasons
from skidway.audit.judgement.rules.topic_facts import CommonFacts, TopicFacts
from skidway.audit.topic.source_report import FilelessSource
from skidway.dataclass import dataclass
from skidway.kafka.source import Source


@dataclass(frozen=True, slots=True)
class Fileless:
    """An agent with a source of a topic that has never matched a file. since_ms: since when. told:
    the sources that its note names."""

    source: Source
    agent: int
    host: str
    since_ms: int
    told: tuple[FilelessSource, ...] = ()

    @property
    def words(self) -> str:
        """Which source has matched no file, where and since when."""
        patterns = ", ".join(path for each in self.told for path in each.paths)
        source = f"source {patterns}" if patterns else "a source"
        since = reasons.of_time(self.since_ms)
        return f"{source} on {self.host or self.agent} has matched no file since {since}"


def of_topic(facts: TopicFacts) -> Iterator[Fileless]:
    """Yields the agents that the audit waits for and that have a source of the topic without
    files."""
    topic = facts.source.topic.removesuffix(REJECTED_SUFFIX)
    for agent in sorted(facts.expectation.agents):
        newest = facts.seals.get(agent, [])[-1:]
        if newest and newest[0].is_fileless and not newest[0].final:
            told = told_by(facts.evidence, agent, topic)
            host, since_ms = facts.evidence.hosts.get(agent, ""), newest[0].sealed_until
            yield Fileless(facts.source, agent, host, since_ms, told)


def of_evidence(common: CommonFacts) -> list[Fileless]:
    """Returns the sources without files of all topics, but not those of rejects."""
    found: list[Fileless] = []
    for source, topic in common.evidence.topics.items():
        if not source.topic.endswith(REJECTED_SUFFIX) and _may_be(topic):
            found += of_topic(TopicFacts(common, source))
    return found


def told_by(evidence: Evidence, agent: int, topic: str) -> tuple[FilelessSource, ...]:
    """Returns the sources of a topic that have never matched a file, as the agent's note has
    them."""
    report = evidence.source_reports.get(agent)
    sources: Sequence[FilelessSource] = () if report is None else report.fileless
    return tuple(x for x in sources if x.topic == topic and x.since_ms is not None)


def _may_be(topic: TopicEvidence) -> bool:
    return any(seals and seals[-1].is_fileless for seals in topic.seals.values())
