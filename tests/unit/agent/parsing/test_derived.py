import json

import pyarrow as pa
import pytest

from skidway.agent.parsing.derived import record_name
from skidway.agent.parsing.derived import schema as schema_of
from skidway.agent.parsing.raw import RawParser
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec


def test_names_of_topics_become_names_of_records() -> None:
    """The name of the record in a derived schema is made from the topic's name, and is always a
    legal Avro name."""
    assert record_name("hdfs-logs.v2") == "hdfs_logs_v2"
    assert record_name("2fast") == "_2fast"
    assert record_name("bytes") == "_bytes"
    Codec(schema_of("string", ["line"]))


def test_derived_schemas_hold_the_groups_and_the_time() -> None:
    """The schema that the agent derives for a raw parser has one string field. The schema for a
    regex parser has a field for each group, and the parsed time under a name that no group has."""
    assert [f["name"] for f in json.loads(schema_of("t", ["line"]))["fields"]] == ["line"]
    fields = json.loads(schema_of("t", ["a", "timestamp"], with_time=True))["fields"]
    assert [f["name"] for f in fields] == ["a", "timestamp", "event_time"]
    assert fields[2]["type"]["logicalType"] == "timestamp-millis"
    with pytest.raises(ConfigurationRefused):
        schema_of("t", ["timestamp", "event_time"], with_time=True)


def test_a_raw_parser_fills_the_one_string_field() -> None:
    """A raw parser writes the line to the schema's only string field, whatever the field's name is.
    A schema with other required fields is refused."""
    schema = pa.schema([("text", pa.string()), ("n", pa.int32())])
    parsed = RawParser(schema, frozenset({"n"})).parse(pa.array([b"a"], pa.binary()), 0)
    assert parsed.batch.to_pylist() == [{"text": "a"}]
    with pytest.raises(ConfigurationRefused, match="text, n"):
        RawParser(schema, frozenset())
