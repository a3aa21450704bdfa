"""Defines what the brokers answered about a topic when a run began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skidway.kafka.source import Source
from skidway.loader.planning.plan import Bounds
from skidway.loader.state.manifest import Gap


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """The brokers' answers about a topic.

    gaps: for each partition, the missing offsets that the mirror has listed (topic config
    `mirror.gaps`). away: for each partition whose leader did not return log start and high
    watermark, the reason.
    """

    name: str
    topic_id: str
    source: Source
    bounds: tuple[Bounds, ...]
    gaps: Mapping[int, tuple[Gap, ...]] = field(default_factory=dict)
    away: Mapping[int, str] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """Returns the registry's subject for the topic's values. If this topic is a mirror, its
        subject is that of the source topic.
        """
        return f"{self.source.topic}-value"
