"""Tests every message in every version: round trips, truncated messages, trailing bytes, and
arbitrary bytes."""

from __future__ import annotations

import contextlib
import dataclasses
import struct
import tracemalloc
import uuid
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.kafka.errors import (
    BadValue,
    ProtocolError,
    TrailingBytes,
    Truncated,
    UnsupportedVersion,
)
from skidway.kafka.protocol import ApiKey, Message, VersionRange, decode, encode, flexible
from skidway.kafka.protocol.delete_topics import DeleteTopicsRequest
from skidway.kafka.protocol.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from skidway.kafka.protocol.messages import (
    REFUSED_IF_ABSENT,
    ErrorText,
    Int16,
    Int32,
    Request,
    Response,
    at_most,
    fields,
    nullable,
    since,
    structure,
    tagged,
)
from skidway.kafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from skidway.kafka.protocol.primitives import REQUEST_ELEMENTS_MAX
from support.messages import ALL, CASES, messages, name_of, wire
from support.randomness import share_of

FLEXIBLE = [cls for cls in ALL if flexible(cls.API, cls.VERSIONS.highest)]
every_message = pytest.mark.parametrize(("cls", "version"), CASES, ids=name_of)


@every_message
@settings(max_examples=share_of(12), deadline=None)
@given(data=st.data())
def test_exactly_its_bytes(cls: type[Message], version: int, data: st.DataObject) -> None:
    """Every message is read as it was written. A message is refused if it is truncated or if bytes
    follow it."""
    message = data.draw(messages(cls, version))
    body = encode(message, version)
    assert decode(cls, body, version) == message
    with pytest.raises(TrailingBytes):
        decode(cls, body + b"\0", version)
    for end in {*range(0, len(body), 1 + len(body) // 40), *range(len(body))[-3:]}:
        with pytest.raises(ProtocolError):
            decode(cls, body[:end], version)


@every_message
@settings(max_examples=share_of(15), deadline=None)
@given(data=st.data())
def test_noise(cls: type[Message], version: int, data: st.DataObject) -> None:
    """Reading damaged or arbitrary bytes either raises ProtocolError or returns a message that can
    be written and read again."""
    body = bytearray(data.draw(messages(cls, version).map(lambda m: encode(m, version))))
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)))):
        body[at : at + 1] = bytes([byte])
    for noise in (bytes(body), data.draw(st.binary(max_size=80))):
        try:
            message = decode(cls, noise, version)
        except ProtocolError:
            continue
        assert decode(cls, encode(message, version), version) == message


@pytest.mark.parametrize("cls", ALL, ids=name_of)
def test_unknown_version(cls: type[Message]) -> None:
    """Decoding a message in a version that its class does not support raises UnsupportedVersion."""
    for version in (cls.VERSIONS.lowest - 1, cls.VERSIONS.highest + 1):
        with pytest.raises(UnsupportedVersion):
            decode(cls, b"", version)


@pytest.mark.parametrize("cls", FLEXIBLE, ids=name_of)
def test_unknown_tags_at_the_end(cls: type[Message]) -> None:
    """An unknown tag at the end of a message is skipped."""
    version = cls.VERSIONS.highest
    own = [field for field in fields(cls) if field.tag is not None]

    @settings(max_examples=share_of(10), deadline=None)
    @given(messages(cls, version))
    def check(message: Message) -> None:
        bare = dataclasses.replace(message, **{field.name: field.default for field in own})
        body = encode(bare, version)
        assert decode(cls, body[:-1] + wire("01 e807 03 aabbcc"), version) == bare

    check()


def test_unknown_tags_within_structures() -> None:
    """Unknown tags are skipped in every structure, not only at the end."""
    body = wire("""
        02                # one topic
        05 6c6f6773       #   "logs"
        02 07 01 ff 08 00 #   two tags: 7 with one byte, 8 with none
        00                # do not create it
        00 00             # no authorized operations
        01 64 02 abcd     # one tag: 100 with two bytes
    """)
    asked = MetadataRequest(
        topics=(MetadataRequestTopic(name="logs"),), allow_auto_topic_creation=False
    )
    assert decode(MetadataRequest, body, 9) == asked


def test_tag_cannot_reach_beyond_itself() -> None:
    """A tagged field is refused if its content is longer or shorter than the size in front of
    it."""
    fine = encode(FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1, topics=()), 12)
    with pytest.raises(Truncated):
        decode(FetchRequest, fine[:-1] + wire("01 00 02 05 61"), 12)
    with pytest.raises(TrailingBytes):
        decode(FetchRequest, fine[:-1] + wire("01 00 03 02 61 62"), 12)


def test_tags_are_left_out_at_their_default() -> None:
    """A tagged field with its default value takes no bytes."""
    without = FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1, topics=())
    with_it = FetchRequest(cluster_id="c", max_wait_ms=1, min_bytes=1, max_bytes=1, topics=())
    assert encode(without, 12)[-1:] == b"\0"
    assert encode(with_it, 12)[-5:] == wire("01 00 02 02 63")


def test_tagged_structure() -> None:
    """A structure in a tagged field is written under its tag, and has its own tag section."""
    partition = PartitionData(
        partition_index=0,
        high_watermark=9,
        diverging_epoch=EpochEndOffset(epoch=3, end_offset=7),
    )
    topic = FetchableTopicResponse(topic="t", partitions=(partition,))
    response = FetchResponse(responses=(topic,))
    body = encode(response, 12)
    assert wire("01 00 0d 00000003 0000000000000007 00") in body  # tag 0 has thirteen bytes
    assert decode(FetchResponse, body, 12) == response


@structure
class _Element:
    name: Annotated[str | None, nullable(1)]


@structure
class _Sample(Request):
    API = ApiKey.METADATA  # Metadata is flexible since version 9
    VERSIONS = VersionRange(0, 9)

    number: Int16 = 0
    names: Annotated[tuple[_Element, ...] | None, nullable(2)] = ()
    plain: tuple[str, ...] = ()
    must: Annotated[Int32, since(3), REFUSED_IF_ABSENT] = 7
    words: Annotated[ErrorText, since(4)] = None
    identity: Annotated[uuid.UUID | None, since(9), tagged(5)] = None


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (0, "0000  00000001 ffff  00000000"),
        (1, "0000  ffffffff       00000000"),
        (2, "0000  00000000       00000001 ffff"),
        (2, "0000  00000000       ffffffff"),
    ],
)
def test_null_where_a_version_has_none(version: int, body: str) -> None:
    """A null is refused if the version of the message does not allow null in this field."""
    with pytest.raises(BadValue, match="null"):
        decode(_Sample, wire(body), version)


def test_null_where_a_version_has_it() -> None:
    """If the version of a message allows null in a field, null is read as None, and None is written
    as null."""
    assert decode(_Sample, wire("0000 00000001 ffff 00000000"), 1).names == (_Element(name=None),)
    assert decode(_Sample, wire("0000 ffffffff 00000000"), 2).names is None
    with pytest.raises(ValueError):
        encode(_Sample(names=None), 1)
    with pytest.raises(ValueError):
        encode(_Sample(names=(_Element(name=None),)), 0)


def test_absent_fields() -> None:
    """When a message is read, a field that its version does not have gets its default. When a
    message is written, such a field is left out, unless the field has the annotation
    REFUSED_IF_ABSENT and is set. In that case UnsupportedVersion is raised."""
    assert decode(_Sample, encode(_Sample(words="gone"), 3), 3) == _Sample()
    assert encode(_Sample(must=7), 2) == encode(_Sample(), 2)
    with pytest.raises(UnsupportedVersion, match="must only since version 3"):
        encode(_Sample(must=8), 2)


def test_optional_tag() -> None:
    """If a message does not have an optional tagged field, the field is read as None."""
    given_id = _Sample(identity=uuid.UUID(int=5))
    assert decode(_Sample, encode(given_id, 9), 9) == given_id
    assert decode(_Sample, encode(_Sample(), 9), 9).identity is None


@pytest.mark.parametrize("text", ["x" * 40000, "é" * 20000, "a" + "é" * 16383])
def test_words_for_people_are_cut(text: str) -> None:
    """An error text that is too long for its field is cut between two characters."""
    said = decode(_Sample, encode(_Sample(words=text), 4), 4).words
    assert said is not None
    assert text.startswith(said)
    assert 32764 <= len(said.encode()) <= 32767


def test_value_out_of_range() -> None:
    """A number that is too large for its field raises ValueError. The error contains the name of
    the message's class."""
    with pytest.raises(ValueError, match="_Sample version 0"):
        encode(_Sample(number=1 << 15), 0)


def test_messages_are_values() -> None:
    """Messages with the same content are equal. They are hashable and cannot be changed."""
    first, second = _Sample(number=1), _Sample(number=1)
    assert first == second
    assert len({first, second}) == 1
    with pytest.raises(AttributeError):
        first.number = 2  # type: ignore[misc]


@pytest.mark.parametrize("cls", ALL, ids=name_of)
def test_claims_cost_no_memory(cls: type[Message]) -> None:
    """A message may claim lengths and counts of thousands of millions at any place. No memory is
    allocated for such claims."""
    starts = [b"", b"\0", bytes(2), bytes(3), bytes(4), bytes(6), bytes(10), bytes(17), bytes(25)]
    claims = [b"\x7f\xff\xff\xff", b"\x7f\xff", b"\xfe\xff\xff\xff\x0f"]
    for version in range(cls.VERSIONS.lowest, cls.VERSIONS.highest + 1):
        decode_or_refuse(cls, b"", version)  # compiles the message's reader before the measurement
        tracemalloc.start()
        for start in starts:
            for claim in claims:
                decode_or_refuse(cls, start + claim + bytes(40), version)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100_000


def decode_or_refuse(cls: type[Message], body: bytes, version: int) -> None:
    with contextlib.suppress(ProtocolError):
        decode(cls, body, version)


@structure
class Row:
    cells: Annotated[tuple[Int16, ...], at_most(3, "cells")] = ()


@structure
class Table(Response):
    API = ApiKey.METADATA
    VERSIONS = VersionRange(8, 9)

    rows: tuple[Row, ...]


@pytest.mark.parametrize("version", [8, 9])
def test_arrays_are_limited_together(version: int) -> None:
    """All arrays of one kind together have no more elements than `at_most` says."""
    full = Table(rows=(Row(cells=(1, 2)), Row(), Row(cells=(3,))))
    assert decode(Table, encode(full, version), version) == full
    more = Table(rows=(*full.rows, Row(cells=(4,))))
    with pytest.raises(BadValue, match="more than 3 cells in one message"):
        decode(Table, encode(more, version), version)


def test_a_cluster_is_bounded() -> None:
    """An answer about more brokers, topics or partitions than any cluster has is refused for that,
    and another answer is not."""
    none, topic = struct.pack(">i", 0), struct.pack(">ihh", 1, 0, 0)
    for start, what in (
        (b"", "10000 brokers"),
        (none, "200000 topics"),
        (none + topic, "200000 partitions"),
    ):
        count = int(what.split()[0])
        for claimed in (count, count + 1):
            body = start + struct.pack(">i", claimed) + bytes(18 * claimed) + b"more"
            with pytest.raises(ProtocolError) as raised:
                decode(MetadataResponse, body, 0)
            refused = str(raised.value) == f"more than {what} in one message"
            assert refused is (claimed > count)


def test_elements_of_a_request_are_bounded() -> None:
    """A request with more than REQUEST_ELEMENTS_MAX elements is refused, even if its frame is
    small."""
    most = REQUEST_ELEMENTS_MAX
    named = struct.pack(">i", most) + wire("0000") * most + wire("00000000")
    assert len(decode(DeleteTopicsRequest, named, 1).topic_names) == most
    with pytest.raises(BadValue):
        decode(DeleteTopicsRequest, struct.pack(">i", most + 1) + wire("0000") * (most + 10), 1)
