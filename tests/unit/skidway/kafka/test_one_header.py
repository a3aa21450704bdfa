"""The header that every record of a batch has, and reading one header of many records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka import columns
from skidway.kafka.batch import CorruptBatch, seal
from skidway.kafka.columns import OneHeader
from skidway.kafka.record_headers import header_values
from support.batches import varint

KEY = b"skidway.mac"
Headers = list[tuple[bytes, bytes | None]]
values = st.none() | st.binary(max_size=8) | st.integers(50, 300).map(bytes)
any_headers = st.lists(st.tuples(st.sampled_from([KEY, b"origin", b"", KEY + b"x"]), values))


def written(headers: Headers) -> bytes:
    """The headers of a record, as they are in a batch."""
    found = varint(len(headers))
    for key, value in headers:
        found += varint(len(key)) + key + varint(-1 if value is None else len(value))
        found += value or b""
    return found


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=5), st.data())
def test_each_record_gets_its_header_back(said: list[bytes], data: st.DataObject) -> None:
    """What a batch is encoded with is what is read from it: the values and their headers, whatever
    their lengths, and nothing for records without a header."""
    own = [data.draw(st.binary(max_size=300)) for _ in said]
    for header in (OneHeader(KEY, pa.array(own, pa.binary())), None):
        batch = columns.encode(
            pa.array(said, pa.binary()), np.zeros(len(said), np.int64), header=header
        )
        run = columns.joined([columns.unpack(seal(batch))])
        found = columns.decode_values(run, KEY)
        assert found.values.to_pylist() == said
        assert found.header == (own if header else [None] * len(said))
        all_headers = columns.decode(seal(batch), with_headers=True).headers
        assert all_headers is not None
        expected = (
            [[{"key": KEY.decode(), "value": x}] for x in own] if header else [None] * len(said)
        )
        assert all_headers.to_pylist() == expected


@given(st.lists(any_headers, min_size=1, max_size=4))
def test_the_first_header_with_the_key_counts(records: list[Headers]) -> None:
    """Records may have any headers: the value is that of the first one with the key."""
    parts = [written(x) for x in records]
    ends = np.cumsum([len(x) for x in parts])
    expected = [next((v for k, v in x if k == KEY), None) for x in records]
    found = header_values(b"".join(parts), ends - [len(x) for x in parts], ends, KEY)
    assert found == expected


@given(any_headers, st.binary(max_size=3), st.integers(0, 400))
def test_damaged_headers_are_an_error(headers: Headers, more: bytes, cut: int) -> None:
    """Headers that do not fill their record, or end behind it, raise CorruptBatch or are read as
    they stand; nothing else is raised."""
    data = (written(headers) + more)[: cut or None]
    try:
        found = header_values(data, np.array([0]), np.array([len(data)]), KEY)
    except CorruptBatch:
        return
    assert len(found) == 1


def test_a_header_whose_value_is_cut_off_is_damaged() -> None:
    """A record that ends before the length of its header's value is damaged."""
    data = varint(1) + varint(len(KEY)) + KEY
    with pytest.raises(CorruptBatch):
        header_values(data, np.array([0]), np.array([len(data)]), KEY)
