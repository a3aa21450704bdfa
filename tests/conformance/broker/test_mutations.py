"""The tests send damaged requests, and batches with false headers, to a broker without a network.
The damaged requests are made from recorded requests of stock clients.
For each damaged request, the broker answers the request or closes its connection. (A damaged
Produce request may have acks=0, and then gets no answer.) The broker never closes a connection with
the reason "failed", which means a fault in the broker's own code, and it serves other connections
as before. Everything that the broker stored can be read, searched and recovered.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import pytest

from skidway.broker.api import create_partitions, create_topics
from skidway.kafka.batch import CRC_START, HEADER_BYTES, headers
from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.list_offsets import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from skidway.kafka.protocol.messages import decode, encode
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic
from support.batches import NOW_MS, batch, recover_in
from support.broker_core import BrokerCore, broker_core

REQUESTS = Path(__file__).parents[2] / "data" / "requests" / "recorded.txt"
"""Frames that stock clients have sent, one a line: the client, the API key, the version, and the
bytes in hexadecimal."""
EXTREMES = (
    b"\xff", b"\x7f", b"\x80", b"\0", b"\x01", b"\x02",
    b"\xff\xff", b"\x7f\xff", b"\x80\0", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff",
    b"\x80\0\0\0", b"\0\0\0\x02", b"\xff\xff\xff\xfe", b"\xff\xff\xff\xff\x0f",
    b"\x7f" + b"\xff" * 7, b"\x80" + b"\0" * 7, b"\xff" * 8,
)  # fmt: skip
"""Bytes that replace others in a damaged request. A broker that reads them as a length, a count, an
offset or a time gets a value that no client sends."""
_HEAD = 12  # the bytes of length field, API key, version and correlation id together
_LENGTH = struct.Struct(">i")


class Recorded(NamedTuple):
    """A request as a client sent it, including its length field."""

    client: str
    key: int
    version: int
    frame: bytes


def recorded() -> list[Recorded]:
    """All recorded requests."""
    found = []
    for line in REQUESTS.read_text("ascii").splitlines():
        client, key, version, frame = line.split(" ")
        found.append(Recorded(client, int(key), int(version), bytes.fromhex(frame)))
    return found


def mutated(frame: bytes, chance: random.Random) -> bytes:
    """Returns a copy of the frame with up to four damaged places and a length field that fits the
    new length."""
    body = bytearray(frame[_HEAD:])
    for _ in range(chance.randint(1, 4)):
        at = chance.randint(0, len(body))
        damage = chance.randrange(6)
        if damage == 0 and at < len(body):
            body[at] ^= 1 << chance.randrange(8)
        elif damage <= 2:
            extreme = chance.choice(EXTREMES)
            body[at : at + len(extreme)] = extreme
        elif damage == 3:
            del body[at : at + chance.randint(1, 8)]
        elif damage == 4:
            body[at:at] = body[at : at + chance.randint(1, 40)] * chance.randint(1, 20)
        else:
            body[at:at] = chance.randbytes(chance.randint(1, 8))
    return framed(frame[4:_HEAD] + bytes(body))


def cut_everywhere(frame: bytes) -> Iterator[bytes]:
    """Yields every beginning of the frame that contains at least the head (see `_HEAD`). The length
    field is changed so that it fits the length of the beginning."""
    for end in range(_HEAD, len(frame)):
        yield framed(frame[4:end])


def framed(content: bytes) -> bytes:
    """Returns the content as a frame with the right length field."""
    return _LENGTH.pack(len(content)) + content


RECORDED = recorded()
TRIALS = 150


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[BrokerCore]:
    for module in (create_topics, create_partitions):
        monkeypatch.setattr(module, "PARTITIONS_MAX", 8)  # a damaged request may create topics
    with broker_core(tmp_path) as made:
        create(made, "recorded")
        yield made


def create(core: BrokerCore, name: str) -> None:
    client = core.connect()
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
    for _ in range(2):
        assert client.ask(request_frame(ApiKey.METADATA, 5, 1, "test", encode(request, 5)))
    client.close()


def send(core: BrokerCore, data: bytes | bytearray, topic: str = "recorded") -> Any:
    """Sends `data` as a batch in a Produce request over a new connection. Returns the broker's
    result for the partition."""
    pieces = produce.write_request(
        1, "test", 9, -1, 1000, [produce.TopicBuffers(topic, 0, (bytes(data),))]
    )
    client = core.connect()
    answer = client.ask(b"".join(bytes(each) for each in pieces))
    client.close()
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.PRODUCE, 9)
    return produce.parse_response(body, 9).results[0]


def is_well(core: BrokerCore) -> None:
    """Asserts that the broker has closed no connection as "failed", and still serves a client that
    sends correct requests."""
    assert core.closed_for("failed") == 0
    create(core, "well")
    assert send(core, batch(b"well"), "well").error_code == 0


@pytest.mark.parametrize("one", RECORDED, ids=lambda one: f"{one.client}-{one.key}-{one.version}")
def test_damaged_requests_are_answered_or_closed(core: BrokerCore, one: Recorded) -> None:
    """Requests with flipped bits or false lengths, and requests that are too short or too long,
    affect at most the connection over which they were sent."""
    chance = random.Random(f"{one.client} {one.key} {one.version}")
    damaged = [mutated(one.frame, chance) for _ in range(TRIALS)]
    for frame in [one.frame, *cut_everywhere(one.frame), *damaged]:
        client = core.connect()
        answer = client.ask(frame)
        may_be_silent = one.key == ApiKey.PRODUCE
        assert answer is not None or client.is_closed or may_be_silent
        client.close()
    is_well(core)


def lying(chance: random.Random) -> bytes:
    """Returns a batch with a correct CRC and a false header or false records."""
    made = batch(*[b"v%d" % n for n in range(3)], timestamps=[NOW_MS, NOW_MS + 5, NOW_MS + 1])
    for _ in range(chance.randint(1, 3)):
        at = chance.randint(HEADER_BYTES if chance.random() < 0.4 else CRC_START, len(made) - 1)
        extreme = chance.choice(EXTREMES)
        made[at : at + len(extreme)] = extreme[: len(made) - at]
    struct.pack_into(">I", made, 17, google_crc32c.value(bytes(made[CRC_START:])))
    return bytes(made)


def listed(core: BrokerCore, timestamp: int) -> Any:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name="recorded", partitions=(asked,)),)
    client = core.connect()
    request = encode(ListOffsetsRequest(topics=topics), 7)
    answer = client.ask(request_frame(ApiKey.LIST_OFFSETS, 7, 1, "test", request))
    client.close()
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.LIST_OFFSETS, 7)
    return decode(ListOffsetsResponse, body, 7).topics[0].partitions[0]


def contiguous(core: BrokerCore) -> int:
    """Fetches all records and asserts that no offset is missing. Returns the offset after the last
    record."""
    offset = 0
    while True:
        wanted = [fetch_request.FetchTarget("recorded", 0, offset, 1 << 20)]
        client = core.connect()
        frame = fetch_request.write_request(
            1, "test", 11, fetch_request.Fetch(wanted, 0, 1, 1 << 20)
        )
        answer = client.ask(frame)
        client.close()
        assert answer is not None
        body = response_body(memoryview(answer), ApiKey.FETCH, 11)
        found = fetch_response.parse_response(body, 11).partitions[0]
        assert found.error_code == 0
        if not found.records:
            return offset
        for _, header in headers(found.records):
            assert header.base_offset == offset
            offset = header.last_offset + 1


@pytest.mark.parametrize("seed", range(6), indirect=True)
def test_batches_that_lie_are_refused_or_read_back(
    tmp_path: Path, core: BrokerCore, seed: int
) -> None:
    """Whatever the header of a producer's batch claims, no offset of the log is missing, each
    look-up of an offset by time ends, and after a restart the broker still has every record."""
    chance = random.Random(seed)
    for _ in range(60):
        sent = lying(chance)
        result = send(core, sent)
        if result.error_code == 0:
            assert listed(core, LATEST).offset > result.base_offset
    end = contiguous(core)
    assert listed(core, EARLIEST).offset == 0
    for timestamp in (MAX_TIMESTAMP, 0, NOW_MS, NOW_MS + 3, (1 << 63) - 1):
        assert -1 <= listed(core, timestamp).offset <= end
    is_well(core)
    log = next(each for tp, each in core.broker.logs.logs.items() if tp.topic == "recorded")
    assert log.flushed.offset == log.log_end_offset == end
    assert recover_in(tmp_path / "recorded-0").log.log_end_offset == end
