"""What every topic of a run shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skidway.clock import Clock
from skidway.kafka.client import Client
from skidway.loader.audit_topic.feed import Feed, read_on
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import SparkRunner
from skidway.loader.store import Store
from skidway.schemas.client import RegistryClient


@dataclass(frozen=True, slots=True)
class Parts:
    """One of each for the whole run. audit_topics: what the feed is read from."""

    settings: LoaderSettings
    client: Client
    registry: RegistryClient
    store: Store
    spark: SparkRunner
    clock: Clock
    feed: Feed
    cluster_id: str
    audit_topics: Sequence[str]

    def read_on(self) -> None:
        """Reads the feed to the end of its topics."""
        read_on(self.client, self.audit_topics, self.feed, self.clock)
