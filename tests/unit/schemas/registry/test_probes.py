"""Tests requests that standard clients of a schema registry really send, and the answers that the
clients need.

The requests were recorded from confluent-kafka 2.16 (serializer, deserializer, client), or taken
from the sources of libserdes (kcat), kafbat's kafka-ui and AKHQ.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.registry_http import Registry, record

CONFLUENT = {
    "Accept": "application/vnd.schemaregistry.v1+json,"
    " application/vnd.schemaregistry+json, application/json",
    "Confluent-Client-Version": "python/2.16.0",
}
WITH_BODY = {
    "Accept": "*/*",
    "Content-Type": "application/vnd.schemaregistry.v1+json",
    "Confluent-Accept-Unknown-Properties": "true",
    "Confluent-Client-Version": "python/2.16.0",
}
SCHEMA = record(a=None)
BODY = {"schema": SCHEMA, "schemaType": "AVRO", "references": []}
STORED = json.dumps(json.loads(SCHEMA), separators=(",", ":"))
USE = {"subject": "t-value", "version": 1}
VERSION = {"subject": "t-value", "version": 1, "id": 1, "schema": STORED}


@pytest.fixture
def filled(registry: Registry) -> Registry:
    registry.register("t-value", SCHEMA)
    return registry


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/schemas/ids/1?subject=t-value", {"schema": STORED}),
        ("/schemas/ids/1?subject=t-value&format=", {"schema": STORED}),
        ("/schemas/ids/1", {"schema": STORED}),
        ("/subjects/t-value/versions/latest", VERSION),
        ("/subjects/t-value/versions/-1", VERSION),
        ("/subjects/t-value/versions?deleted=false&deleted_only=false&offset=0&limit=-1", [1]),
        ("/subjects?deleted=false&deleted_only=false&offset=0&limit=-1", ["t-value"]),
        ("/schemas/ids/1/versions?deleted=false&offset=0&limit=-1", [USE]),
        ("/schemas/ids/1/subjects", ["t-value"]),
        ("/config/t-value?defaultToGlobal=true", {"compatibilityLevel": "BACKWARD"}),
        ("/config", {"compatibilityLevel": "BACKWARD"}),
        ("/schemas/types", ["AVRO"]),
        ("/", {}),
    ],
)
def test_reads(filled: Registry, path: str, expected: Any) -> None:
    """The registry answers the read requests of standard clients, with all query parameters and
    headers that these clients send."""
    assert filled.good("GET", path, headers=CONFLUENT) == expected


@pytest.mark.parametrize(
    ("method", "path", "body", "key", "expected"),
    [
        ("POST", "/subjects/t-value/versions?normalize=False", BODY, "id", 1),
        ("POST", "/subjects/t-value?normalize=False&deleted=False", BODY, "version", 1),
        (
            "POST",
            "/compatibility/subjects/t-value/versions/latest?normalize=False&verbose=False",
            BODY,
            "is_compatible",
            True,
        ),
        (
            "POST",
            "/compatibility/subjects/t-value/versions?normalize=False&verbose=False",
            BODY,
            "is_compatible",
            True,
        ),
        ("PUT", "/config/t-value", {"compatibility": "FULL"}, "compatibility", "FULL"),
        ("PUT", "/mode/t-value?force=False", {"mode": "READONLY"}, "mode", "READONLY"),
    ],
)
def test_requests_with_a_body(
    filled: Registry, method: str, path: str, body: Any, key: str, expected: Any
) -> None:
    """The registry answers those requests of standard clients that have a body. The text False
    (from Python) in a query counts as false."""
    assert filled.good(method, path, body, headers=WITH_BODY)[key] == expected


def test_the_body_that_libserdes_sends(registry: Registry) -> None:
    """libserdes can register a schema, although its request's body has only the schema, without
    type and references. The request has the registry's own content type."""
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json", "User-Agent": "libserdes"}
    path = "/subjects/t-value/versions"
    assert registry.good("POST", path, {"schema": SCHEMA}, headers=headers) == {"id": 1}


@pytest.mark.parametrize(
    "path",
    [
        "/associations/resources/-/t?resourceType=topic&associationType=value",
        "/associations/resources/-/t?resourceType=topic&associationType=key&lifecycle=STRONG",
        "/associations/subjects/t-value",
    ],
)
def test_the_probe_for_associations_is_404(filled: Registry, path: str) -> None:
    """A request for the associations of topics with subjects gets 404, with error_code and message.
    Serializers with default settings send this request first, and continue only after a 404."""
    status, document = filled.ask("GET", path, headers=CONFLUENT)
    assert (status, document) == (404, {"error_code": 404, "message": "HTTP 404 Not Found"})


def test_a_subject_is_deleted_by_its_encoded_name(registry: Registry) -> None:
    """A subject whose name contains `/` and a blank can be deleted under its percent-encoded
    name."""
    registry.register("s%2Fx%20y", SCHEMA)
    assert registry.good("DELETE", "/subjects/s%2Fx%20y?permanent=False", headers=CONFLUENT) == [1]
    assert registry.good("DELETE", "/subjects/s%2Fx%20y?permanent=True", headers=CONFLUENT) == [1]
