"""Our codec agrees with the bytes in tests/data/protocol, which were written by hand from the
protocol's description, field by field.

For each message, our codec must write exactly these bytes, and must read them. It must refuse a
message that is cut off after any byte, and a message that is followed by one more byte. Because the
bytes were written by hand, these tests also find mistakes that our reader and our writer have in
common.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from skidway.kafka.errors import ProtocolError, TrailingBytes
from skidway.kafka.protocol import Message, decode, encode, fetch_request, fetch_response, produce
from support.messages import ALL, built, wire

DATA = Path(__file__).parents[2] / "data/protocol"
CLASSES = {cls.__name__: cls for cls in ALL}


class Golden(NamedTuple):
    """A message, its API version, and its bytes."""

    version: int
    message: Message
    body: bytes


def golden() -> Iterator[Golden]:
    """Yields the cases from the files in DATA. In the text `bytes` of a case, the character #
    begins a comment. Fields of type bytes are written in hexadecimal. A field that the case does
    not mention has its default value."""
    for path in sorted(DATA.glob("*.yml")):
        for case in yaml.safe_load(path.read_text()):
            message = built(CLASSES[case["message"]], case.get("fields", {}))
            yield Golden(case["version"], message, wire(case["bytes"]))


def name_of(case: Golden) -> str:
    return f"{type(case.message).__name__}-{case.version}"


GOLDEN = list(golden())
HOT = {
    produce.ProduceRequest: produce.parse_request,
    produce.ProduceResponse: produce.parse_response,
    CLASSES["FetchRequest"]: fetch_request.parse_request,
    CLASSES["FetchResponse"]: fetch_response.parse_response,
}

every = pytest.mark.parametrize("case", GOLDEN, ids=name_of)


def test_no_file_is_passed_over() -> None:
    """The files contain at least a hundred cases in total. For each message there is at least one
    case."""
    assert len(GOLDEN) >= 100
    assert {type(case.message) for case in GOLDEN} == set(ALL)


@every
def test_written(case: Golden) -> None:
    """Our codec writes each case's message as the bytes of the case."""
    assert encode(case.message, case.version).hex(" ") == case.body.hex(" ")


@every
def test_read(case: Golden) -> None:
    """Our codec reads each case's bytes as the case's message. It refuses the bytes if bytes at the
    end are missing, or if further bytes are appended."""
    version, message, body = case
    assert decode(type(message), body, version) == message
    with pytest.raises(TrailingBytes):
        decode(type(message), body + b"\0", version)
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            decode(type(message), body[:end], version)


@pytest.mark.parametrize(
    "case", [each for each in GOLDEN if type(each.message) in HOT], ids=name_of
)
def test_hot_paths_read_the_same_bytes(case: Golden) -> None:
    """The hand-written parsers of Produce and Fetch accept the bytes of their cases. They refuse
    the bytes if bytes at the end are missing, or if further bytes are appended. (The unit tests of
    the parsers compare the values that a parser reads with the values that `decode` reads.)"""
    version, message, body = case
    parse = HOT[type(message)]
    parse(memoryview(body), version)
    with pytest.raises(TrailingBytes):
        parse(memoryview(body + b"\0"), version)
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            parse(memoryview(body)[:end], version)
