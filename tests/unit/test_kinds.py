"""Everything about a kind of thing is in one place: a test registers one more, and every program
knows it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
from support.generated_tables import TABLES

codec = Reversed()
batch = memoryview(bytearray(seal(EncodedBatch(codec.compress(b"1234abcd"), 5, 1, 0, 0, 8))))

def is_taken(version):
    try:
        return validate(batch, LogConfig(), 0, version).count == 1
    except BatchRefused as error:
        return str(error)

print(is_taken(9), is_taken(8), sep="|")
print("reversed" in specs(AgentSettings)["compression.type"].shape.choices)
print("reversed" in " ".join(TABLES["client.md"]["codecs"]()))
"""
KNOWN = """
print(ProducerSettings(compression_type="reversed").codec.number)
print(codecs.codec_of(read_header(batch)).decompress(batch[61:]))
"""


def said(program: str, *arguments: str) -> list[str]:
    """What a Python program prints."""
    command = [sys.executable, "-c", program, *arguments]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_codec_is_one_file_and_one_line() -> None:
    """A codec that a test registers is offered by settings, accepted by brokers from its version
    of Produce on, and used by producers and readers. Without its registration, brokers refuse
    its batches, and no setting offers it."""
    assert said(CODEC + REGISTERED + USED + KNOWN) == [
        "True|reversed needs Produce version 9 or newer", "True", "True", "5",
        repr(bytes(4) + b"abcd"),
    ]  # fmt: skip
    assert said(CODEC + USED) == [
        "unknown compression codec 5|unknown compression codec 5", "False", "False",
    ]  # fmt: skip


COLUMN = """
import numpy as np, pyarrow as pa
from skidway import row_columns

SUM = row_columns.RowColumn(
    "_sum", "a sum", "long", lambda rows: rows.records.offsets + rows.records.partition, rises=True
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
from support.generated_tables import TABLES

print("_sum" in OWN.names, "_sum" in REJECTED.names, "_sum" in [x.name for x in own_fields()])
print(all("_sum" in each for each in (RESERVED, QUERY_RESERVED, naming.RESERVED, RISING)))
print("_sum" in " ".join(TABLES["loader.md"]["columns"]()))
rows = pa.table(own_columns(records, places, places), OWN)
print(rows.column("_sum").to_pylist() if "_sum" in OWN.names else rows.num_columns)
"""


def test_a_column_of_rows_is_one_file_and_one_line() -> None:
    """A column that a test registers is written into files of rows and rejects, is read by
    queries, and is a name that no field of a schema may have."""
    assert said(COLUMN + COLUMN_REGISTERED + COLUMN_USED) == [
        "True True True", "True", "True", "[7, 8]",
    ]  # fmt: skip
    assert said(COLUMN + COLUMN_USED) == [
        "False False False", "False", "False", "9",
    ]  # fmt: skip


PARSER = """
import json, sys
from dataclasses import replace
import pyarrow as pa
from skidway.agent import parsers
from skidway.agent.parsers.json import Json
from skidway.agent.parsers.kind import Fields
from skidway.schemas.inference.formats import LineFormat, Unfit

def values(line):
    return dict(each.partition(":")[::2] for each in line.split("\\t"))

class LtsvParser:
    def __init__(self, inner):
        self.inner = inner

    def parse(self, lines, now_ms):
        texts = [json.dumps(values(line.decode())).encode() for line in lines.to_pylist()]
        return self.inner.parse(pa.array(texts, pa.binary()), now_ms)

class LtsvLines(LineFormat):
    name, share_least, typed = "ltsv", 0.9, False

    def reader(self, sample):
        return self

    def values(self, line):
        if "\\t" not in line:
            raise Unfit("no tab")
        return values(line)

class Ltsv(Json):
    name = "ltsv"
    help = "label:value, with tabs between"
    settings = frozenset({"columns"})
    needs_schema = False

    def fields(self, parser, times):
        return Fields(parser.columns, parser.columns, True)

    def parser(self, recipe, schema):
        return LtsvParser(super().parser(recipe, schema))

    def proposals(self, lines):
        columns = list(values(lines[0]))
        return [("labelled values", {"parser": {"type": "ltsv", "columns": columns}})]

    def line_format(self):
        return LtsvLines()
"""
PARSER_REGISTERED = "parsers.register(Ltsv())\n"
PARSER_USED = """
from skidway.agent.settings import AgentSettings
from skidway.cli import main
from skidway.settings import documented

configuration = '''
bootstrap.servers: b:1
schema.registry.url: http://r:1
state.dir: /nowhere
sources:
- topic: logs
  paths: [/var/log/x.log]
  parser: {type: ltsv, columns: [host, status]}
  shape: mask host for emails
'''
path, config = sys.argv[1:]
with open(path, "w") as log, open(config, "w") as file:
    log.writelines(f"host:a@b.de\\tstatus:{number}\\n" for number in range(99))
    file.write(configuration)
print(*(each for each in documented(AgentSettings) if each.key == "sources[].parser.type"))
for command in (
    ["agent", "guess", path],
    ["agent", "test", "--config", config, "--topic", "logs", path],
    ["schemas", "infer", path],
):
    print(f"== {command[1]} {main(command)}")
"""


def test_a_parser_is_one_file_and_one_line(tmp_path: Path) -> None:
    """A parser that a test registers is a value of the setting `parser.type`, stands in its help,
    fills the schema that is derived for it, is followed by rules, and is proposed by `guess`; the
    inference of schemas knows its lines. Without its registration, no program knows it."""
    files = (str(tmp_path / "x.log"), str(tmp_path / "agent.yml"))
    parts = "\n".join(said(PARSER + PARSER_REGISTERED + PARSER_USED, *files)).split("== ")
    setting_and_guess, rows, inferred, last = parts
    assert "ltsv: label:value, with tabs between" in setting_and_guess
    assert "type: ltsv" in setting_and_guess
    assert "host: [email]" in rows
    assert '"name": "status"' in inferred
    assert last == "infer 0"
    assert "ltsv" not in said(PARSER + PARSER_USED, *files)[0]
