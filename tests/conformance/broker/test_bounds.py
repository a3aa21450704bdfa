"""A request that asks for very much gets a bounded answer. Neither a client with the largest
producer id nor a connection that has already failed harms other clients."""

from __future__ import annotations

import errno
import os
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skidway.broker.api import create_partitions, create_topics
from skidway.broker.network.listener import Listener
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    ResourceType,
)
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.init_producer_id import InitProducerIdRequest
from skidway.kafka.protocol.list_offsets import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from skidway.kafka.protocol.messages import Request, decode, encode
from support.batches import batch
from support.broker_core import BrokerCore, broker_core
from support.messages import RESPONSES


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    with broker_core(tmp_path) as made:
        ask(made, CreateTopicsRequest(topics=(CreatableTopic(name="logs"),)), 7)
        yield made


def ask(core: BrokerCore, request: Request, version: int) -> Any:
    client = core.connect()
    answer = client.ask(request_frame(request.API, version, 1, "test", encode(request, version)))
    client.close()
    assert answer is not None
    body = response_body(memoryview(answer), request.API, version)
    return decode(RESPONSES[request.API], body, version)


def test_one_request_creates_so_many_partitions_and_no_more(core: BrokerCore) -> None:
    """One request can create only a limited number of partitions and topics. The broker refuses
    each further topic of the request. The requests of this test only ask for validation, which has
    the same limit."""
    topics = tuple(CreatableTopic(name=f"t{number}", num_partitions=6000) for number in range(3000))
    request = CreateTopicsRequest(topics=topics, validate_only=True)
    codes = Counter(each.error_code for each in ask(core, request, 7).topics)
    assert codes == {ErrorCode.NONE: 1, ErrorCode.POLICY_VIOLATION: 2999}
    topics = tuple(CreatableTopic(name=f"t{number}", num_partitions=1) for number in range(3000))
    request = CreateTopicsRequest(topics=topics, validate_only=True)
    codes = Counter(each.error_code for each in ask(core, request, 4).topics)
    assert codes == {ErrorCode.NONE: 1000, ErrorCode.POLICY_VIOLATION: 2000}


def test_partitions_that_a_topic_has_already_do_not_count(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that adds partitions to large topics is limited by the partitions that it adds, not
    by those that the topics have already."""
    topics = tuple(CreatableTopic(name=name, num_partitions=4) for name in ("a", "b", "c"))
    ask(core, CreateTopicsRequest(topics=topics), 7)
    for module in (create_partitions, create_topics):
        monkeypatch.setattr(module, "PARTITIONS_MAX", 6)
    wanted = tuple(CreatePartitionsTopic(name=name, count=6) for name in ("a", "b", "c", "logs"))
    more = CreatePartitionsRequest(topics=wanted, timeout_ms=1, validate_only=True)
    codes = [each.error_code for each in ask(core, more, 3).results]
    assert codes == [ErrorCode.NONE] * 3 + [ErrorCode.POLICY_VIOLATION]


def test_settings_are_described_once(core: BrokerCore) -> None:
    """A DescribeConfigs request of 50 kB that names the same broker ten thousand times gets the
    broker's settings once. With one copy of the settings for each time that the request names the
    broker, the answer would have about a gigabyte."""
    own = str(core.broker.settings.broker_id)
    one = DescribeConfigsResource(
        resource_type=ResourceType.BROKER, resource_name=own, configuration_keys=None
    )
    answer = ask(core, DescribeConfigsRequest(resources=(one,) * 10_000), 4)
    assert len(answer.results) == 1


def test_a_partition_is_looked_up_once(core: BrokerCore) -> None:
    """If a ListOffsets request names a partition twice, that partition gets INVALID_REQUEST, as in
    Kafka. The other partitions of the request are answered as usual."""
    twice, once = (ListOffsetsPartition(partition_index=at, timestamp=LATEST) for at in (0, 1))
    topics = (
        ListOffsetsTopic(name="logs", partitions=(twice, once)),
        ListOffsetsTopic(name="logs", partitions=(twice,)),
    )
    answer = ask(core, ListOffsetsRequest(topics=topics), 7)
    codes = [[each.error_code for each in topic.partitions] for topic in answer.topics]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [[ErrorCode.INVALID_REQUEST, unknown], [ErrorCode.INVALID_REQUEST]]


def produced(core: BrokerCore, data: bytearray) -> produce.ProduceResult:
    client = core.connect()
    buffers = [produce.TopicBuffers("logs", 0, (bytes(data),))]
    pieces = produce.write_request(1, "test", 9, -1, 1000, buffers)
    answer = client.ask(b"".join(bytes(each) for each in pieces))
    client.close()
    assert answer is not None
    return produce.parse_response(response_body(memoryview(answer), ApiKey.PRODUCE, 9), 9).results[
        0
    ]


def test_a_partition_is_fetched_once(core: BrokerCore) -> None:
    """If a Fetch request names a partition twenty thousand times, the broker reads the partition
    once, from the offset in the last entry for this partition."""
    for value in (b"first", b"second"):
        assert produced(core, batch(value)).error_code == 0
    wanted = [fetch_request.FetchTarget("logs", 0, 0, 1 << 20)] * 20_000
    wanted.append(fetch_request.FetchTarget("logs", 0, 1, 1 << 20))
    client = core.connect()
    answer = client.ask(
        fetch_request.write_request(1, "test", 11, fetch_request.Fetch(wanted, 0, 1, 1 << 20))
    )
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.FETCH, 11)
    [found] = fetch_response.parse_response(body, 11).partitions
    assert b"second" in bytes(found.records)
    assert b"first" not in bytes(found.records)
    client.close()


def test_a_producer_with_the_largest_id_leaves_ids_for_others(core: BrokerCore) -> None:
    """If a client uses the largest possible producer id, the broker can still assign ids to other
    producers."""
    stored = produced(core, batch(b"x", producer_id=(1 << 63) - 1, epoch=0, sequence=0))
    assert stored.error_code == 0
    for _ in range(2):
        given = ask(core, InitProducerIdRequest(transactional_id=None), 4)
        assert given.error_code == 0
        assert 0 <= given.producer_id < 1 << 62


@pytest.mark.parametrize(
    "number", [errno.ECONNABORTED, errno.ENETDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT]
)
def test_a_connection_that_failed_before_it_was_accepted_is_passed_over(number: int) -> None:
    """If accept(2) reports an error because a waiting connection has already failed, the listener
    accepts the next connection."""
    listener = Listener("PLAINTEXT", "127.0.0.1", 0, send_buffer=-1, receive_buffer=-1)
    ours, theirs = socket.socketpair()
    answers: list[Any] = [OSError(number, os.strerror(number)), (theirs, ("peer", 1))]

    def accept() -> Any:
        answer = answers.pop(0) if answers else BlockingIOError()
        if isinstance(answer, OSError):
            raise answer
        return answer

    # The fake `accept` returns one end of a socket pair, for which the kernel refuses the option
    # TCP_NODELAY. So the listener closes this connection and continues.
    real, fake = listener.socket, SimpleNamespace(accept=accept)
    listener.socket = fake  # type: ignore[assignment]
    assert list(listener.accept()) == []
    assert theirs.fileno() == -1
    listener.socket = real
    listener.close()
    ours.close()
