"""The shape of a Produce request is everything but its correlation id and its records. Two requests
with the same shape differ only in these two parts."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skidway.broker.api.produce_shape import SHAPES_MAX, Shape, Shapes, learn
from skidway.broker.partitions.replica import Replica
from skidway.kafka.protocol import produce
from skidway.kafka.protocol.frames import read_request_header
from skidway.kafka.protocol.produce import ProduceResult, TopicBuffers
from support.batches import PARTITION, open_in


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Replica:
    return Replica(PARTITION, uuid.uuid4(), open_in(tmp_path_factory.mktemp("log")), 0)


def frame(
    records: bytes, version: int, *, number: int = 1, client: str | None = "c", acks: int = 1,
    timeout: int = 10, topic: str = "logs", partition: int = 0,
) -> memoryview:  # fmt: skip
    data = [TopicBuffers(topic, partition, (records,))]
    pieces = produce.write_request(number, client, version, acks, timeout, data)
    return memoryview(b"".join(bytes(each) for each in pieces))[4:]


def learned(view: memoryview, version: int, replica: Replica) -> Shape | None:
    header, body = read_request_header(view)
    return learn(view, version, produce.parse_request(body, header.api_version), replica)


def known(view: memoryview, version: int, replica: Replica) -> Shapes:
    shape, shapes = learned(view, version, replica), Shapes()
    assert shape is not None
    shapes.add(shape)
    return shapes


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    version=st.integers(3, 9),
    first=st.binary(max_size=200),
    second=st.integers(0, 40_000).map(lambda size: b"\x00\x80" * size),
    number=st.integers(0, (1 << 31) - 1),
    client=st.sampled_from([None, "", "rdkafka", "ü"]),
)
def test_a_request_of_the_same_shape_is_parsed_alike(
    replica: Replica, version: int, first: bytes, second: bytes, number: int, client: str | None
) -> None:
    """The shape of a Produce request is everything but its correlation id and its records. In a
    request of a known shape, the broker finds the same correlation id and records as the general
    parser does, whatever the sizes of the records are."""
    shapes = known(frame(first, version, client=client), version, replica)
    view = frame(second, version, number=number, client=client)
    found = shapes.match(view)
    header, body = read_request_header(view)
    general = produce.parse_request(body, version)
    assert found is not None
    shape, correlation_id, records = found
    assert correlation_id == header.correlation_id == number
    assert records == general.data[0].records == second
    assert (shape.acks, shape.timeout_ms) == (general.acks, general.timeout_ms)


@pytest.mark.parametrize("version", range(3, 10))
def test_anything_else_is_no_request_of_the_shape(replica: Replica, version: int) -> None:
    """A request that differs from a known request in topic, partition, acks, timeout, client id or
    version goes to the general parser."""
    shapes = known(frame(b"records", version), version, replica)
    for view in (
        frame(b"records", version, topic="logz"),
        frame(b"records", version, topic="log"),
        frame(b"records", version, partition=1),
        frame(b"records", version, acks=-1),
        frame(b"records", version, timeout=11),
        frame(b"records", version, client="d"),
        frame(b"records", 12 - version),
        memoryview(b""),
    ):
        if version != 12 - version or view != frame(b"records", version):
            assert shapes.match(view) is None


@pytest.mark.parametrize("version", range(3, 10))
def test_a_damaged_request_is_no_request_of_the_shape(replica: Replica, version: int) -> None:
    """A request with missing or additional bytes at its end goes to the general parser, which
    refuses it."""
    good = frame(b"records", version)
    shapes = known(good, version, replica)
    for size in range(len(good)):
        assert shapes.match(good[:size]) is None
    assert shapes.match(memoryview(bytes(good) + b"\0")) is None


@pytest.mark.parametrize("version", range(3, 10))
def test_requests_with_more_than_one_batch_have_no_shape(replica: Replica, version: int) -> None:
    """The broker stores the shape of a request (everything but correlation id and records) only if
    the request has exactly one batch."""
    data = [TopicBuffers("logs", n, (b"x",)) for n in range(2)]
    pieces = produce.write_request(1, "c", version, 1, 10, data)
    view = memoryview(b"".join(bytes(each) for each in pieces))[4:]
    assert learned(view, version, replica) is None


@pytest.mark.parametrize("version", range(3, 10))
def test_the_answer_is_the_general_one(replica: Replica, version: int) -> None:
    """If a request has a known shape, it differs from an earlier request only in correlation id and
    records. Its answer equals, byte for byte, the answer that the general handler would give."""
    shape = learned(frame(b"x", version), version, replica)
    assert shape is not None
    result = ProduceResult("logs", 0, 0, 1 << 40, -1, replica.log.log_start_offset)
    expected = produce.write_response(77, version, [result])
    assert bytes(shape.answer(77, 1 << 40)) == bytes(expected)
    assert expected[4:8] == (77).to_bytes(4, "big")


def test_each_partition_of_a_connection_has_its_shape(replica: Replica) -> None:
    """The shape of a request is everything but its correlation id and records. For each connection,
    the broker stores one shape for each partition to which the producer writes, but at most
    SHAPES_MAX shapes."""
    shapes = Shapes()
    for number in range(SHAPES_MAX):
        shape = learned(frame(b"x", 7, partition=number), 7, replica)
        assert shape is not None
        shapes.add(shape)
    for number in range(SHAPES_MAX):
        assert shapes.match(frame(b"y", 7, partition=number)) is not None
    another = learned(frame(b"x", 7, topic="another"), 7, replica)
    assert another is not None
    shapes.add(another)
    assert shapes.match(frame(b"y", 7, topic="another")) is not None
    assert shapes.match(frame(b"y", 7, partition=0)) is None


@pytest.mark.parametrize("version", [7, 9])
def test_a_client_with_a_very_long_name_is_not_remembered(replica: Replica, version: int) -> None:
    """The shape of a request is everything but its correlation id and records. If the client id of
    a request is very long, the broker does not store the shape. So the memory of each connection
    has a limit."""
    assert learned(frame(b"x", version, client="c" * 900), version, replica) is not None
    assert learned(frame(b"x", version, client="c" * 1024), version, replica) is None
