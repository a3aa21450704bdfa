"""Reads the catalog (the cluster's brokers and topics) from ZooKeeper: first all of it, and then
only the nodes that have changed (see `watched_nodes`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from skidway import log
from skidway.broker.catalog import Catalog, LiveBroker, Topic, TopicPartitionInfo
from skidway.broker.coordination import documents, store
from skidway.broker.coordination.documents import DocumentRefused
from skidway.broker.coordination.watched_nodes import WatchedNodes
from skidway.coordination import Coordinator
from skidway.kafka.topic_names import illegal_topic

_BROKERS = "/"  # stands for the list of brokers; no topic can have this name
_log = log.get(__name__)


class CatalogReader:
    """Reads the catalog on the session's thread. When a node has changed, calls `changed` on
    kazoo's thread, so that the catalog is read again.
    """

    def __init__(self, coordinator: Coordinator, changed: Callable[[], None]) -> None:
        self._coordinator = coordinator
        self._nodes = WatchedNodes(coordinator, changed)
        self._topics: dict[str, Topic] = {}

    def forget(self) -> None:
        """Forgets all topics, so that the next `read` reads all of them. Called at the beginning of
        a new session, because a new session has no watches."""
        self._topics = {}

    def read(self, cluster_id: str, broker_id: int, time_ms: int) -> Catalog:
        """Returns the catalog as it is now. Raises Unreachable."""
        with self._nodes.reading() as (client, stale):
            return self._read(client, stale, cluster_id, broker_id, time_ms)

    def _read(
        self, client: Any, stale: set[str], cluster_id: str, broker_id: int, time_ms: int
    ) -> Catalog:
        brokers = self._brokers(client)
        controller = store.claim_controller(self._coordinator, broker_id, time_ms)
        self._nodes.get(client, documents.CONTROLLER, _BROKERS)
        deleting = self._deletions(client)
        topics = {}
        for name in self._nodes.children(client, documents.TOPICS, _BROKERS):
            if name in deleting:
                continue
            known = None if name in stale else self._topics.get(name)
            topic = known or self._topic(client, name)
            if topic is not None:
                topics[name] = topic
        self._topics = topics
        return Catalog(cluster_id, brokers, dict(topics), controller, deleting)

    def _brokers(self, client: Any) -> dict[int, LiveBroker]:
        brokers = {}
        for name in self._nodes.children(client, documents.BROKER_IDS, _BROKERS):
            path = documents.broker_path(name)
            content = self._nodes.get(client, path, _BROKERS)
            if content is None:
                continue
            try:
                broker = documents.read_registration(path, content[0]).broker
            except DocumentRefused as error:
                _log.error("broker_refused", path=path, reason=str(error))
            else:
                brokers[broker.broker_id] = broker
        return brokers

    def _topic(self, client: Any, name: str) -> Topic | None:
        try:
            return self._read_topic(client, name)
        except DocumentRefused as error:
            _log.error("topic_refused", topic=name, reason=str(error))
            # If the node is invalid, keep the topic as it was: a typo in a node must not stop a
            # topic that is in use.
            return self._topics.get(name)

    def _read_topic(self, client: Any, name: str) -> Topic | None:
        if illegal_topic(name) is not None:
            raise DocumentRefused(f"ZooKeeper has a topic with the illegal name {name!r}")
        path = documents.topic_path(name)
        found = self._nodes.get(client, path, name)
        if found is None:
            return None
        topic_id, replicas = documents.read_topic(path, found[0])
        if topic_id is None:
            raise DocumentRefused(f"ZooKeeper's node {path} has no topic_id")
        partitions = {}
        for number, each in replicas.items():
            state_path = documents.state_path(name, number)
            content = self._nodes.get(client, state_path, name)
            state = None if content is None else documents.read_state(state_path, *content)
            partitions[number] = TopicPartitionInfo(each, state)
        config_path = documents.config_path(name)
        settings = self._nodes.get(client, config_path, name)
        configs = {} if settings is None else documents.read_configs(config_path, settings[0])
        return Topic(name, topic_id, partitions, configs)

    def _deletions(self, client: Any) -> dict[str, uuid.UUID | None]:
        found: dict[str, uuid.UUID | None] = {}
        for name in self._nodes.children(client, documents.DELETE_TOPICS, _BROKERS):
            content = self._nodes.get(client, documents.topic_path(name), name)
            try:
                found[name] = (
                    None
                    if content is None
                    else documents.read_topic(documents.topic_path(name), content[0])[0]
                )
            except DocumentRefused:
                found[name] = None
        return found
