"""Something that is wrong at present, whichever bucket it concerns."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.audit.explanation.next_command import NextCommand
from skidway.audit.judgement.cause import Cause
from skidway.audit.topic.messages import Tier


@dataclass(frozen=True, slots=True)
class PresentCause:
    """Something that is wrong now. words: what it is, since when and why. clusters: the clusters
    whose records it holds up; none for all clusters. agents: the producers that it holds up; None
    for all of the clusters. host: where the command runs. tier: the tier in which it lies; None if
    it lies in no tier."""

    cause: Cause
    words: str
    clusters: tuple[str, ...]
    command: NextCommand
    since_ms: int | None = None
    agents: frozenset[str] | None = None
    host: str = ""
    tier: Tier | None = None

    def holds_up(self, cluster: str, agent: str | None) -> bool:
        """Whether it holds up records of a cluster. agent: the agent whose records they are; None
        if they are not those of one agent."""
        is_meant = self.agents is None or agent in self.agents
        return (not self.clusters or cluster in self.clusters) and is_meant
