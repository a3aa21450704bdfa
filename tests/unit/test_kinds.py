"""Everything about a kind of thing is in one place: a test registers one more, and every program
knows it."""

from __future__ import annotations

import subprocess
import sys

CODEC = """
from skidway.kafka import codecs
from skidway.kafka.codecs import Codec

class Reversed(Codec):
    number = 5
    name = "reversed"
    since_produce = 9

    def compress(self, data):
        return bytes(data)[:3:-1]  # four bytes shorter, so that it is worth it

    def _decompressed(self, data, limit_bytes, scratch):
        return bytes(4) + bytes(data)[::-1]
"""
REGISTERED = "codecs.register(Reversed())\n"
USED = """
from skidway.agent.settings import AgentSettings
from skidway.broker.log.config import LogConfig
from skidway.broker.log.validation import BatchRefused, validate
from skidway.kafka.batch import EncodedBatch, read_header, seal
from skidway.producer.settings import ProducerSettings
from skidway.settings.spec import specs

codec = Reversed()
batch = memoryview(bytearray(seal(EncodedBatch(codec.compress(b"1234abcd"), 5, 1, 0, 0, 8))))

def is_taken(version):
    try:
        return validate(batch, LogConfig(), 0, version).count == 1
    except BatchRefused as error:
        return str(error)

print(is_taken(9), is_taken(8), sep="|")
print("reversed" in specs(AgentSettings)["compression.type"].shape.choices)
"""
KNOWN = """
print(ProducerSettings(compression_type="reversed").codec.number)
print(codecs.codec_of(read_header(batch)).decompress(batch[61:]))
"""


def said(program: str) -> list[str]:
    """What a Python program prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_codec_is_one_file_and_one_line() -> None:
    """A codec that a test registers is offered by settings, accepted by brokers from its version
    of Produce on, and used by producers and readers. Without its registration, brokers refuse
    its batches, and no setting offers it."""
    assert said(CODEC + REGISTERED + USED + KNOWN) == [
        "True|reversed needs Produce version 9 or newer", "True", "5",
        repr(bytes(4) + b"abcd"),
    ]  # fmt: skip
    assert said(CODEC + USED) == [
        "unknown compression codec 5|unknown compression codec 5", "False",
    ]  # fmt: skip


COLUMN = """
import numpy as np, pyarrow as pa
from skidway import row_columns

SUM = row_columns.RowColumn(
    "_sum", "long", lambda rows: rows.records.offsets + rows.records.partition, rises=True
)
"""
COLUMN_REGISTERED = "row_columns.register(SUM)\n"
COLUMN_USED = """
from skidway.kafka.columns import Origins
from skidway.loader.datasource.columns import QUERY_RESERVED, own_fields
from skidway.loader.reading.columns import OWN, REJECTED, RESERVED, Records, own_columns
from skidway.loader.state.parquet_file import RISING
from skidway.schemas.inference import naming

ones = np.ones(2, np.int64)
origins = Origins(ones, ones, ones, ones)
records = Records(3, np.array([4, 5]), ones, origins)
places = pa.array(["h", "h"]).dictionary_encode()
print("_sum" in OWN.names, "_sum" in REJECTED.names, "_sum" in [x.name for x in own_fields()])
print(all("_sum" in each for each in (RESERVED, QUERY_RESERVED, naming.RESERVED, RISING)))
rows = pa.table(own_columns(records, places, places), OWN)
print(rows.column("_sum").to_pylist() if "_sum" in OWN.names else rows.num_columns)
"""


def test_a_column_of_rows_is_one_file_and_one_line() -> None:
    """A column that a test registers is written into files of rows and rejects, is read by
    queries, and is a name that no field of a schema may have."""
    assert said(COLUMN + COLUMN_REGISTERED + COLUMN_USED) == ["True True True", "True", "[7, 8]"]
    assert said(COLUMN + COLUMN_USED) == ["False False False", "False", "9"]
