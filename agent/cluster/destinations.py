"""The topics to which the agent sends a source's lines, as cluster and registry describe them
now."""

from __future__ import annotations

from skidway.agent.batches.parsers import framer_of
from skidway.agent.batches.source_recipes import big_endian
from skidway.agent.files.patterns import patterns_of
from skidway.agent.files.sources import Manner, TailedSource
from skidway.agent.recipe import Recipe
from skidway.agent.settings import ReplaySource, SourceSettings
from skidway.agent.values.labels import LabelSource
from skidway.dataclass import dataclass
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
    """One source with its recipe (which decides which records its lines become). data, rejected:
    the topics of its records and of its rejected lines, as audit messages name them.
    """

    settings: SourceSettings
    recipe: Recipe
    data: Source
    rejected: Source

    @property
    def recipe_of_big_endian(self) -> Recipe | None:
        """The recipe for files that begin with a big-endian byte order mark; None if the source's
        encoding is not `utf-16`.
        """
        return big_endian(self.settings, self.recipe)

    def tailed(self) -> TailedSource:
        """Returns what the tracker has to know about this destination (a source with its topics):
        which files belong to it, and how they are read."""
        multiline = self.settings.multiline
        other = self.recipe_of_big_endian
        return TailedSource(
            topic=self.data.topic,
            topic_id=self.data.topic_id,
            patterns=patterns_of(self.settings.paths, self.settings.exclude),
            recipe=self.recipe.fingerprint,
            framer=framer_of(self.recipe),
            flush_s=None if multiline is None else multiline.timeout_ms / 1000,
            ignore_older_ms=self.settings.ignore_older_ms,
            starts_at_end=self.settings.start_at == "end",
            big_endian=None if other is None else Manner(other.fingerprint, framer_of(other)),
            labels=label_source(self.settings),
            deleted_after_ms=self.settings.deleted_after_ms,
            optional=self.settings.optional,
        )


def label_source(settings: SourceSettings) -> LabelSource | None:
    """Returns where the labels of a source's records come from; None if the records have no labels.
    Also returns None for a `ReplaySource`, because the files of replays belong to no pod.
    """
    labels = settings.labels
    if labels is None or isinstance(settings, ReplaySource):
        return None
    return LabelSource(str(labels.location), tuple(sorted({*labels.fields.values()})))
