"""The Avro codec, which encodes Arrow record batches into Avro datums, and decodes datums. A codec
has one schema.

The codec works on whole columns. It has three implementations, called paths, which all give the
same results (property tests compare these results). If a path might give a wrong result for some
input, it leaves this input to the next path:

    pyruhvro   encodes flat records, in Rust (`fast_path`); this is the fastest path
    columns    encodes and decodes any schema that has columns, in numpy and Arrow (`writing`,
               `reading`), without a Python object per record, even for arrays, maps and unions
    fastavro   decodes one datum at a time (`rows`), and decides about datums that are bad or have a
               rare form

Some callers put further bytes before or after each datum. Such a caller can ask for several columns
of bytes instead of one column of datums; it then gets a datum by joining the bytes of a row. If a
record has only a text field, this saves a copy of the text in the path `columns`.

Arrow has no type for an Avro type that contains itself. So the field through which a record
contains itself becomes a column of JSON texts. The codec decodes the values of this field one by
one, and all other columns as usual. If a schema has such a field, the codec can decode datums of
the schema, but cannot encode them.

If a row or datum is bad, the codec returns its index and a reason, and processes the other rows or
datums. Whatever the input bytes are, the codec does not crash or hang, and uses memory only in
proportion to the number of input bytes (`skidway.schemas.bounds`).

Reading order:

- `codec`: the codec of one schema; chooses the path and separates bad rows
- `arrow`: the Arrow type of each Avro type
- `conform`: brings columns to exactly their Arrow types before they are encoded
- `faults`: finds the rows with values that do not fit the schema
- `fast_path`: encodes flat records with pyruhvro
- `writing`: encodes columns into datums
- `decimals`: converts decimals in both directions
- `cursor`: the position that was reached in each datum of a chunk
- `reading`: decodes datums into columns
- `items`: finds where the items of arrays and maps begin
- `rows`: decodes one datum at a time
- `datum_reader`: decodes datums of a writer's schema into columns of a reader's schema
- `resolution`: Avro's rules for a pair of schemas
- `promotion`: Avro's rules for a pair of primitive or fixed types
- `matching`: Avro's rules about the names of types
- `json_text`: the JSON texts of values whose type contains itself
- `json_values`: reads and writes these values
- `text_columns`: columns of JSON texts
- `text_resolution`: resolves values whose type contains itself, with fastavro
- `text`: checks the UTF-8 and the map keys of whole columns
- `spreading`: puts rows that were processed separately back into their positions in a column
- `times`: checks times of day, and finds timestamps that most programs cannot hold
- `objects`: Python objects of decoded columns, for people; any value has one
- `metrics`: the codec's metrics for Prometheus
"""

from skidway.schemas.codec.codec import Codec, Decoded, EncodeRefused
from skidway.schemas.codec.conform import ColumnsRefused
from skidway.schemas.codec.datum_reader import DatumReader
from skidway.schemas.codec.faults import NOT_UTF8, NotUtf8
from skidway.schemas.codec.matching import Unresolvable

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
