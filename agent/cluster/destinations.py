"""The topics to which the agent sends a source's lines, as cluster and registry describe them
now."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.agent.batches.recipe import Recipe, framer_of
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.sources import TailedSource
from skidway.agent.settings import SourceSettings
from skidway.kafka.source import Source


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster that takes the records. name: its `cluster.name`; id: the id that the cluster
    reports.
    """

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class Destination:
    """One source with its recipe. data, rejected: the topics of its records and of its rejected
    lines, as audit messages name them.
    """

    settings: SourceSettings
    recipe: Recipe
    data: Source
    rejected: Source

    def tailed(self) -> TailedSource:
        """The part of this destination that the tracker needs."""
        exclude, multiline = tuple(self.settings.exclude), self.settings.multiline
        return TailedSource(
            topic=self.data.topic,
            topic_id=self.data.topic_id,
            patterns=tuple(Pattern(path, exclude) for path in self.settings.paths),
            recipe=self.recipe.fingerprint,
            framer=framer_of(self.recipe),
            flush_s=None if multiline is None else multiline.timeout_ms / 1000,
        )
