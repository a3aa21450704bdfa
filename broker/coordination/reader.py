"""Reads the catalog (the cluster's brokers and topics) from ZooKeeper: first all of it, and then
only the nodes that have changed. ZooKeeper's watches say which nodes these are. A watch fires only
once, and reading the node sets the watch again. So no change is missed, and a node that changes
twice before the next read is read only once. If a read fails before it is complete, the next read
reads the changed nodes again.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable
from typing import Any

from kazoo.exceptions import NoNodeError

from skidway import log
from skidway.broker.catalog import Catalog, LiveBroker, Topic, TopicPartitionInfo
from skidway.broker.coordination import documents, store
from skidway.broker.coordination.answers import answered
from skidway.broker.coordination.documents import DocumentRefused
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
        self._changed = changed
        self._topics: dict[str, Topic] = {}
        # Kazoo's thread fills `_stale`, and the session's thread empties it. No lock is needed,
        # because each operation of a deque is atomic.
        self._stale: deque[str] = deque()
        self._watches: dict[str, Callable[[Any], None]] = {}

    def forget(self) -> None:
        """Forgets all topics, so that the next `read` reads all of them. Called at the beginning of
        a new session, because a new session has no watches."""
        self._topics = {}

    def read(self, cluster_id: str, broker_id: int, time_ms: int) -> Catalog:
        """Returns the catalog as it is now. Raises Unreachable."""
        stale = {self._stale.popleft() for _ in range(len(self._stale))}
        try:
            with answered(self._coordinator) as client:
                return self._read(client, stale, cluster_id, broker_id, time_ms)
        except BaseException:
            # The next read must read these nodes, because their watches do not fire again.
            self._stale.extend(stale)
            raise

    def _read(
        self, client: Any, stale: set[str], cluster_id: str, broker_id: int, time_ms: int
    ) -> Catalog:
        brokers = self._brokers(client)
        controller = store.claim_controller(self._coordinator, broker_id, time_ms)
        self._get(client, documents.CONTROLLER, _BROKERS)
        deleting = self._deletions(client)
        topics = {}
        for name in self._children(client, documents.TOPICS):
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
        for name in self._children(client, documents.BROKER_IDS):
            path = documents.broker_path(name)
            content = self._get(client, path, _BROKERS)
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
        found = self._get(client, path, name)
        if found is None:
            return None
        topic_id, replicas = documents.read_topic(path, found[0])
        if topic_id is None:
            raise DocumentRefused(f"ZooKeeper's node {path} has no topic_id")
        partitions = {}
        for number, each in replicas.items():
            state_path = documents.state_path(name, number)
            content = self._get(client, state_path, name)
            state = None if content is None else documents.read_state(state_path, *content)
            partitions[number] = TopicPartitionInfo(each, state)
        config_path = documents.config_path(name)
        settings = self._get(client, config_path, name)
        configs = {} if settings is None else documents.read_configs(config_path, settings[0])
        return Topic(name, topic_id, partitions, configs)

    def _deletions(self, client: Any) -> dict[str, uuid.UUID | None]:
        found: dict[str, uuid.UUID | None] = {}
        for name in self._children(client, documents.DELETE_TOPICS):
            content = self._get(client, documents.topic_path(name), name)
            try:
                found[name] = (
                    None
                    if content is None
                    else documents.read_topic(documents.topic_path(name), content[0])[0]
                )
            except DocumentRefused:
                found[name] = None
        return found

    def _children(self, client: Any, path: str) -> list[str]:
        client.ensure_path(path)
        return sorted(client.retry(client.get_children, path, watch=self._watch(_BROKERS)))

    def _get(self, client: Any, path: str, name: str) -> tuple[bytes, int] | None:
        watch = self._watch(name)
        try:
            data, status = client.retry(client.get, path, watch=watch)
        except NoNodeError:
            if client.retry(client.exists, path, watch=watch) is not None:
                self._stale.append(name)
                self._changed()
            return None
        return data, status.version

    def _watch(self, name: str) -> Callable[[Any], None]:
        """Returns the function that kazoo calls when a node that belongs to `name` has changed.
        `name` is a topic, or `_BROKERS`. For the same name, always returns the same function: kazoo
        keeps the functions of a node in a set, so each change of the node causes only one call,
        even if the node was read several times.
        """
        watch = self._watches.get(name)
        if watch is None:

            def watch(_event: Any) -> None:
                self._stale.append(name)
                self._changed()

            self._watches[name] = watch
        return watch
