"""The registry client retries after temporary errors, fails at once on all other errors, and never
waits long."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import SplitResult

import pytest

from skidway.errors import ConfigurationRefused
from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.client import (
    CACHED_MAX,
    ROUNDS_MAX,
    Answer,
    Reference,
    RegistryClient,
    RegistryRefused,
    RegistryUnreachable,
    subject_of,
)
from skidway.schemas.client.resolution import CHAIN_MAX


class Scripted:
    """A fake transport. It returns the given answers one after the other, then repeats the last
    one. It records the requests."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str, Any]] = []

    def send(self, method: str, url: SplitResult, target: str, body: bytes | None) -> Answer:
        document = None if body is None else json.loads(body)
        self.asked.append((method, url.geturl(), target, document))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Answer):
            return answer
        status, content = answer
        return Answer(status, json.dumps(content).encode())


def client(
    transport: Scripted, urls: str = "http://one:8081", pauses: list[float] | None = None
) -> RegistryClient:
    kept = [] if pauses is None else pauses
    return RegistryClient(urls, transport=transport, pause=kept.append)


def error(status: int, code: int, message: str = "why") -> tuple[int, Any]:
    return status, {"error_code": code, "message": message}


REGISTERED = {"subject": "s", "version": 2, "id": 7, "schema": '"int"'}
INNER = {**REGISTERED, "id": 6, "schema": '{"type":"fixed","name":"a.F","size":2}'}
OUTER = {
    "schema": '{"type":"array","items":"a.F"}',
    "references": [{"name": "a.F", "subject": "inner", "version": 3}],
}
WHOLE = '{"type":"array","items":{"type":"fixed","name":"F","namespace":"a","size":2}}'


def test_each_call_asks_what_the_api_says() -> None:
    """Each method of the registry client sends the path and body that the REST API demands, and
    reads the registry's answer. Subjects in paths are percent-encoded."""
    transport = Scripted((200, {"id": 7}))
    assert client(transport).register("a/b", '"int"') == 7
    assert transport.asked[0][2:] == ("/subjects/a%2Fb/versions", {"schema": '"int"'})
    transport = Scripted((200, REGISTERED))
    asked = client(transport)
    assert asked.latest("s").version == asked.version("s", 2).version == 2
    found = asked.lookup("s", '"int"')
    assert found is not None
    assert found.id == 7
    assert [each[2] for each in transport.asked] == [
        "/subjects/s/versions/latest",
        "/subjects/s/versions/2",
        "/subjects/s",
    ]
    transport = Scripted((200, {"is_compatible": False, "messages": ["m"]}))
    verdict = client(transport).compatible("s", '"int"')
    assert (verdict.ok, verdict.messages) == (False, ["m"])
    assert transport.asked[0][2] == "/compatibility/subjects/s/versions/latest?verbose=true"
    assert client(Scripted((200, ["a", "b"]))).subjects() == ["a", "b"]
    assert client(Scripted((200, [1, 2]))).versions("s") == [1, 2]


def test_schemas_by_id_are_asked_once() -> None:
    """The client requests a schema id only once, because the schema never changes. The client's
    cache of schemas has a limited size."""
    transport = Scripted((200, {"schema": '"int"', "id": 7}))
    asked = client(transport)
    for _ in range(3):
        assert asked.schema(7) == '"int"'
    assert len(transport.asked) == 1
    for schema_id in range(100, 100 + CACHED_MAX):
        asked.schema(schema_id)
    asked.schema(7)
    assert len(transport.asked) == 1 + CACHED_MAX + 1


def test_a_schema_comes_with_what_it_references() -> None:
    """The client returns a schema as one text that itself declares the referenced types. It
    requests this text by the schema's id, and only once."""
    transport = Scripted((200, OUTER), (200, {"schema": WHOLE}), (200, {**REGISTERED, **OUTER}))
    asked = client(transport)
    assert asked.schema(7) == WHOLE
    assert asked.latest("s").schema == WHOLE
    assert asked.latest("s").references == ()
    assert asked.latest("s", inlined=False).references == (Reference("a.F", "inner", 3),)
    assert [each[2] for each in transport.asked[:3]] == [
        "/schemas/ids/7",
        "/schemas/ids/7?format=resolved",
        "/subjects/s/versions/latest",
    ]


def test_a_resolved_text_that_comes_with_its_references_needs_none_of_them() -> None:
    """Confluent's registry returns a schema's references even with a text that no longer needs
    them. The client then requests no referenced version."""
    transport = Scripted((200, OUTER), (200, {**OUTER, "schema": WHOLE}))
    assert client(transport).schema(7) == WHOLE
    assert len(transport.asked) == 2


@pytest.mark.parametrize("answer", [(200, OUTER), error(500, 500), error(501, 501), (400, "")])
def test_a_registry_that_does_not_resolve_references_is_asked_for_each_version(
    answer: Any,
) -> None:
    """If a registry does not support the request for resolved references (it ignores or refuses the
    parameter `format`), the client requests the referenced versions, even deleted ones. It repeats
    a request that was answered with 500 or without an error code, because this may have another
    reason."""
    repeated = ROUNDS_MAX if answer in [error(500, 500), (400, "")] else 1
    transport = Scripted((200, OUTER), *[answer] * repeated, (200, INNER))
    assert client(transport).schema(7) == WHOLE
    assert [each[2] for each in transport.asked] == [
        "/schemas/ids/7",
        *["/schemas/ids/7?format=resolved"] * repeated,
        "/subjects/inner/versions/3?deleted=true",
    ]


@pytest.mark.parametrize("failure", [error(500, 500), error(503, 503), ConnectionRefusedError()])
def test_a_registry_that_fails_once_is_asked_for_the_resolved_text_again(failure: Any) -> None:
    """If the request for resolved references fails for a moment, the client repeats it, also at
    another URL, and does not request the referenced versions, which may have other schemas now."""
    transport = Scripted((200, OUTER), failure, (200, {"schema": WHOLE}))
    assert client(transport).schema(7) == WHOLE
    transport = Scripted((200, OUTER), *[error(500, 500), failure] * 3, (200, {"schema": WHOLE}))
    assert client(transport, "http://one:8081,http://two:8081").schema(7) == WHOLE
    assert {each[2] for each in transport.asked[1:]} == {"/schemas/ids/7?format=resolved"}


@pytest.mark.parametrize(
    ("answer", "failure"),
    [(error(503, 503), RegistryUnreachable), (error(404, 40403), RegistryRefused)],
)
def test_a_registry_that_fails_is_not_taken_for_one_that_does_not_resolve(
    answer: Any, failure: type[Exception]
) -> None:
    """If the request for resolved references fails with another error than those of registries that
    do not support this request, the client raises the error. It does not request the referenced
    versions instead, because these may have other schemas now than when the id was assigned."""
    transport = Scripted((200, OUTER), answer)
    with pytest.raises(failure):
        client(transport).schema(7)
    assert {each[2] for each in transport.asked[1:]} == {"/schemas/ids/7?format=resolved"}


def test_a_reference_that_cannot_be_resolved_is_named() -> None:
    """If a referenced version is not there, the error names its subject and version. The error does
    not have the code by which callers know that the subject itself is not there."""
    transport = Scripted((200, {**REGISTERED, **OUTER}), (200, OUTER), error(404, 40401, "gone"))
    with pytest.raises(RegistryRefused, match=r"version 3 of inner .*: gone") as caught:
        client(transport).latest("s")
    assert (caught.value.status, caught.value.error_code) == (404, 0)


def test_circles_of_references_end() -> None:
    """If a registry that does not resolve references has two schemas that reference each other, the
    client raises SchemaInvalid after a limited number of requests."""
    transport = Scripted((200, {**REGISTERED, **OUTER}))
    with pytest.raises(SchemaInvalid, match="schemas deep"):
        client(transport).schema(7)
    assert len(transport.asked) < 4 * CHAIN_MAX


def test_types_that_the_client_resolves_itself_belong_to_an_id() -> None:
    """If the registry does not resolve references, the client requests the referenced versions once
    for each schema id, and takes the types that the versions have at this time. For another schema
    id it requests the versions again."""
    later = {**INNER, "id": 8, "schema": '{"type":"fixed","name":"a.F","size":3}'}
    transport = Scripted(*((200, each) for each in (OUTER, OUTER, INNER, OUTER, OUTER, later)))
    asked = client(transport)
    assert asked.schema(7) == WHOLE
    assert asked.schema(9) == WHOLE.replace("2", "3")
    assert asked.schema(7) == WHOLE


def test_a_registration_with_references_is_sent_each_time() -> None:
    """The client sends each registration of a schema with references, because a referenced version
    may get another schema; then the same text gets another id."""
    transport = Scripted((200, {"id": 7}), (200, {"id": 9}))
    asked = client(transport)
    takes = [Reference("a.F", "inner", 3)]
    assert [asked.register("s", '"a.F"', takes) for _ in range(2)] == [7, 9]


def test_what_passes_is_tried_again_at_every_url() -> None:
    """If one of the registry's URLs refuses the connection or answers 503, the registry client
    tries the next URL."""
    transport = Scripted(ConnectionRefusedError("no"), error(503, 503), (200, {"id": 1}))
    pauses: list[float] = []
    found = client(transport, "http://one:8081, http://two:8081/base", pauses)
    assert found.register("s", '"int"') == 1
    assert [each[1] for each in transport.asked] == [
        "http://one:8081",
        "http://two:8081/base",
        "http://one:8081",
    ]
    assert len(pauses) == 1


def test_it_gives_up_in_bounded_time_and_says_what_each_url_said() -> None:
    """If none of the registry's URLs answers, the registry client gives up after several rounds
    with growing pauses. The error has the exit status 3, and says what happened at each URL."""
    answers = [ConnectionRefusedError("nobody there"), error(503, 503, "store is away")]
    transport = Scripted(*answers * ROUNDS_MAX)
    pauses: list[float] = []
    with pytest.raises(RegistryUnreachable) as caught:
        client(transport, "http://one:8081,http://two:8081", pauses).subjects()
    assert caught.value.exit_code == 3
    assert "http://one:8081: nobody there" in str(caught.value)
    assert "http://two:8081: store is away" in str(caught.value)
    assert len(transport.asked) == 2 * ROUNDS_MAX
    assert len(pauses) == ROUNDS_MAX - 1
    assert sum(pauses) < 10
    assert pauses == sorted(pauses)


def test_a_wrong_password_says_which_setting() -> None:
    """The error for a wrong password names the registry and the setting, so that a reader of the
    log knows what to change."""
    with pytest.raises(RegistryRefused, match=r"registry .*basic\.auth\.user\.info"):
        client(Scripted(error(401, 401))).lookup("s", '"int"')


@pytest.mark.parametrize(
    ("status", "code"), [(404, 40403), (409, 409), (422, 42201), (405, 405), (401, 401)]
)
def test_what_is_refused_for_good_is_refused_at_once(status: int, code: int) -> None:
    """A permanent refusal of the registry is raised at once as an error, with the registry's
    message, status and code."""
    transport = Scripted(error(status, code, "the reason"))
    with pytest.raises(RegistryRefused, match="the reason") as caught:
        client(transport).register("s", '"int"')
    assert (caught.value.status, caught.value.error_code) == (status, code)
    assert len(transport.asked) == 1


def test_lookup_of_what_is_not_there_is_none() -> None:
    """A lookup of an unknown subject or schema returns None. Any other refusal is an error."""
    assert client(Scripted(error(404, 40401))).lookup("s", '"int"') is None
    assert client(Scripted(error(404, 40403))).lookup("s", '"int"') is None
    with pytest.raises(RegistryRefused):
        client(Scripted(error(422, 42201))).lookup("s", '"int"')


HTML = b"<html><body>Sign in, please</body></html>"
REDIRECT = ", a redirect to https://registry.example.com"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(301, b"", "https://registry.example.com/subjects"), "status 301" + REDIRECT),
        (Answer(302, HTML, "https://registry.example.com/subjects"), "status 302" + REDIRECT),
        (Answer(303, b"", "https://registry.example.com"), "status 303" + REDIRECT),
        (Answer(307, b"", "//jane:secret@registry.example.com/?key=secret"), "example.com/"),
        (Answer(308, b"", "/login?next=secret"), "a redirect to http://one:8081/login"),
        (Answer(308, b"", "http://[secret"), "status 308, a redirect"),
        (Answer(304, b""), "status 304"),
        (Answer(400, HTML), "status 400"),
        (Answer(401, HTML), "basic.auth.user.info"),
        (Answer(403, HTML), "status 403"),
        (Answer(404, HTML), "status 404"),
        (Answer(404, b'{"error": "no such route"}'), "status 404"),
        (Answer(404, b'{"error_code": 404, "message": "HTTP 404 Not Found"}'), "404 Not Found"),
        (Answer(404, b'{"error_code": Infinity, "message": "m"}'), "status 404"),
        (Answer(200, HTML), "the answer is no JSON"),
        (Answer(200, b""), "the answer is no JSON"),
    ],
)  # fmt: skip
def test_an_answer_of_another_program_is_no_answer(answer: Answer, words: str) -> None:
    """An answer that no registry gives, such as a proxy's page or redirect, counts as none: the
    client asks the other URLs, and again, and then raises RegistryUnreachable. The message has the
    URL, the target of a redirect without its secrets, and the setting to look at."""
    transport = Scripted(answer)
    with pytest.raises(RegistryUnreachable) as caught:
        client(transport).subjects()
    assert (caught.value.exit_code, caught.value.statuses) == (3, {answer.status})
    assert "http://one:8081: " in str(caught.value)
    assert words in str(caught.value)
    assert str(caught.value).endswith("; look at schema.registry.url.")
    assert "secret" not in str(caught.value)
    assert len(transport.asked) == ROUNDS_MAX
    assert client(Scripted(answer, (200, ["s"])), "http://one:1,http://two:2").subjects() == ["s"]


@pytest.mark.parametrize("document", [{}, [], None, "ok", {"id": "x", "schema": {}}])
def test_an_answer_without_what_was_asked_for(document: Any) -> None:
    """An answer that lacks the expected keys, for example because it comes from another service,
    raises RegistryUnreachable."""
    for ask in (
        lambda c: c.register("s", '"int"'),
        lambda c: c.latest("s"),
        lambda c: c.lookup("s", '"int"'),
        lambda c: c.compatible("s", '"int"'),
    ):
        with pytest.raises(RegistryUnreachable, match=r"not that of a schema registry|no JSON"):
            ask(client(Scripted((200, document))))


@pytest.mark.parametrize("number", [float("inf"), -1, 7.9, True, "7", 1 << 31])
def test_what_is_no_id_is_no_answer(number: object) -> None:
    """A schema id must be a whole number of at most 31 bits. Any other value in an answer raises
    RegistryUnreachable."""
    with pytest.raises(RegistryUnreachable, match="not that of a schema registry"):
        client(Scripted((200, {"id": number}))).register("s", '"int"')


def test_a_schema_of_another_type_is_not_taken_for_avro() -> None:
    """If the registry returns a JSON Schema, the client raises SchemaInvalid, even if the schema's
    text could be read as an Avro schema."""
    document = {"subject": "s", "version": 1, "id": 7, "schema": '{"type": "string"}'}
    registry = client(Scripted((200, {**document, "schemaType": "JSON"})))
    for ask in (lambda: registry.schema(7), lambda: registry.latest("s")):
        with pytest.raises(SchemaInvalid, match="type is JSON, not AVRO"):
            ask()
    assert registry.latest("s", inlined=False).schema_type == "JSON"


@pytest.mark.parametrize(
    "urls",
    [
        "",
        "one:8081",
        "ftp://one",
        "http://",
        "http://a:x",
        "http://a,",
        "http://[::1",
        "http://a?b",
    ],
)
def test_urls_that_are_none_are_refused(urls: str) -> None:
    """An invalid URL of the registry is refused before any request is sent, and the error names the
    setting."""
    with pytest.raises(
        ConfigurationRefused, match=r"^schema\.registry\.url: .* is no URL of a sch"
    ):
        RegistryClient(urls)


@pytest.mark.parametrize(
    "urls",
    [
        "http://jane:secret@one:8081", "jane:secret@one:8081", "http://a:1,http://jane:secret@b:1",
        "http://jane:sec,secret@one:8081", "http://jane:sec/secret@one", "http://jane:#secret@one",
    ],
)  # fmt: skip
def test_credentials_in_a_url_are_refused_and_not_repeated(urls: str) -> None:
    """A URL with a user and password is refused, because the password would get into logs. The
    error names the setting to use instead, and shows neither user nor password."""
    with pytest.raises(ConfigurationRefused, match="user and password") as caught:
        RegistryClient(urls)
    assert "schema.registry.basic.auth.user.info" in str(caught.value)
    assert "sec" not in str(caught.value)
    assert "jane" not in str(caught.value)


def test_the_subject_of_a_topic() -> None:
    """The subject of a topic is the topic's name and `-value`, as in Confluent's default
    strategy."""
    assert subject_of("hdfs-logs") == "hdfs-logs-value"
