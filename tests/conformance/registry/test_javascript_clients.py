"""The two unmodified JavaScript clients for schema registries work with our registry."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from skidway.schemas import wire
from skidway.schemas.client import RegistryClient
from skidway.schemas.codec import Codec
from support import foreign
from support.registry import Registry
from support.stock_clients import ClientFailed, Driver, StockClient

pytestmark = pytest.mark.foreign

V1 = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "age", "type": "int", "default": 0}]}
BROKEN = {**V1, "fields": [*V1["fields"], {"name": "must", "type": "int"}]}
ADDRESS = {"type": "record", "name": "a.Address", "fields": [{"name": "city", "type": "string"}]}
PERSON = {"type": "record", "name": "Person", "fields": [{"name": "home", "type": "a.Address"}]}
REFERENCE = {"name": "a.Address", "subject": "address", "version": 1}


@pytest.fixture(params=["confluent-registry", "kafkajs-registry"])
def client(request: pytest.FixtureRequest, registry: Registry, tmp_path: Path) -> Iterator[Driver]:
    yield from started(request.param, registry, tmp_path)


@pytest.fixture
def confluent(registry: Registry, tmp_path: Path) -> Iterator[Driver]:
    yield from started("confluent-registry", registry, tmp_path)


@pytest.fixture
def kafkajs(registry: Registry, tmp_path: Path) -> Iterator[Driver]:
    yield from started("kafkajs-registry", registry, tmp_path)


def started(name: str, registry: Registry, folder: Path) -> Iterator[Driver]:
    described = StockClient(name, "", lambda: foreign.node_driver(name), foreign=True)
    driver = Driver(described, registry.url, folder)
    try:
        yield driver
    finally:
        driver.close()


def data(answer: dict[str, str]) -> bytes:
    return base64.b64decode(answer["bytes"])


def ours(registry: Registry, message: bytes) -> list[object]:
    """Returns the record in `message`, decoded by our own codec, as a list of one row."""
    ids, datums = wire.split(pa.array([message]))
    text = RegistryClient(registry.url).schema(int(ids[0]))
    rows: list[object] = Codec(text).decode(datums).batch.to_pylist()
    return rows


def test_versions_are_those_that_are_documented(confluent: Driver, kafkajs: Driver) -> None:
    """docs/registry.md gives the versions of the clients that these tests use. If a version
    changes, the page has to change too."""
    page = (Path(__file__).parents[3] / "docs/registry.md").read_text()
    assert f"@confluentinc/schemaregistry {confluent.ask('version')['version']}" in page
    assert f"@kafkajs/confluent-schema-registry {kafkajs.ask('version')['version']}" in page


def test_a_schema_is_registered_found_and_not_doubled(client: Driver) -> None:
    """A schema that is registered again keeps its id. The latest version of a subject is the schema
    that was registered last."""
    first = client.ask("register", subject="users-value", schema=json.dumps(V1))["id"]
    assert client.ask("register", subject="users-value", schema=json.dumps(V1))["id"] == first
    second = client.ask("register", subject="users-value", schema=json.dumps(V2))["id"]
    assert (first, second) == (1, 2)
    assert client.ask("latest", subject="users-value")["id"] == second
    found = client.ask("lookup", subject="users-value", schema=json.dumps(V1))
    assert list(found.values()) == [1]


def test_an_incompatible_schema_is_an_error_with_our_reason(client: Driver) -> None:
    """If a schema is incompatible, the client raises an error whose message names the field that is
    incompatible."""
    client.ask("register", subject="users-value", schema=json.dumps(V1))
    with pytest.raises(ClientFailed) as caught:
        client.ask("register", subject="users-value", schema=json.dumps(BROKEN))
    assert "must" in str(caught.value)


def test_what_is_not_there_is_an_error_that_is_read(client: Driver) -> None:
    """If a subject or id is unknown, the client raises an error. The client neither crashes nor
    hangs."""
    with pytest.raises(ClientFailed, match="Subject 'none' not found"):
        client.ask("latest", subject="none")
    message = base64.b64encode(wire.prefix(77) + b"\x06Ada").decode()
    with pytest.raises(ClientFailed, match="Schema 77 not found"):
        client.ask("decode", topic="users", bytes=message)


def test_references_are_resolved(client: Driver) -> None:
    """The client can register a schema that references a type of another subject, and can encode
    and decode with this schema."""
    client.ask("register", subject="address", schema=json.dumps(ADDRESS))
    given = {"subject": "people-value", "schema": json.dumps(PERSON), "references": [REFERENCE]}
    made = client.ask("register", **given)
    value = {"home": {"city": "Rome"}}
    encoded = client.ask("encode", topic="people", value=value, how="latest", **made)
    assert client.ask("decode", topic="people", bytes=encoded["bytes"])["value"] == value


def test_confluents_serializer_registers_what_it_writes(
    confluent: Driver, registry: Registry
) -> None:
    """Confluent's serializer works with its default settings. With these settings it also asks the
    registry whether the topic is associated with a particular subject. The serializer and our codec
    can read each other's messages."""
    encoded = confluent.ask("encode", topic="users", value={"name": "Ada"}, how="register")
    assert data(encoded)[:5] == wire.prefix(1)
    assert confluent.ask("subjects")["subjects"] == ["users-value"]
    assert ours(registry, data(encoded)) == [{"name": "Ada"}]
    codec = Codec(RegistryClient(registry.url).schema(1))
    (written,) = wire.add_prefix(1, codec.encode(pa.record_batch({"name": ["Grace"]}))).to_pylist()
    read = confluent.ask("decode", topic="users", bytes=base64.b64encode(written).decode())
    assert read["value"] == {"name": "Grace"}


def test_confluents_serializer_with_the_latest_version(confluent: Driver) -> None:
    """With useLatestVersion the serializer registers nothing. If the subject has no version, the
    serializer raises an error."""
    with pytest.raises(ClientFailed):
        confluent.ask("encode", topic="users", value={"name": "Ada"}, how="latest")
    confluent.ask("register", subject="users-value", schema=json.dumps(V1))
    confluent.ask("register", subject="users-value", schema=json.dumps(V2))
    encoded = confluent.ask("encode", topic="users", value={"name": "A", "age": 3}, how="latest")
    assert data(encoded)[:5] == wire.prefix(2)
    assert confluent.ask("versions", subject="users-value")["versions"] == [1, 2]


def test_confluents_administration(confluent: Driver) -> None:
    """Confluent's client can check compatibility, set compatibility levels, and delete subjects."""
    confluent.ask("register", subject="a/b c", schema=json.dumps(V1))
    ask = {"subject": "a/b c"}
    assert confluent.ask("compatible", **ask, schema=json.dumps(V2)) == {"compatible": True}
    assert confluent.ask("compatible", **ask, schema=json.dumps(BROKEN)) == {"compatible": False}
    assert confluent.ask("level", **ask, set="FULL") == {"level": "FULL"}
    assert confluent.ask("delete", **ask, permanent=False) == {"versions": [1]}
    assert confluent.ask("delete", **ask, permanent=True) == {"versions": [1]}
    assert confluent.ask("subjects") == {"subjects": []}


def test_kafkajs_encodes_by_id(kafkajs: Driver, registry: Registry) -> None:
    """When kafkajs first registers a schema, it also sets the subject's compatibility level. Our
    codec can read the messages that kafkajs writes."""
    made = kafkajs.ask("register", subject="users-value", schema=json.dumps(V1), level="FULL")
    encoded = kafkajs.ask("encode", **made, value={"name": "Ada"})
    assert ours(registry, data(encoded)) == [{"name": "Ada"}]
    assert kafkajs.ask("decode", bytes=encoded["bytes"])["value"] == {"name": "Ada"}
    assert kafkajs.ask("id_of", subject="users-value", version=1) == made
    with pytest.raises(ClientFailed, match="Compatibility does not match"):
        kafkajs.ask("register", subject="users-value", schema=json.dumps(V2), level="BACKWARD")
