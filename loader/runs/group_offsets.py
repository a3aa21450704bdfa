"""How far is loaded, as the committed offsets of a group: for `retention.hold`, and for people."""

from __future__ import annotations

from skidway import log
from skidway.errors import SkidwayError
from skidway.kafka.client import Client
from skidway.kafka.types import TopicPartition
from skidway.loader.planning.topic import Topic
from skidway.loader.state.manifest import Manifest

_log = log.get(__name__)


class GroupOffsets:
    """Tells the brokers. Nothing depends on it: what cannot be told is told with the next run. A
    run that waited for brokers in vain does not wait for them again."""

    def __init__(self, client: Client, group_id: str) -> None:
        self._client, self._group_id = client, group_id
        self._in_vain = False

    def tell(self, topic: Topic, newest: Manifest | None) -> None:
        """Commits the ends of the newest load, if it is of this topic and not of a former one."""
        if newest is None or newest.topic_id != topic.topic_id or self._in_vain:
            return
        offsets = {
            TopicPartition(topic.name, each.partition): each.end for each in newest.partitions
        }
        if not offsets:
            return
        try:
            self._client.commit_offsets(self._group_id, offsets)
        except SkidwayError as error:
            self._in_vain = True
            _log.warning("offsets_not_committed", topic=topic.name, reason=str(error))
