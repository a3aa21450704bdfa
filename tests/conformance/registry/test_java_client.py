"""Confluent's Java client for schema registries, which Confluent's serializers use, works with our
registry.

On Maven Central this client is only available inside Flink's connector, where it has different
package names but is otherwise unchanged. This client is stricter than other clients, because it
fails if an answer contains an unknown key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from support.java_clients import JavaClients
from support.registry import Registry

pytestmark = pytest.mark.java

SHADED = "org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry"
V1 = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "age", "type": "int", "default": 0}]}
BROKEN = {**V1, "fields": [*V1["fields"], {"name": "must", "type": "int"}]}
ADDRESS = {"type": "record", "name": "a.Address", "fields": [{"name": "city", "type": "string"}]}
PERSON = {"type": "record", "name": "Person", "fields": [{"name": "home", "type": "a.Address"}]}


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClients]:
    """One JVM with the client's jars."""
    clients = JavaClients(tmp_path_factory.mktemp("java"), "registry")
    clients.start()
    yield clients
    clients.stop()


class Client:
    """Confluent's CachedSchemaRegistryClient, with schemas given as JSON."""

    def __init__(self, java: JavaClients, url: str) -> None:
        self._package = reduce(getattr, SHADED.split("."), java.jvm)
        self._client = self._package.client.CachedSchemaRegistryClient(url, 100)

    def schema(self, document: object, references: list[tuple[str, str, int]] | None = None) -> Any:
        text = json.dumps(document)
        if references is None:
            return self._package.avro.AvroSchema(text)
        made = self._package.client.rest.entities.SchemaReference
        listed = [made(*each) for each in references]
        return self._client.parseSchema("AVRO", text, listed).get()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(self._client, name)  # type: ignore[no-any-return]


@pytest.fixture
def client(java: JavaClients, registry: Registry) -> Client:
    return Client(java, registry.url)


def refused(call: Callable[[], Any]) -> tuple[int, int, str]:
    """Returns the status, error code and message of the RestClientException that the call
    raises."""
    with pytest.raises(Py4JJavaError) as caught:
        call()
    error = caught.value.java_exception
    return error.getStatus(), error.getErrorCode(), error.getMessage()


def test_what_a_serializer_asks(client: Client) -> None:
    """The client can register a schema, gets the same id if it registers the schema again, and
    finds the schema by its id. The found schema is equal to the registered schema."""
    schema = client.schema(V1)
    assert client.register("users-value", schema) == 1
    assert client.register("users-value", schema, True) == 1
    assert client.getId("users-value", schema) == 1
    assert client.getVersion("users-value", schema) == 1
    assert client.getSchemaById(1).equals(schema)
    assert client.getSchemaBySubjectAndId("users-value", 1).equals(schema)
    assert [*client.getAllSubjectsById(1)] == ["users-value"]


def test_a_deserializer_with_the_latest_version(client: Client) -> None:
    """The client can get the metadata of the latest version and of a given version. It can also get
    the lists of all versions and of all subjects."""
    client.register("users-value", client.schema(V1))
    client.register("users-value", client.schema(V2))
    latest = client.getLatestSchemaMetadata("users-value")
    assert (latest.getId(), latest.getVersion(), latest.getSchemaType()) == (2, 2, "AVRO")
    assert json.loads(client.getSchemaMetadata("users-value", 1).getSchema()) == V1
    assert [*client.getAllVersions("users-value")] == [1, 2]
    assert [*client.getAllSubjects()] == ["users-value"]
    assert [*client.getAllSubjectsByPrefix("users")] == ["users-value"]


def test_compatibility_and_levels(client: Client) -> None:
    """The client can ask whether a schema is compatible, and gets the reasons if it is not. The
    registration of an incompatible schema gets status 409."""
    client.register("users-value", client.schema(V1))
    assert client.testCompatibility("users-value", client.schema(V2)) is True
    assert client.testCompatibility("users-value", client.schema(BROKEN)) is False
    reasons = [*client.testCompatibilityVerbose("users-value", client.schema(BROKEN))]
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in reasons[0]
    status, code, message = refused(lambda: client.register("users-value", client.schema(BROKEN)))
    assert (status, code) == (409, 409)
    assert "must" in message
    assert client.updateCompatibility("users-value", "FULL") == "FULL"
    assert client.getCompatibility("users-value") == "FULL"
    client.deleteCompatibility("users-value")
    assert client.getMode() == "READWRITE"


def test_references(client: Client) -> None:
    """The client resolves a schema's references. A schema that the client gets by its id contains
    its references."""
    client.register("address", client.schema(ADDRESS))
    person = client.schema(PERSON, [("a.Address", "address", 1)])
    assert client.register("people-value", person) == 2
    found = client.getSchemaById(2)
    assert [each.getSubject() for each in found.references()] == ["address"]
    assert found.rawSchema().getField("home").schema().getFullName() == "a.Address"


def test_deletion(client: Client) -> None:
    """The client can soft-delete a subject, and then delete it permanently."""
    client.register("users-value", client.schema(V1))
    assert [*client.deleteSubject("users-value")] == [1]
    assert [*client.getAllSubjects(True)] == ["users-value"]
    assert [*client.deleteSubject("users-value", True)] == [1]
    assert [*client.getAllSubjects(True)] == []


def test_what_is_not_there_has_its_code(client: Client) -> None:
    """An unknown subject, version or id gets the error code that the client expects."""
    client.register("users-value", client.schema(V1))
    assert refused(lambda: client.getLatestSchemaMetadata("none"))[:2] == (404, 40401)
    assert refused(lambda: client.getSchemaMetadata("users-value", 7))[:2] == (404, 40402)
    assert refused(lambda: client.getSchemaById(77))[:2] == (404, 40403)
    assert refused(lambda: client.getId("users-value", client.schema(V2)))[:2] == (404, 40403)


def test_an_import_keeps_its_id(client: Client) -> None:
    """In the mode IMPORT, a client can register a schema under a given id, as tools that copy
    registries do."""
    client.setMode("IMPORT")
    assert client.register("users-value", client.schema(V1), 3, 70) == 70
    client.setMode("READWRITE")
    assert client.register("users-value", client.schema(V2)) == 71
