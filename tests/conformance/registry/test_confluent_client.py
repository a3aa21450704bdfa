"""Confluent's unmodified Python client, serializer and deserializer work with our registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import (
    ConfigCompatibilityLevel,
)
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

from skidway.schemas import wire
from skidway.schemas.codec import Codec
from support.registry import Registry

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

V1 = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "age", "type": ["null", "int"], "default": None}]}
BROKEN = {**V1, "fields": [*V1["fields"], {"name": "must", "type": "int"}]}
VALUE = SerializationContext("users", MessageField.VALUE)


def text(schema: Any) -> str:
    return json.dumps(schema)


@pytest.fixture
def client(registry: Registry) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as made:
        yield made


def test_serializer_and_deserializer_with_their_defaults(client: SchemaRegistryClient) -> None:
    """The serializer registers the schema with the first message. The deserializer finds the schema
    by the id in the message's bytes."""
    data = AvroSerializer(client, text(V1))({"name": "Ada"}, VALUE)
    assert data[:5] == wire.prefix(1)
    assert AvroDeserializer(client)(data, VALUE) == {"name": "Ada"}
    assert client.get_subjects() == ["users-value"]


def test_our_codec_reads_what_their_serializer_wrote(client: SchemaRegistryClient) -> None:
    """Our codec and Confluent's serializer read each other's messages, and write the same bytes."""
    serializer = AvroSerializer(client, text(V2))
    written = pa.array([serializer({"name": n, "age": 7}, VALUE) for n in ("Ada", "Grace")])
    ids, datums = wire.split(written)
    codec = Codec(client.get_schema(int(ids[0])).schema_str)
    batch = codec.decode(datums).batch
    assert batch.to_pylist() == [{"name": "Ada", "age": 7}, {"name": "Grace", "age": 7}]
    back = wire.add_prefix(int(ids[0]), codec.encode(batch))
    assert back.equals(written)
    assert [AvroDeserializer(client)(each, VALUE)["name"] for each in back.to_pylist()] == [
        "Ada",
        "Grace",
    ]


def test_a_serializer_that_uses_the_latest_version(client: SchemaRegistryClient) -> None:
    """With use.latest.version the serializer registers no schema, and writes messages with the
    newest schema of the subject."""
    client.register_schema("users-value", Schema(text(V1), "AVRO"))
    latest = client.register_schema("users-value", Schema(text(V2), "AVRO"))
    conf = {"auto.register.schemas": False, "use.latest.version": True}
    data = AvroSerializer(client, None, conf=conf)({"name": "Ada", "age": 1}, VALUE)
    assert data[:5] == wire.prefix(latest)
    assert client.get_versions("users-value") == [1, 2]
    reader = AvroDeserializer(client, conf={"use.latest.version": True})
    assert reader(data, VALUE) == {"name": "Ada", "age": 1}


def test_a_serializer_that_may_not_register(client: SchemaRegistryClient) -> None:
    """With auto.register.schemas=False, the serializer only looks up the schema. It fails if the
    registry does not have the schema."""
    conf = {"auto.register.schemas": False}
    with pytest.raises((SchemaRegistryError, SerializationError)):
        AvroSerializer(client, text(V1), conf=conf)({"name": "Ada"}, VALUE)
    assert client.get_subjects() == []
    known = client.register_schema("users-value", Schema(text(V1), "AVRO"))
    data = AvroSerializer(client, text(V1), conf=conf)({"name": "Ada"}, VALUE)
    assert data[:5] == wire.prefix(known)


PART = {"type": "record", "name": "Part", "fields": [{"name": "a", "type": "int"}]}
WHOLE = {"type": "record", "name": "Whole", "fields": [{"name": "part", "type": "Part"}]}
INLINED = {**WHOLE, "fields": [{"name": "part", "type": PART}]}
TO_PART = [SchemaReference("Part", "part", 1)]


def test_a_schema_that_references_another(client: SchemaRegistryClient) -> None:
    """The serializer and the deserializer resolve the references of a schema. A schema that another
    schema references cannot be deleted."""
    client.register_schema("part", Schema(text(PART), "AVRO"))
    data = AvroSerializer(client, Schema(text(WHOLE), "AVRO", TO_PART))({"part": {"a": 1}}, VALUE)
    assert data[:5] == wire.prefix(2)
    assert AvroDeserializer(client)(data, VALUE) == {"part": {"a": 1}}
    assert client.get_schema(2).references == TO_PART
    assert client.get_referenced_by("part", 1) == [2]
    assert client.lookup_schema("users-value", Schema(text(WHOLE), "AVRO", TO_PART)).version == 1
    assert AvroSerializer(client, text(INLINED))({"part": {"a": 1}}, VALUE) == data
    latest = AvroSerializer(
        client, None, conf={"auto.register.schemas": False, "use.latest.version": True}
    )
    assert latest({"part": {"a": 1}}, VALUE) == data
    with pytest.raises(SchemaRegistryError) as caught:
        client.delete_subject("part")
    assert (caught.value.http_status_code, caught.value.error_code) == (422, 42206)


def test_the_guid_in_a_header_instead_of_the_id(client: SchemaRegistryClient) -> None:
    """In the newer wire format, the message's bytes contain no schema id. Instead a header of the
    message contains the schema's guid, and the deserializer finds the schema by this guid."""
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext("users", MessageField.VALUE, headers)
    conf = {"schema.id.serializer": header_schema_id_serializer}
    data = AvroSerializer(client, text(V1), conf=conf)({"name": "Ada King"}, context)
    assert data == b"\x10Ada King"
    ((name, value),) = headers
    assert (name, value[:1], len(value)) == ("__value_schema_id", b"\x01", 17)
    with SchemaRegistryClient({"url": client._rest_client.base_urls[0]}) as another:
        assert AvroDeserializer(another)(data, context) == {"name": "Ada King"}


def test_modes_through_the_client(client: SchemaRegistryClient) -> None:
    """The client can set the mode of all subjects or of one subject. A read-only registry refuses a
    registration with status 422. The status is not 5xx, because clients would retry after a 5xx
    status."""
    assert client.update_global_mode("READONLY") == "READONLY"
    client.update_mode("s", "READWRITE")
    assert (client.get_global_mode(), client.get_mode("s")) == ("READONLY", "READWRITE")
    assert client.register_schema("s", Schema(text(V1), "AVRO")) == 1
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("t", Schema(text(V1), "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (422, 42205)


def test_normalize_through_the_client(client: SchemaRegistryClient) -> None:
    """If the client asks the registry to normalize schemas, two spellings of a schema count as one
    schema."""
    one, two = ({**V1, **extra} for extra in ({"x": 1, "y": 2}, {"y": 2, "x": 1}))
    first = client.register_schema("s", Schema(text(one), "AVRO"), normalize_schemas=True)
    second = client.register_schema("s", Schema(text(two), "AVRO"), normalize_schemas=True)
    assert (first, second) == (1, 1)


def test_a_reader_with_an_older_schema(client: SchemaRegistryClient) -> None:
    """Confluent's deserializer can read messages with an older reader schema, because it gets the
    writer's schema from our registry."""
    data = AvroSerializer(client, text(V2))({"name": "Ada", "age": 3}, VALUE)
    assert AvroDeserializer(client, text(V1))(data, VALUE) == {"name": "Ada"}


def test_an_incompatible_schema_is_refused_with_409(client: SchemaRegistryClient) -> None:
    """If a schema is incompatible, its registration raises an error with status 409 and our
    registry's reason. A mere check of compatibility returns False."""
    client.register_schema("users-value", Schema(text(V1), "AVRO"))
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("users-value", Schema(text(BROKEN), "AVRO"))
    assert caught.value.http_status_code == 409
    assert "must" in caught.value.error_message
    assert client.test_compatibility("users-value", Schema(text(V2), "AVRO")) is True
    assert client.test_compatibility("users-value", Schema(text(BROKEN), "AVRO")) is False
    assert client.test_compatibility_all_versions("users-value", Schema(text(V2), "AVRO")) is True


def test_every_read_of_the_client(client: SchemaRegistryClient) -> None:
    """The client can look up a schema. It can also read a subject's versions, the subjects that use
    a schema id, the types of schemas, the mode and the contexts."""
    first = client.register_schema("a/b c", Schema(text(V1), "AVRO"))
    full = client.register_schema_full_response("a/b c", Schema(text(V1), "AVRO"))
    assert full.schema_id == first == 1
    latest = client.get_latest_version("a/b c")
    assert (latest.subject, latest.version, latest.schema_id) == ("a/b c", 1, 1)
    assert client.get_version("a/b c", 1).schema.schema_str == latest.schema.schema_str
    assert client.lookup_schema("a/b c", Schema(text(V1), "AVRO")).version == 1
    assert client.get_versions("a/b c") == [1]
    assert client.get_subjects_by_schema_id(1) == ["a/b c"]
    assert [(v.subject, v.version) for v in client.get_schema_versions(1)] == [("a/b c", 1)]
    assert client.get_schema_types() == ["AVRO"]
    assert client.get_global_mode() == "READWRITE"
    assert client.get_contexts() == ["."]
    assert client.get_referenced_by("a/b c", 1) == []


def test_levels_through_the_client(client: SchemaRegistryClient) -> None:
    """The client can set, read and delete compatibility levels, with its old calls
    (`set_compatibility`) and its new calls (`set_config`). The registry enforces the levels."""
    assert client.get_compatibility() == "BACKWARD"
    client.set_compatibility("users-value", "FULL")
    assert client.get_compatibility("users-value") == "FULL"
    client.set_config("users-value", ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert client.get_config("users-value").compatibility_level == "NONE"
    client.register_schema("users-value", Schema(text(V1), "AVRO"))
    assert client.register_schema("users-value", Schema(text(BROKEN), "AVRO")) == 2
    client.delete_config("users-value")
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_compatibility("users-value")
    assert caught.value.error_code == 40408


def test_deletion_through_the_client(client: SchemaRegistryClient) -> None:
    """The client can soft-delete a version and a subject, and then delete the subject
    permanently."""
    client.register_schema("s", Schema(text(V1), "AVRO"))
    client.register_schema("s", Schema(text(V2), "AVRO"))
    assert client.delete_version("s", 1) == 1
    assert client.get_versions("s") == [2]
    assert client.get_versions("s", deleted=True) == [1, 2]
    assert client.delete_subject("s") == [2]
    assert client.get_subjects() == []
    assert client.get_subjects(deleted=True) == ["s"]
    assert client.delete_subject("s", permanent=True) in ([1, 2], [])
    assert client.get_subjects(deleted=True) == []


def test_what_is_not_there_is_an_error_that_names_its_code(client: SchemaRegistryClient) -> None:
    """If a subject, version or schema is missing, the client raises an error with the right
    error_code. If the client could not parse the body of the registry's answer, the error_code
    would be -1."""
    for ask, code in (
        (lambda: client.get_schema(99), 40403),
        (lambda: client.get_latest_version("none"), 40401),
        (lambda: client.get_versions("none"), 40401),
        (lambda: client.get_schema_by_guid("0"), 40403),
    ):
        with pytest.raises(SchemaRegistryError) as caught:
            ask()
        assert caught.value.error_code == code
        assert caught.value.http_status_code == 404
