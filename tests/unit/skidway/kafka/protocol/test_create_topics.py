"""Tests CreateTopics requests that ask for the broker's defaults, and an answer that Java's admin
client can read."""

from __future__ import annotations

import pytest

from skidway.kafka.protocol import decode, encode
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support.messages import wire


@pytest.mark.parametrize("version", range(2, 8))
def test_broker_defaults(version: int) -> None:
    """A topic without numbers of partitions and replicas is written with -1 for both, which asks
    for the broker's defaults. This is so in every version, including version 3, which kafkajs
    uses."""
    request = CreateTopicsRequest(topics=(CreatableTopic(name="logs"),))
    received = decode(CreateTopicsRequest, encode(request, version), version)
    assert received.topics[0].num_partitions == -1
    assert received.topics[0].replication_factor == -1


def test_configs_are_a_list() -> None:
    """Each topic in the answer to CreateTopics has an empty list of configs, not null, because
    Java's admin client fails on null."""
    body = encode(CreateTopicsResponse(topics=(CreatableTopicResult(name="a"),)), 5)
    assert body == wire("""
        00000000       # throttle time
        02             # one topic
        02 61          #   "a"
        0000 00        #   no error, no message
        ffffffff ffff  #   partitions and replication factor not told
        01             #   configs: an empty array, not null (00)
        00 00          # no tags
    """)
