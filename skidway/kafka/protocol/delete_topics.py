"""DeleteTopics (key 20), versions 1-6.

What is new in each version:

    1    throttle time (KIP-896 removed version 0)
    3    may answer TOPIC_DELETION_DISABLED
    4    flexible (KIP-482)
    5    error messages; may answer THROTTLING_QUOTA_EXCEEDED
    6    each topic by name or by id; lower versions: by name only (KIP-516)
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    NO_ID,
    REFUSED_IF_ABSENT,
    ErrorText,
    Int16,
    Int32,
    Request,
    Response,
    nullable,
    since,
    structure,
    until,
)

VERSIONS = VersionRange(1, 6)


@structure
class DeleteTopicState:
    """A topic to be deleted, given by its name, or by its id if the name is None."""

    name: str | None = None
    topic_id: uuid.UUID = NO_ID


@structure
class DeleteTopicsRequest(Request):
    """The topics to be deleted. They are in `topics` since version 6, and in `topic_names` in lower
    versions (see `by_name`)."""

    API = ApiKey.DELETE_TOPICS
    VERSIONS = VERSIONS

    topics: Annotated[tuple[DeleteTopicState, ...], since(6), REFUSED_IF_ABSENT] = ()
    topic_names: Annotated[tuple[str, ...], until(5), REFUSED_IF_ABSENT] = ()
    timeout_ms: Int32 = 60000

    @classmethod
    def by_name(
        cls, names: Iterable[str], version: int, timeout_ms: int = 60000
    ) -> DeleteTopicsRequest:
        """Returns a request to delete topics by name. The names are in the field that exists in the
        given version."""
        if version >= 6:
            topics = tuple(DeleteTopicState(name=name) for name in names)
            return cls(topics=topics, timeout_ms=timeout_ms)
        return cls(topic_names=tuple(names), timeout_ms=timeout_ms)

    def states(self) -> tuple[DeleteTopicState, ...]:
        """Returns the topics to be deleted, from `topics` or `topic_names`."""
        return self.topics + tuple(DeleteTopicState(name=name) for name in self.topic_names)


@structure
class DeletableTopicResult:
    """The result for one topic."""

    name: Annotated[str | None, nullable(6)]
    topic_id: Annotated[uuid.UUID, since(6)] = NO_ID
    error_code: Int16 = 0
    error_message: Annotated[ErrorText, since(5)] = None


@structure
class DeleteTopicsResponse(Response):
    """The result for each topic."""

    API = ApiKey.DELETE_TOPICS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    responses: tuple[DeletableTopicResult, ...]
