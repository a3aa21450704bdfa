"""Says for reports what agents cannot read: sources without files, and paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

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
    and about sources that matched a file before. hosts: the hosts that lack a log: whose agents
    have a path that holds a seal, or a source without files."""

    fileless: tuple[Fileless, ...]
    held: tuple[str, ...]
    others: tuple[str, ...]
    hosts: tuple[str, ...] = ()

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
    heard = [
        agent
        for agent in sorted(evidence.source_reports)
        if now_ms - evidence.heard_ms((Tier.AGENT, str(agent))) <= policy.silence_ms
    ]
    said = [x for agent in heard for x in _of_agent(evidence, agent)]
    meant = [x for x in said if is_meant is None or (x.source is not None and is_meant(x.source))]
    held, others = ([x.words for x in meant if x.holds is holds] for holds in (True, False))
    hosts = {x.host for x in meant if x.lacks} | {x.host or str(x.agent) for x in missing}
    return Unread(tuple(missing), tuple(held), tuple(others), tuple(sorted(hosts)))


def _first(said: Sequence[str]) -> list[str]:
    more = len(said) - SHOWN
    named = [f"Agents name {more:,} more such paths and sources."] if more > 0 else []
    return [*said[:SHOWN], *named]


class _Said(NamedTuple):
    """A path or a source that an agent names. source: its topic; None if nothing of the topic was
    ever sealed or counted. holds: whether it holds the topic's seal. lacks: whether a log is not
    read because of it. words: a sentence."""

    host: str
    source: Source | None
    holds: bool
    lacks: bool
    words: str


def _of_agent(evidence: Evidence, agent: int) -> Iterator[_Said]:
    report = evidence.source_reports[agent]
    host = evidence.hosts.get(agent, "") or str(agent)
    topics = {x.topic: x for x, topic in evidence.topics.items() if agent in topic.agents}
    for path in report.unread:
        held = ", and does not seal the topic" if path.holds else ""
        words = f"{path.topic} on {host}: {path.words}{held}."
        yield _Said(host, topics.get(path.topic), path.holds, path.holds, words)
    for source in report.fileless:
        if source.since_ms is None:
            words = f"{source.topic} on {host}: {source.words}."
            yield _Said(host, topics.get(source.topic), False, True, words)
