"""Messages in Avro's single-object encoding contain the fingerprint of their schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.schemas import single_object
from skidway.schemas.single_object import HEADER_BYTES, MessageInvalid, Messages, UnknownFingerprint

OPEN: dict[str, Any] = {
    "kind": "OPEN", "time": 1_700_000_000_000, "agent": 7, "file": 9, "host": "h", "path": "/p",
    "device": 1, "inode": 2, "fingerprint": b"\xff" * 32, "fingerprint_length": 32,
    "cluster": "dc1", "cluster_id": "c", "topic": "t", "topic_id": "", "begin": 0,
}  # fmt: skip
COLUMNS: dict[str, Any] = {"sources": "[]", "table": b"\xff" * 8}
DELTA: dict[str, Any] = {
    "kind": "DELTA", "tier": "AGENT", "cluster": "dc1", "producer": "7", "host": "h", "epoch": 1,
    "number": 5, "time": -1, "columns": COLUMNS,
}  # fmt: skip


def test_the_header_is_avros() -> None:
    """The header of a message is C3 01 and the schema's CRC-64-AVRO, little-endian. The test uses
    the value that is specified for the schema "null"."""
    messages = Messages(['"null"'])
    assert messages.encode("null", None) == b"\xc3\x01" + (0x63DD24E7CC258F8A).to_bytes(8, "little")  # type: ignore[arg-type]


def test_messages_come_back_with_their_defaults() -> None:
    """A message that is written and read again has the same values. Times are still in
    milliseconds, missing fields get their defaults, and negative numbers stay negative."""
    name, back = single_object.decode(single_object.encode("Announcement", OPEN))
    assert name == "Announcement"
    defaults = ("predecessor", "predecessor_position", "length", "born_ns")
    assert back == OPEN | dict.fromkeys(defaults)
    name, back = single_object.decode(single_object.encode("Audit", DELTA))
    assert name == "Audit"
    assert back["columns"] == COLUMNS | {"filtered": []}
    assert (back["time"], back["sealed"], back["losses"], back["gaps"]) == (-1, None, [], [])


@pytest.mark.parametrize(
    "record",
    [
        {},
        {**OPEN, "surprise": 1},
        {**OPEN, "kind": "OTHER"},
        {**OPEN, "agent": "seven"},
        {**OPEN, "agent": 2**63},
        {**OPEN, "host": None},
    ],
)
def test_a_record_that_is_none_is_refused(record: dict[str, Any]) -> None:
    """A record with unknown or missing fields or wrong types is refused with an error of one
    sentence."""
    with pytest.raises(MessageInvalid, match="The record is no Announcement"):
        single_object.encode("Announcement", record)


def test_an_unknown_fingerprint_is_told_apart_from_damage() -> None:
    """A message with an unknown fingerprint, for example of a newer schema, raises another error
    than a damaged message."""
    message = single_object.encode("Announcement", OPEN)
    with pytest.raises(UnknownFingerprint) as caught:
        single_object.decode(message[:2] + b"12345678" + message[HEADER_BYTES:])
    assert caught.value.fingerprint == b"12345678"
    for damaged in (b"", message[:9], message[:-1], message + b"\0", b"\0" + message[1:]):
        with pytest.raises(MessageInvalid) as refused:
            single_object.decode(damaged)
        assert not isinstance(refused.value, UnknownFingerprint)


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    """After a good header, any bytes are either read as a message or refused."""
    header = single_object.shipped().schema("Audit").header
    try:
        name, _ = single_object.decode(header + data)
    except MessageInvalid:
        return
    assert name == "Audit"


def test_the_shipped_schemas_are_there_by_name() -> None:
    """The schemas that agent, audit and loader use can be loaded by name."""
    for name in ("Audit", "Announcement", "Decision", "Recount", "Rejected"):
        assert json.loads(single_object.schema_text(name))["name"] == name
    with pytest.raises(KeyError):
        single_object.encode("Nothing", {})
