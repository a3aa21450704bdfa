"""Tests Metadata requests for all topics, and the defaults of fields in the response."""

from __future__ import annotations

import uuid

import pytest

from skidway.kafka.errors import TrailingBytes, Truncated, UnsupportedVersion
from skidway.kafka.protocol import decode, encode
from skidway.kafka.protocol.metadata import (
    OPERATIONS_UNKNOWN,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from support.messages import wire


@pytest.mark.parametrize(
    ("version", "topics", "wants_all"),
    [(0, (), True), (1, (), False), (1, None, True), (11, None, True), (12, (), False)],
)
def test_all(
    version: int, topics: tuple[MetadataRequestTopic, ...] | None, wants_all: bool
) -> None:
    """In a Metadata request, null in place of the topics requests all topics, and an empty array
    requests none. In version 0 an empty array requests all topics."""
    request = decode(MetadataRequest, encode(MetadataRequest(topics=topics), version), version)
    assert request.wants_all(version) is wants_all


@pytest.mark.parametrize("version", [0, 3])
def test_not_creating_cannot_be_said(version: int) -> None:
    """A Metadata request that forbids the creation of topics cannot be written in versions that
    lack the field for this (`allow_auto_topic_creation`)."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    with pytest.raises(UnsupportedVersion, match="allow_auto_topic_creation"):
        encode(request, version)


def test_authorized_operations_are_unknown() -> None:
    """If a client has not requested the authorized operations, their fields in the response are
    INT32_MIN, which clients read as unknown."""
    response = MetadataResponse(brokers=(), topics=(MetadataResponseTopic(name="logs"),))
    assert OPERATIONS_UNKNOWN == -(1 << 31)
    for version in (8, 10):
        again = decode(MetadataResponse, encode(response, version), version)
        assert again.cluster_authorized_operations == OPERATIONS_UNKNOWN
        assert again.topics[0].topic_authorized_operations == OPERATIONS_UNKNOWN
        assert encode(response, version).count(b"\x80\0\0\0") == 2


@pytest.mark.parametrize(("version", "told"), [(9, False), (10, True), (12, True)])
def test_topic_ids(version: int, told: bool) -> None:
    """Metadata responses have topic ids from version 10 on."""
    topic_id = uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
    topic = MetadataResponseTopic(name="logs", topic_id=topic_id)
    body = encode(MetadataResponse(brokers=(), topics=(topic,)), version)
    assert (topic_id.bytes in body) is told
    again = decode(MetadataResponse, body, version)
    assert again.topics[0].topic_id == (topic_id if told else uuid.UUID(int=0))


LIBRDKAFKA_ALL = wire("""
    00 000000           # null, in the four bytes reserved for a count
    00                  # do not create topics
    00 00               # no authorized operations
    00                  # no tags
""")


def test_librdkafka_asks_for_all() -> None:
    """librdkafka's request for all topics has three bytes too many. It is read only if trailing
    bytes are allowed."""
    request = decode(MetadataRequest, LIBRDKAFKA_ALL, 9, may_have_more=True)
    assert request.wants_all(9)
    assert not request.allow_auto_topic_creation
    with pytest.raises(TrailingBytes):
        decode(MetadataRequest, LIBRDKAFKA_ALL, 9)


def test_more_is_not_less() -> None:
    """Even if trailing bytes are allowed, a truncated message is refused."""
    body = encode(MetadataRequest(topics=(MetadataRequestTopic(name="logs"),)), 9)
    for end in range(len(body)):
        with pytest.raises(Truncated):
            decode(MetadataRequest, body[:end], 9, may_have_more=True)
