"""Requests and answers have Confluent's media types, and web pages of other sites cannot change
anything."""

from __future__ import annotations

import json

import pytest

from skidway.errors import SkidwayError
from skidway.schemas.registry.rest import CONTENT_TYPE
from support.registry_http import Registry, record

BODY = json.dumps({"schema": record(a=None)})
PATH = "/subjects/s/versions"
OTHERS = ("application/vnd.schemaregistry+json", "application/json")


@pytest.mark.parametrize(
    "kind",
    [None, CONTENT_TYPE, *OTHERS, "Application/JSON; charset=utf-8", "application/octet-stream"],
)
def test_bodies_of_these_types_are_read(registry: Registry, kind: str | None) -> None:
    """The registry reads a request body if it has one of the media types that clients of a registry
    send. It also reads a body without a media type, because some clients send none."""
    headers = {} if kind is None else {"Content-Type": kind}
    assert registry.http.post(PATH, content=BODY, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "text/plain;charset=UTF-8", "application/x-www-form-urlencoded", "*/*"]
)
def test_a_body_of_another_type_is_415(registry: Registry, kind: str) -> None:
    """A request body of any media type that clients of a registry do not send gets 415. This
    includes the media types that a browser lets a web page send to other sites without a preflight
    request."""
    for method, path in (("POST", PATH), ("POST", "/subjects/s"), ("PUT", "/config")):
        answer = registry.http.request(method, path, content=BODY, headers={"Content-Type": kind})
        assert (answer.status_code, answer.json()["error_code"]) == (415, 415)
    assert registry.good("GET", "/subjects") == []


@pytest.mark.parametrize("origin", ["http://elsewhere.example", "null", "http://testserver:81"])
def test_a_page_of_another_site_changes_nothing(registry: Registry, origin: str) -> None:
    """If a web page of another site requests a change, the answer is 403, and nothing changes. The
    page's requests to read are answered like those of other clients."""
    registry.register("s", record(a=None))
    for method, path in (("POST", PATH), ("PUT", "/mode"), ("DELETE", "/subjects/s")):
        answer = registry.http.request(method, path, content=BODY, headers={"Origin": origin})
        assert (answer.status_code, answer.json()["error_code"]) == (403, 403)
    assert registry.good("GET", "/subjects", headers={"Origin": origin}) == ["s"]
    answer = registry.http.post(PATH, content=BODY, headers={"Origin": "http://testserver"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", CONTENT_TYPE),
        ("*/*", CONTENT_TYPE),
        ("text/html, application/*;q=0.5", CONTENT_TYPE),
        ("application/json", "application/json"),
        ("application/json, " + CONTENT_TYPE, CONTENT_TYPE),
        (f"{CONTENT_TYPE};q=0.1, application/json;q=0.9", "application/json"),
        (f"{OTHERS[0]}; q=0.9, application/json; q=0.5", OTHERS[0]),
        (f"{CONTENT_TYPE};q=0, */*", OTHERS[0]),
    ],
)
def test_an_answer_has_the_type_that_the_client_likes_best(
    registry: Registry, accept: str, kind: str
) -> None:
    """Answers and errors have the media type that the client prefers. If the client prefers none of
    several types that it accepts, answers and errors have the registry's own type."""
    for path, status in (("/subjects", 200), ("/subjects/none/versions", 404), ("/none", 404)):
        answer = registry.http.get(path, headers={"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (status, kind)


@pytest.mark.parametrize("error", [SkidwayError("the log is away"), RuntimeError("a bug")])
def test_an_answer_about_our_own_failure_has_the_accepted_type(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Even an answer with status 500 has the media type that the client prefers."""

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(registry.store, "write", fail)
    answer = registry.http.post(PATH, content=BODY, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/json")


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=1", "application/json;q=0"])
def test_a_client_that_takes_no_json_is_406(registry: Registry, accept: str) -> None:
    """A client that does not accept JSON gets 406, and its request is not carried out."""
    answer = registry.http.post(PATH, content=BODY, headers={"Accept": accept})
    assert (answer.status_code, answer.json()["error_code"]) == (406, 406)
    assert registry.good("GET", "/subjects") == []


@pytest.mark.parametrize("body", [{}, {"schema": None}, {"schema": " "}])
def test_a_lookup_without_a_schema_finds_none(registry: Registry, body: dict[str, str]) -> None:
    """A request to look up a schema fails if it contains no schema. The error code is 40401 if the
    subject does not exist, and 40403 if it exists."""
    assert registry.refused("POST", "/subjects/s", body) == (404, 40401)
    registry.register("s", record(a=None))
    assert registry.refused("POST", "/subjects/s", body) == (404, 40403)


def test_a_limit_of_nothing_is_no_limit(registry: Registry) -> None:
    """In every request for a list, limit=0 means no limit, as -1 does."""
    registry.register("s", record(a=None))
    for path in ("/subjects", "/schemas", PATH, "/schemas/ids/1/subjects"):
        assert len(registry.good("GET", f"{path}?limit=0")) == 1
