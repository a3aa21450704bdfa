"""The Avro codec: Arrow record batches to Avro datums and back, for one schema at a time.

Data flows through columns. Three paths do the work. Each path passes on to the next path the input
that it is not proven for. All give the same answers (property tests compare them):

    pyruhvro   encodes flat records, in Rust (`fast_path`): the fastest
    columns    any schema that has columns, both ways, in numpy and Arrow (`writing`, `reading`): no
               Python object per record, arrays, maps and unions included
    fastavro   a datum at a time (`rows`): the last word on datums that are bad or of rare form

A bad row or datum is set apart with its index and reason; the others are processed. Whatever the
input bytes are, the codec does not panic or hang, and takes memory only in proportion to their
number (`skidway.schemas.bounds`).

Reading order:

    codec       `Codec`: one schema, which path, what becomes of bad rows
    arrow       which Arrow type stands for which Avro type
    conform     brings columns to exactly these types before encoding; faults: finds bad rows
    fast_path   flat records through pyruhvro
    writing     columns to datums; decimals: both directions of these
    cursor      positions in all datums of a chunk; reading: datums to columns; items: where the
                items of arrays and maps begin
    rows        one datum at a time
    datum_reader   `DatumReader`: datums of a writer's schema in a reader's columns; resolution:
                   Avro's rules for that, promotion: its rules for single types
    text        checks UTF-8 and keys of whole columns; spreading: puts rows back into their places
    times       checks times of day
    metrics     what is counted
"""

from skidway.schemas.codec.codec import Codec, Decoded, EncodeRefused
from skidway.schemas.codec.conform import ColumnsRefused
from skidway.schemas.codec.datum_reader import DatumReader
from skidway.schemas.codec.faults import NOT_UTF8, NotUtf8
from skidway.schemas.codec.resolution import Unresolvable

__all__ = [
    "NOT_UTF8",
    "Codec",
    "ColumnsRefused",
    "DatumReader",
    "Decoded",
    "EncodeRefused",
    "NotUtf8",
    "Unresolvable",
]
