"""The registry's basic authentication cannot be bypassed on any route."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from skidway.schemas.registry import authentication, passwords
from skidway.schemas.registry.authentication import BasicAuthentication
from skidway.schemas.registry.passwords import Hash, Users
from support.registry_http import Registry


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: Registry) -> TestClient:
    monkeypatch.setattr(passwords, "LOG2_N", 10)
    path = tmp_path / "users"
    path.write_text(f"ada:{Hash.of('ge:heim ü')}\n")
    return TestClient(BasicAuthentication(registry.app, Users(path), 'the "registry"'))


def header(text: str, method: str = "Basic") -> dict[str, str]:
    return {"Authorization": f"{method} {base64.b64encode(text.encode()).decode()}"}


def test_a_user_with_the_password_gets_through(client: TestClient) -> None:
    """A request with a user's name and right password is accepted. In the header Authorization, the
    word Basic may be in upper or lower case."""
    for method in ("Basic", "Basic", "basic", "BASIC"):
        answer = client.get("/subjects", headers=header("ada:ge:heim ü", method))
        assert (answer.status_code, answer.json()) == (200, [])


@pytest.mark.parametrize("path", ["/subjects", "/", "/nonsense", "/schemas/ids/1"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        header("ada:falsch"),
        header("grace:ge:heim ü"),
        header("ada"),
        header("ada:ge:heim ü", "Bearer"),
        {"Authorization": "Basic"},
        {"Authorization": "Basic ===="},
        {"Authorization": "Basic /w=="},
        {"Authorization": "Basic " + "A" * 5000},
    ],
)
def test_everybody_else_is_401(client: TestClient, path: str, headers: dict[str, str]) -> None:
    """Any request without the name and the right password of a user gets 401. The answer has the
    form of the registry's errors, and the header WWW-Authenticate, which makes clients ask for a
    password."""
    answer = client.get(path, headers=headers)
    assert answer.status_code == 401
    assert answer.json() == {"error_code": 401, "message": "HTTP 401 Unauthorized"}
    challenge = answer.headers["www-authenticate"]
    assert challenge == 'Basic realm="the \\"registry\\"", charset="UTF-8"'


def test_too_many_guesses_at_once_are_503(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While too many passwords are being checked, a request gets 503, unless its password was found
    right earlier. In that case the request is accepted without a new check."""
    assert client.get("/subjects", headers=header("ada:ge:heim ü")).status_code == 200
    monkeypatch.setattr(authentication, "CHECKS_MAX", 0)
    assert client.get("/subjects", headers=header("ada:falsch")).status_code == 503
    assert client.get("/subjects", headers=header("ada:ge:heim ü")).status_code == 200
