"""Defines the objects that all topics of a run share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skidway.audit.signing.signer import Signer
from skidway.clock import Clock
from skidway.kafka.client import Client
from skidway.loader.audit_topic.feed import Feed, read_on
from skidway.loader.complete_hours.collector import Collector
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import SparkRunner
from skidway.loader.store import Store
from skidway.schemas.client import RegistryClient


@dataclass(frozen=True, slots=True)
class Parts:
    """The objects of a run that all its topics use. feed: the audit messages that were read so far,
    by this run or, with `--every`, by earlier runs. audit_topics: the names of the audit topics
    that the run reads. collector: the audit's collector; None if the run writes no `_SUCCESS`.
    signer: signs the loader's audit messages; None if the loader has no key.
    """

    settings: LoaderSettings
    client: Client
    registry: RegistryClient
    store: Store
    spark: SparkRunner
    clock: Clock
    feed: Feed
    cluster_id: str
    audit_topics: Sequence[str]
    collector: Collector | None = None
    signer: Signer | None = None

    def read_on(self) -> None:
        """Reads the new messages of the audit topics into the feed."""
        read_on(self.client, self.audit_topics, self.feed, self.clock, self.signer)
