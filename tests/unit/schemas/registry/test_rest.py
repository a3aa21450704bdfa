"""The REST API handles the requests of standard clients, and gives exactly the answers that they
need."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from skidway.schemas.compatibility import check
from skidway.schemas.registry.decisions import comparison, submission
from skidway.schemas.registry.rest import BODY_BYTES_MAX
from skidway.schemas.registry.rest.application import (
    LARGE_AT_ONCE,
    LARGE_BYTES,
    LARGE_WAITING_MAX,
    LOG_THREADS,
    WAITING_MAX,
)
from support.registry_http import Registry, record

A, AB, AC = record(a=None), record(a=None, b=0), record(a=None, c=None)


def test_the_first_message_of_a_default_serializer(registry: Registry) -> None:
    """A serializer with default settings first asks for associations of the topic, and needs a 404
    with a JSON object as the answer. Then it registers its schema with a request that has query
    parameters."""
    probe = "/associations/resources/-/t?resourceType=topic&associationType=value"
    assert registry.refused("GET", probe) == (404, 404)
    body = {"schema": A, "schemaType": "AVRO", "references": []}
    path = "/subjects/t-value/versions?normalize=False"
    assert registry.good("POST", path, body) == {"id": 1}
    assert (
        registry.good("GET", "/schemas/ids/1?subject=t-value")["schema"]
        == registry.good("GET", "/subjects/t-value/versions/1")["schema"]
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nonsense", 404),
        ("GET", "/subjects/a/b/c/d", 404),
        ("PATCH", "/subjects", 405),
        ("PUT", "/subjects/a/versions", 405),
        ("GET", "/contexts/.x/subjects", 404),
        ("GET", "/exporters", 404),
        ("GET", "/subjects/a/metadata", 404),
    ],
)
def test_unknown_routes_answer_like_known_ones(
    registry: Registry, method: str, path: str, status: int
) -> None:
    """The answer to a request for an unknown path has error_code and message, like other errors,
    because clients read these two keys first."""
    assert registry.refused(method, path) == (status, status)


def test_a_version_has_the_documented_keys_only(registry: Registry) -> None:
    """The registry's answer for a version of a subject has only the documented keys, because strict
    Java clients fail on other keys."""
    registry.register("s", A)
    for path in (
        "/subjects/s/versions/1",
        "/subjects/s/versions/latest",
        "/subjects/s/versions/-1",
    ):
        found = registry.good("GET", path)
        assert list(found) == ["subject", "version", "id", "schema"]
        assert (found["subject"], found["version"], found["id"]) == ("s", 1, 1)
    assert list(registry.good("GET", "/schemas/ids/1")) == ["schema"]
    assert registry.good("GET", "/subjects/s/versions") == [1]


def test_subjects_may_contain_slashes_and_spaces(registry: Registry) -> None:
    """Percent-encoded slashes and spaces are part of a subject's name."""
    registry.register("a%2Fb%20c%C3%A9", A)
    assert registry.good("GET", "/subjects") == ["a/b cé"]
    assert registry.good("GET", "/subjects/a%2Fb%20c%C3%A9/versions/latest")["subject"] == "a/b cé"
    assert registry.good("DELETE", "/subjects/a%2Fb%20c%C3%A9") == [1]
    assert registry.refused("GET", "/subjects/%FF/versions") == (400, 400)


def test_white_space_and_order_make_no_new_schema(registry: Registry) -> None:
    """Two texts that differ only in white space and in the order of keys are the same schema. A
    text with another default, or with the fields in another order, is another schema."""
    spaced = json.dumps(json.loads(AB), indent=8, sort_keys=True)
    assert registry.register("s", AB) == registry.register("t", spaced)
    assert registry.register("u", record(a=None, b=1)) == 2
    assert registry.register("v", record(b=0, a=None)) == 3


def test_an_incompatible_schema_is_409_with_the_reason(registry: Registry) -> None:
    """A registration of an incompatible schema gets the status 409, with Confluent's message, which
    names the field and its path in the schema."""
    registry.register("s", A)
    status, document = registry.ask("POST", "/subjects/s/versions", {"schema": AC})
    assert (status, document["error_code"]) == (409, 409)
    for words in (
        'for subject "s"',
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "/fields/1",
        "field 'c'",
    ):
        assert words in document["message"]
    assert registry.good("GET", "/subjects/s/versions") == [1]


def test_the_compatibility_check_says_why_when_asked(registry: Registry) -> None:
    """The answer to a compatibility check has messages only if verbose is true, in upper or lower
    case (Python sends True)."""
    registry.register("s", A)
    path = "/compatibility/subjects/s/versions/latest"
    assert registry.good("POST", path, {"schema": AB}) == {"is_compatible": True}
    assert registry.good("POST", path, {"schema": AC}) == {"is_compatible": False}
    verbose = registry.good("POST", f"{path}?verbose=True&normalize=False", {"schema": AC})
    assert "field 'c'" in verbose["messages"][0]
    every = registry.good("POST", "/compatibility/subjects/s/versions", {"schema": AC})
    assert every == {"is_compatible": False}


def test_a_subject_without_schemas_takes_any_but_a_number_must_exist(registry: Registry) -> None:
    """Any schema is compatible with a subject without versions. A check against a version that does
    not exist gets 40402."""
    body = {"schema": A}
    for version in ("/latest", "/-1", ""):
        path = f"/compatibility/subjects/none/versions{version}"
        assert registry.good("POST", path, body) == {"is_compatible": True}
    registry.register("s", A)
    for subject in ("s", "none"):
        path = f"/compatibility/subjects/{subject}/versions/7"
        assert registry.refused("POST", path, body) == (404, 40402)


def test_levels_are_read_and_written_under_different_keys(registry: Registry) -> None:
    """The answer to GET has a level under the key compatibilityLevel, the body of PUT has it under
    the key compatibility, and DELETE restores the default."""
    assert registry.good("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.refused("GET", "/config/s") == (404, 40408)
    assert registry.good("GET", "/config/s?defaultToGlobal=true") == {
        "compatibilityLevel": "BACKWARD"
    }
    assert registry.good("PUT", "/config/s", {"compatibility": "none"}) == {"compatibility": "NONE"}
    assert registry.good("GET", "/config/s") == {"compatibilityLevel": "NONE"}
    registry.register("s", A)
    registry.register("s", AC)
    assert registry.good("DELETE", "/config/s") == {"compatibilityLevel": "NONE"}
    assert registry.refused("DELETE", "/config/s") == (404, 40401)
    assert registry.good("PUT", "/config", {"compatibility": "FULL"}) == {"compatibility": "FULL"}
    assert registry.good("GET", "/config") == {"compatibilityLevel": "FULL"}
    assert registry.good("DELETE", "/config") == {"compatibilityLevel": "FULL"}
    assert registry.good("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.refused("PUT", "/config", {"compatibility": "SOME"}) == (422, 42203)


@pytest.mark.parametrize("subject", ["", "/s"])
@pytest.mark.parametrize(
    "body", [{}, {"compatibilityLevel": "FULL_TRANSITIVE"}, {"compatiblity": "NONE"}]
)
def test_a_configuration_without_compatibility_changes_no_level(
    registry: Registry, subject: str, body: dict[str, str]
) -> None:
    """A request to set the configuration changes no level if the request contains no level, or if
    the level's key is mistyped. The level null removes the level that was set."""
    path = f"/config{subject}"
    assert registry.good("PUT", path, body) == {}
    assert registry.good("GET", "/config") == {"compatibilityLevel": "BACKWARD"}
    assert registry.refused("GET", "/config/s") == (404, 40408)
    registry.good("PUT", path, {"compatibility": "FULL"})
    assert registry.good("PUT", path, body) == {"compatibility": "FULL"}
    assert registry.good("GET", path) == {"compatibilityLevel": "FULL"}
    assert registry.good("PUT", path, {"compatibility": None}) == {}
    assert registry.good("GET", f"{path}?defaultToGlobal=true") == {
        "compatibilityLevel": "BACKWARD"
    }


@pytest.mark.parametrize("level", ["", "null", 7, True, ["FULL"], {"level": "FULL"}])
def test_what_is_no_level_is_42203(registry: Registry, level: Any) -> None:
    """An invalid compatibility level gets the error code 42203."""
    assert registry.refused("PUT", "/config/s", {"compatibility": level}) == (422, 42203)
    assert registry.refused("PUT", "/config", {"compatibility": level}) == (422, 42203)


@pytest.mark.parametrize("body", [{}, {"mode": None}, {"Mode": "READONLY"}, {"mode": 7}])
def test_a_mode_that_is_missing_is_42204(registry: Registry, body: dict[str, Any]) -> None:
    """If a request to set a mode does not contain a mode, the request gets the error code 42204 and
    changes nothing."""
    for path in ("/mode", "/mode/s"):
        assert registry.refused("PUT", path, body) == (422, 42204)
    assert registry.good("GET", "/mode") == {"mode": "READWRITE"}


def test_transitive_levels_look_at_every_version(registry: Registry) -> None:
    """At a transitive level a new schema is checked against every version. At any other level it is
    checked only against the latest version."""
    registry.good("PUT", "/config/s", {"compatibility": "BACKWARD"})
    for schema in (A, record(a=None, c=0)):
        registry.register("s", schema)
    latest = "/compatibility/subjects/s/versions"
    assert registry.good("POST", latest, {"schema": AC}) == {"is_compatible": True}
    registry.good("PUT", "/config/s", {"compatibility": "BACKWARD_TRANSITIVE"})
    assert registry.good("POST", latest, {"schema": AC}) == {"is_compatible": False}


def test_lookup_tells_an_unknown_subject_from_an_unknown_schema(registry: Registry) -> None:
    """A lookup of a schema returns its version and id. If the subject is unknown, the answer has
    the error code 40401; if the subject does not have the schema, 40403."""
    registry.register("s", A)
    path = "/subjects/s?normalize=False&deleted=False"
    found = registry.good("POST", path, {"schema": A})
    assert (found["subject"], found["version"], found["id"]) == ("s", 1, 1)
    assert registry.refused("POST", "/subjects/s", {"schema": AB}) == (404, 40403)
    assert registry.refused("POST", "/subjects/none", {"schema": A}) == (404, 40401)


def test_deletion_is_soft_first_and_then_for_ever(registry: Registry) -> None:
    """A version is first soft-deleted, and can then be deleted permanently. A deletion that is not
    allowed gets Confluent's error code. A soft-deleted schema can still be read by its id."""
    registry.register("s", A)
    registry.register("s", AB)
    assert registry.refused("DELETE", "/subjects/s?permanent=true") == (404, 40405)
    assert registry.refused("DELETE", "/subjects/s/versions/1?permanent=true") == (404, 40407)
    assert registry.good("DELETE", "/subjects/s/versions/1") == 1
    assert registry.refused("DELETE", "/subjects/s/versions/1") == (404, 40406)
    assert registry.good("GET", "/subjects/s/versions") == [2]
    assert registry.good("GET", "/subjects/s/versions?deleted=True") == [1, 2]
    assert registry.refused("GET", "/subjects/s/versions/1") == (404, 40402)
    assert "schema" in registry.good("GET", "/schemas/ids/1")
    assert registry.good("DELETE", "/subjects/s") == [2]
    assert registry.refused("DELETE", "/subjects/s") == (404, 40404)
    assert registry.refused("GET", "/subjects/s/versions") == (404, 40401)
    assert registry.good("GET", "/subjects?deleted=true") == ["s"]
    assert registry.good("GET", "/subjects?deletedOnly=true") == ["s"]
    assert registry.good("GET", "/subjects") == []
    assert registry.good("DELETE", "/subjects/s?permanent=true") == [1, 2]
    assert registry.refused("GET", "/schemas/ids/1") == (404, 40403)
    assert registry.good("GET", "/subjects?deleted=true") == []
    assert registry.register("s", record(z=None)) == 3
    assert registry.good("GET", "/subjects/s/versions") == [1]


def test_a_deleted_schema_comes_back_under_its_id_as_a_new_version(registry: Registry) -> None:
    """If a deleted schema is registered again, it keeps its id, and becomes a new version of the
    subject."""
    registry.register("s", A)
    registry.register("s", AB)
    registry.good("DELETE", "/subjects/s/versions/2")
    assert registry.register("s", AB) == 2
    assert registry.good("GET", "/subjects/s/versions?deleted=true") == [1, 3]


def test_the_number_of_a_version_is_not_given_again(registry: Registry) -> None:
    """The number of a deleted version is not used again while its subject has another version."""
    registry.register("s", A)
    registry.register("s", AB)
    registry.good("DELETE", "/subjects/s/versions/2")
    registry.good("DELETE", "/subjects/s/versions/2?permanent=true")
    assert registry.register("s", AB) == 2
    assert registry.good("GET", "/subjects/s/versions?deleted=true") == [1, 3]


def test_who_uses_an_id(registry: Registry) -> None:
    """For a schema id, clients such as dashboards can request the subjects and versions that have
    the schema with this id."""
    registry.register("s", A)
    registry.register("t", A)
    both = [{"subject": "s", "version": 1}, {"subject": "t", "version": 1}]
    assert registry.good("GET", "/schemas/ids/1/versions") == both
    assert registry.good("GET", "/schemas/ids/1/subjects") == ["s", "t"]
    assert registry.good("GET", "/schemas/ids/1/schema")["name"] == "R"
    assert registry.good("GET", "/subjects/s/versions/1/schema")["name"] == "R"
    assert registry.good("GET", "/subjects/s/versions/1/referencedby") == []
    assert [each["subject"] for each in registry.good("GET", "/schemas")] == ["s", "t"]
    assert registry.good("GET", "/schemas/ids/1?fetchMaxId=true")["maxId"] == 1


def test_lists_come_in_pages(registry: Registry) -> None:
    """Requests for lists may have the parameters offset and limit, where a limit of -1 means no
    limit. Unknown parameters are ignored."""
    for name in "abc":
        registry.register(name, A)
    query = "/subjects?deleted_only=False&deleted=false&offset=0&limit=-1&surprise=1"
    assert registry.good("GET", query) == ["a", "b", "c"]
    assert registry.good("GET", "/subjects?offset=1&limit=1") == ["b"]
    assert registry.good("GET", "/subjects?subjectPrefix=c") == ["c"]
    assert registry.good("GET", "/subjects?subjectPrefix=:*:") == ["a", "b", "c"]
    assert registry.refused("GET", "/subjects?limit=x") == (400, 400)


def test_small_things_that_clients_ask(registry: Registry) -> None:
    """Clients can request the schema types, the contexts, the cluster's id, the registry's version,
    and the root path."""
    assert registry.good("GET", "/schemas/types") == ["AVRO"]
    assert registry.good("GET", "/contexts") == ["."]
    assert set(registry.good("GET", "/v1/metadata/id")) == {"id", "scope"}
    assert set(registry.good("GET", "/v1/metadata/version")) == {"version", "commitId"}
    assert registry.good("GET", "/") == {}


def test_guids_for_clients_that_take_them(registry: Registry) -> None:
    """Answers contain a schema's guid only for clients that accept unknown keys. Every client may
    look up a schema by guid."""
    accepts = {"Confluent-Accept-Unknown-Properties": "true"}
    path = "/subjects/s/versions"
    made = registry.good("POST", path, {"schema": A}, headers=accepts)
    assert set(made) == {"id", "version", "guid"}
    assert (made["id"], made["version"]) == (1, 1)
    found = registry.good("POST", "/subjects/s", {"schema": A}, headers=accepts)
    assert found["guid"] == made["guid"]
    assert "guid" not in registry.good("POST", "/subjects/s", {"schema": A})
    by_guid = registry.good("GET", f"/schemas/guids/{made['guid']}")
    assert by_guid == registry.good("GET", "/schemas/ids/1")
    ids = registry.good("GET", f"/schemas/guids/{made['guid']}/ids")
    assert ids == [{"context": ".", "id": 1}]
    assert registry.refused("GET", "/schemas/guids/0") == (404, 40403)
    registry.register("s", AB)
    other = registry.good("POST", path, {"schema": AB}, headers=accepts)
    assert other["guid"] != made["guid"]


def test_normalize_makes_one_schema_of_two_spellings(registry: Registry) -> None:
    """With normalize=true, two spellings of a schema count as one schema. With normalize=false they
    do not. The values may begin with an upper case letter (Python sends True and False)."""
    one, two = (
        json.dumps({"type": "record", "name": "R", "fields": [], **extra})
        for extra in ({"x": 1, "y": 2}, {"y": 2, "x": 1})
    )
    body_one, body_two = {"schema": one}, {"schema": two}
    assert registry.good("POST", "/subjects/a/versions?normalize=true", body_one) == {"id": 1}
    assert registry.good("POST", "/subjects/a/versions?normalize=True", body_two) == {"id": 1}
    assert registry.good("POST", "/subjects/a?normalize=true", body_two)["id"] == 1
    assert registry.good("POST", "/subjects/b/versions?normalize=False", body_two) == {"id": 2}
    assert registry.good("POST", "/subjects/c/versions?normalize=false", body_two) == {"id": 2}


def test_the_text_of_a_schema_goes_out_as_it_is_kept(registry: Registry) -> None:
    """The registry returns a schema exactly in its stored text, with the same digits and
    escapes."""
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1E10}]}'
    registry.register("s", text)
    kept = registry.good("GET", "/schemas/ids/1")["schema"]
    for path in ("/schemas/ids/1/schema", "/subjects/s/versions/1/schema"):
        assert registry.http.get(path).text == kept


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("{", "no JSON"),
        ('{"type":"recor"}', "recor"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
            "default",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
            "twice",
        ),
        ('{"type":"record","name":"R","fields":[{"name":"a-b","type":"int"}]}', "a-b"),
        ('["int","int"]', "twice"),
        ('{"type":"fixed","name":"F","size":-1}', "size"),
        ('{"type":"enum","name":"E","symbols":["A"],"doc":"\\ud800"}', "UTF-8"),
        ("[" * 3000 + "]" * 3000, "nested"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1e999}]}',
            "number",
        ),
        ("", "no schema"),
        (None, "no schema"),
        (7, "no schema"),
    ],
)
def test_what_is_no_schema_is_42201_with_a_sentence(
    registry: Registry, schema: Any, words: str
) -> None:
    """An invalid schema is refused with the error code 42201 and a message."""
    status, document = registry.ask("POST", "/subjects/s/versions", {"schema": schema})
    assert (status, document["error_code"]) == (422, 42201)
    assert words in document["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"schemaType": "PROTOBUF"},
        {"schemaType": "JSON"},
        {"ruleSet": {"domainRules": [{"name": "encrypt"}]}},
        {"metadata": {"tags": {"a": ["PII"]}}},
    ],
)
def test_what_is_not_supported_is_said(registry: Registry, body: dict[str, Any]) -> None:
    """A schema with rules, or of a type other than Avro, is refused as not supported."""
    status, document = registry.ask("POST", "/subjects/s/versions", {"schema": A, **body})
    assert (status, document["error_code"]) == (422, 42201)
    assert "not supported" in document["message"]


@pytest.mark.parametrize("subject", ["__GLOBAL", "__EMPTY", "a%00b", "x" * 1001])
def test_names_that_no_subject_can_have(registry: Registry, subject: str) -> None:
    """A request with an invalid name of a subject gets the error code 42208."""
    assert registry.refused("POST", f"/subjects/{subject}/versions", {"schema": A}) == (422, 42208)
    assert registry.refused("PUT", f"/config/{subject}", {"compatibility": "NONE"}) == (422, 42208)


@pytest.mark.parametrize(
    "version",
    [
        "0",
        "x",
        "2147483648",
        "99999999999999999999",
        "-2",
        "1.0",
        "%C2%B2",
        "0" * 11 + "1" + "9" * 5000,
    ],
)
def test_what_is_no_version_is_42202(registry: Registry, version: str) -> None:
    """A version must be a number from 1 to 2^31-1, `latest` or -1. Any other version gets 42202."""
    registry.register("s", A)
    assert registry.refused("GET", f"/subjects/s/versions/{version}") == (422, 42202)


@pytest.mark.parametrize("schema_id", ["0", "2", "x", "-1", "99999999999"])
def test_an_id_that_is_not_there_is_40403(registry: Registry, schema_id: str) -> None:
    """A request for a schema id that does not exist gets the error code 40403, even if the id is
    not a number."""
    registry.register("s", A)
    assert registry.refused("GET", f"/schemas/ids/{schema_id}") == (404, 40403)


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '"x"', "[" * 100_000])
def test_a_body_that_is_no_object_is_400(registry: Registry, content: str) -> None:
    """A request whose body is not a JSON object gets 400. It does not get a 5xx status, because
    clients would then try again."""
    answer = registry.http.post("/subjects/s/versions", content=content)
    assert (answer.status_code, answer.json()["error_code"]) == (400, 400)


def test_a_body_past_the_limit_is_413(registry: Registry) -> None:
    """A request whose body is larger than the limit gets 413. The rest of the body is not read."""
    sizes = [1, 1, BODY_BYTES_MAX]

    async def receive() -> Any:
        return {"type": "http.request", "body": b"x" * sizes.pop(), "more_body": bool(sizes)}

    sent = asyncio.run(answer_of(registry.app, "POST", "/subjects/s/versions", receive))
    assert (sent[0]["status"], json.loads(sent[1]["body"])["error_code"]) == (413, 413)
    assert len(sizes) == 1


def test_an_id_of_the_clients_own_is_not_permitted(registry: Registry) -> None:
    """In the mode READWRITE, a request with an id that the client chose gets the error code 42205.
    If it were accepted, records with that id could be read with another schema."""
    body = {"schema": A, "id": 77}
    assert registry.refused("POST", "/subjects/s/versions", body) == (422, 42205)
    assert registry.good("POST", "/subjects/s/versions", {"schema": A, "id": -1}) == {"id": 1}


def test_while_the_store_is_away_reads_go_on(registry: Registry) -> None:
    """While ZooKeeper, where the registry stores its log, cannot be reached, writes get 503. Known
    schemas can still be read, so a producer that starts gets the id of its known schema."""
    registry.register("s", A)
    registry.log.connected = False
    assert registry.refused("POST", "/subjects/s/versions", {"schema": AB}) == (503, 503)
    assert registry.refused("DELETE", "/subjects/s") == (503, 503)
    assert registry.good("GET", "/subjects") == ["s"]
    assert "schema" in registry.good("GET", "/schemas/ids/1")
    assert registry.register("s", A) == 1
    assert registry.good("POST", "/subjects/s", {"schema": A})["id"] == 1
    assert registry.refused("GET", "/schemas/ids/7") == (503, 503)


def test_a_store_that_hangs_holds_up_no_reader() -> None:
    """The registry answers reads at once, even if more registrations wait for ZooKeeper than the
    registry has threads for them."""
    registry = Registry()
    registry.register("s", A)
    gate = threading.Event()
    registry.log.meanwhile.append(lambda: gate.wait(60))

    async def ask(method: str, path: str, body: Any = None) -> int:
        return await status_of(registry.app, method, path, body)

    async def both() -> tuple[list[int], list[int]]:
        many = range(2 * LOG_THREADS)
        writes = [
            asyncio.create_task(ask("POST", f"/subjects/t{n}/versions", {"schema": AB}))
            for n in many
        ]
        try:
            async with asyncio.timeout(30):
                await asyncio.to_thread(registry.log.reached.wait, 30)
                reads = [await ask("GET", "/schemas/ids/1") for _ in many]
        finally:
            gate.set()
        return reads, await asyncio.gather(*writes)

    reads, writes = asyncio.run(both())
    assert set(reads) == {200}
    assert set(writes) == {200}


def test_many_requests_of_one_address_hold_up_no_other() -> None:
    """Of more requests for unknown ids than may wait, which all ask ZooKeeper, some are refused
    with 503, all of them of the address that sends them: others can still register."""
    registry = Registry()
    registry.register("s", A)
    gate = threading.Event()
    registry.log.meanwhile.append(lambda: gate.wait(60))

    async def ask(method: str, path: str, address: str, body: Any = None) -> int:
        return await status_of(registry.app, method, path, body, address)

    async def both() -> tuple[list[int], list[int]]:
        many = [
            asyncio.create_task(ask("GET", "/schemas/ids/99999", "bad"))
            for _ in range(WAITING_MAX + LOG_THREADS)
        ]
        try:
            async with asyncio.timeout(60):
                await asyncio.to_thread(registry.log.reached.wait, 30)
                refused = await next(asyncio.as_completed(many))
                good = [
                    asyncio.create_task(
                        ask("POST", f"/subjects/t{n}/versions", f"g{n}", {"schema": AB})
                    )
                    for n in range(10)
                ]
                good += [asyncio.create_task(ask("GET", "/schemas/ids/1", "g")) for _ in range(10)]
                await good[-1]
        finally:
            gate.set()
        return await asyncio.gather(*many), [refused, *await asyncio.gather(*good)]

    bad, good = asyncio.run(both())
    assert set(bad) == {404, 503}
    assert good == [503] + [200] * 20


def test_few_large_schemas_are_parsed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many large schemas come, two are parsed at once, and one of each address, as a parsed
    schema takes many times its bytes. Small requests of the same address are answered meanwhile."""
    registry = Registry()
    registry.register("s", A)
    large = record(**{f"f{n}": None for n in range(LARGE_BYTES // 20)})
    gate, parsing = threading.Event(), list[int]()
    parse = submission.submitted

    def slow(schemas: Any, asked: Any, *more: Any) -> Any:
        if asked.text == large:
            parsing.append(1)
            assert gate.wait(60)
        return parse(schemas, asked, *more)

    monkeypatch.setattr(submission, "submitted", slow)

    def ask(schema: str, address: str) -> asyncio.Task[int]:
        body = {"schema": schema}
        return asyncio.create_task(status_of(registry.app, "POST", "/subjects/s", body, address))

    async def both() -> tuple[list[int], int, list[int]]:
        many = [ask(large, address) for address in ["a"] * (LARGE_WAITING_MAX + 1) + ["b"] * 3]
        try:
            async with asyncio.timeout(60):
                good = [await ask(A, "a") for _ in range(20)]
                while len(parsing) < LARGE_AT_ONCE:
                    await asyncio.sleep(0)
                good += [await ask(A, "c") for _ in range(20)]
                at_once = len(parsing)
        finally:
            gate.set()
        return good, at_once, [await each for each in many]

    good, at_once, found = asyncio.run(both())
    assert set(good) == {200}
    assert at_once == LARGE_AT_ONCE == 2
    assert (found.count(503), found.count(404)) == (2, LARGE_WAITING_MAX + 2)


async def status_of(
    app: Any, method: str, path: str, body: Any = None, address: str = "10.0.0.1"
) -> int:
    content = b"" if body is None else json.dumps(body).encode()
    messages = [{"type": "http.request", "body": content, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    return int((await answer_of(app, method, path, receive, address))[0]["status"])


async def answer_of(
    app: Any, method: str, path: str, receive: Any, address: str = "10.0.0.1"
) -> list[Any]:
    """Makes a request whose body comes from `receive`. Returns the messages of the answer."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": [], "http_version": "1.1", "scheme": "http"}
    scope["client"] = (address, 1)
    await app(scope, receive, send)
    return sent


def test_half_a_character_is_refused_for_good(registry: Registry) -> None:
    """JSON can contain half of a surrogate pair, which cannot be stored as UTF-8. A request with
    such a character is refused with a status after which clients do not repeat the request."""
    registry.register("s", A)
    for given in ({"name": "\ud800", "subject": "s"}, {"name": "R", "subject": "\ud800"}):
        body = {"schema": record("Q"), "references": [{**given, "version": 1}]}
        assert registry.refused("POST", "/subjects/q/versions", body) == (422, 42201)


@pytest.mark.parametrize("query", ["", "?normalize=true"])
def test_deep_values_are_refused_for_good(registry: Registry, query: str) -> None:
    """If a property or default is nested so deeply that readers of the schema could exhaust their
    stack, the schema is refused. Clients do not repeat the request after this error."""
    for deep in ("[" * 800 + "]" * 800, '{"a":' * 800 + "1" + "}" * 800):
        mine = f'{{"type":"int","p":{deep}}}'
        field = f'{{"name":"a","type":"int","default":{deep}}}'
        for schema in (mine, f'{{"type":"record","name":"R","fields":[{field}]}}'):
            found = registry.refused("POST", f"/subjects/s/versions{query}", {"schema": schema})
            assert found == (422, 42201)


def test_a_long_comparison_holds_up_no_other_writer(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the registry checks the compatibility of a schema, which may take long, other schemas
    can be registered. The check is made only once, even if other schemas were registered meanwhile.
    """
    registry.register("s", A)
    judged: list[int] = []

    def slow(*given: Any) -> Any:
        judged.append(1)
        with ThreadPoolExecutor(1) as other:
            assert other.submit(registry.register, "o", A).result(timeout=60) == 1
        return check(*given)

    monkeypatch.setattr(comparison, "check", slow)
    assert registry.register("s", AB) == 2
    assert len(judged) == 1


def test_versions_that_are_deleted_alone(registry: Registry) -> None:
    """A client can request a list that contains only the deleted versions of a subject. The
    registry accepts two names of the parameter for this: Confluent's server calls it deletedOnly,
    and the Python client calls it deleted_only."""
    registry.register("s", A)
    registry.register("s", AB)
    registry.good("DELETE", "/subjects/s/versions/1")
    for name in ("deletedOnly", "deleted_only"):
        assert registry.good("GET", f"/subjects/s/versions?{name}=true") == [1]
