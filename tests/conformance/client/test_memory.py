"""How much memory the answers of brokers need that do not complete them, over real sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from skidway.kafka.client import Client, Fetcher
from skidway.kafka.protocol import metadata
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import response_frame
from skidway.kafka.protocol.messages import encode
from skidway.kafka.types import TopicPartition
from support.batches import batch
from support.scripted_broker import ScriptedBroker, scripted

LEADERS = 8
MIB = 1 << 20


def half(answer: bytes) -> bytes:
    """An answer that says that it has 6 MiB, and of which 5 MiB come."""
    return (6 * MIB).to_bytes(4) + answer[4:8] + bytes(5 * MIB)


@pytest.fixture
def leaders(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ScriptedBroker]]:
    """Brokers of one cluster. Broker N leads partition N of the topic logs."""
    with ExitStack() as stack:
        made = [stack.enter_context(scripted({"logs": LEADERS})) for _ in range(LEADERS)]
        told = tuple(
            metadata.MetadataResponseBroker(node_id=n, host="127.0.0.1", port=each.port)
            for n, each in enumerate(made)
        )
        rows = tuple(
            metadata.MetadataResponsePartition(
                partition_index=n, leader_id=n, leader_epoch=0, replica_nodes=(n,), isr_nodes=(n,)
            )
            for n in range(LEADERS)
        )
        topic = metadata.MetadataResponseTopic(name="logs", partitions=rows)
        answer = metadata.MetadataResponse(brokers=told, controller_id=0, topics=(topic,))
        monkeypatch.setattr(
            ScriptedBroker,
            "_metadata",
            lambda _, header, *__: response_frame(header, encode(answer, header.api_version)),
        )
        for number, each in enumerate(made):
            each.logs["logs", number].append(bytes(batch()))
        yield made


def test_unfinished_answers_are_limited_in_sum(
    leaders: list[ScriptedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many leaders begin large answers and do not complete them, these answers together
    need only as much memory as one answer may need. Small answers are read meanwhile, and when the
    unfinished answers have timed out, the partitions of their leaders are read too."""
    for each in leaders[1:]:
        each.faults[ApiKey.FETCH].append(half)
    with Client(leaders[0].address, request_timeout_ms=3_000) as client:
        monkeypatch.setattr(client.session, "_response_bytes_max", 8 * MIB)
        fetcher = Fetcher(client)
        for number in range(LEADERS):
            fetcher.seek(TopicPartition("logs", number), 0)
        read: list[int] = []
        most_bytes = most_waiting = 0
        while len(read) < LEADERS:
            read += [each.tp.partition for each in fetcher.poll(50)]
            most_bytes = max(most_bytes, held_bytes(client))
            most_waiting = max(most_waiting, len(client._network._paused))
    assert (read[0], sorted(read)) == (0, [*range(LEADERS)])
    assert 5 * MIB < most_bytes < 9 * MIB
    assert most_waiting == LEADERS - 2
    assert all(not each.faults[ApiKey.FETCH] for each in leaders)


def held_bytes(client: Client) -> int:
    """The memory of the answers that the client has received in part."""
    links = client.session._links.values()
    readers = [link.connection._reader for link in links if link.connection is not None]
    return sum(len(each._partial) for each in readers if each._partial is not None)
