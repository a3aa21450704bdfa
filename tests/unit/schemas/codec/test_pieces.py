"""The codec can encode datums in pieces: as several columns of bytes, which the caller joins row by
row."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.schemas.codec import Codec

TEXT = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}'
OTHERS = [
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "string"]}]}',
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "bytes"}]}',
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}, '
    '{"name": "b", "type": "long", "default": 4}]}',
]
VALUES = st.one_of(st.none(), st.binary(max_size=4), st.sampled_from([b"x" * 70, b"\xff", b"\xc3"]))


@pytest.mark.parametrize("schema", [TEXT, *OTHERS])
@given(values=st.lists(VALUES, max_size=20))
def test_joined_pieces_are_the_datums(schema: str, values: list[bytes | None]) -> None:
    """The codec returns several columns of bytes (pieces). If the bytes of all columns are joined
    row by row, the results are the datums of all rows that are not refused."""
    codec = Codec(schema)
    column = pa.array(values, pa.binary())
    if codec.arrow_schema.field("a").type == pa.string():
        column = column.view(pa.string())
    batch = pa.RecordBatch.from_arrays([column], names=["a"])
    pieces, refused = codec.encode_pieces_checked(batch)
    datums, expected = codec.encode_rows_checked(batch)
    assert refused == expected
    rows = zip(*(piece.to_pylist() for piece in pieces), strict=True)
    assert [b"".join(row) for row in rows] == datums.drop_null().to_pylist()


def test_a_text_is_not_copied() -> None:
    """If the only field of a schema is a string, the codec does not copy the texts. It returns the
    datums in several columns (pieces), and the last of them uses the memory of the given column."""
    column = pa.array(["some text", "another"])
    pieces, _ = Codec(TEXT).encode_pieces_checked(pa.record_batch({"a": column}))
    assert pieces[-1].buffers()[2].address == column.buffers()[2].address
