"""Commits the offsets up to which topics are loaded, as the offsets of a consumer group. Brokers
need these offsets for the topic config `retention.hold`, which delays the deletion of segments that
the loader has not read. The committed offsets also show people how far the loader has read.
"""

from __future__ import annotations

from skidway import log
from skidway.errors import SkidwayError
from skidway.kafka.client import Client
from skidway.kafka.types import TopicPartition
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.state.manifest import Manifest

_log = log.get(__name__)


class GroupOffsets:
    """The committed offsets of one consumer group. No load depends on them. If a commit fails, this
    run commits no more offsets; the next run commits the offsets of all topics."""

    def __init__(self, client: Client, group_id: str) -> None:
        self._client, self._group_id = client, group_id
        self._has_failed = False

    def tell(self, topic: SourceTopic, newest: Manifest | None) -> None:
        """Commits the offsets at which the newest load ended. Does nothing if the topic was deleted
        and created again after that load.
        """
        if newest is None or newest.topic_id != topic.topic_id or self._has_failed:
            return
        offsets = {
            TopicPartition(topic.name, each.partition): each.end for each in newest.partitions
        }
        if not offsets:
            return
        try:
            self._client.commit_offsets(self._group_id, offsets)
        except SkidwayError as error:
            self._has_failed = True
            _log.warning("offsets_not_committed", topic=topic.name, reason=str(error))
