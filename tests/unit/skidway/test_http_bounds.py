"""Requests that are too many, too large or too slow, and those for other hosts, are refused before
the application sees them; the others are answered meanwhile."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from skidway.http import bounds
from skidway.http.bounds import AtMost, ForHosts, WholeBody
from skidway.http.hosts import AllowedHosts

MEDIA_TYPE = "application/json"


async def echo(_scope: Any, receive: Any, send: Any) -> None:
    """An application that answers with the body of the request."""
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def ask(
    app: Any, *pieces: bytes, ends: bool = True, client: str = "10.0.0.1", **headers: str
) -> tuple[int, bytes]:
    """Makes a POST request whose body comes in these pieces. If not `ends`, the client sends no
    more, but does not disconnect. Returns the status and the body of the answer."""
    left, sent = list(pieces), []

    async def receive() -> Any:
        if not left:
            assert not ends
            await asyncio.Event().wait()
        piece = left.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(left) or not ends}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "client": (client, 1)}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope["server"] = ("10.0.0.9", 80)
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


def test_a_body_arrives_whole() -> None:
    """The application gets the whole body at once, in however many pieces it came, up to the limit;
    a longer one is refused with 413, and is not read to its end."""
    app = WholeBody(echo, 6, MEDIA_TYPE)
    assert asyncio.run(ask(app, b"ab", b"", b"cdef")) == (200, b"abcdef")
    assert asyncio.run(ask(app, b"abcd", b"efg", ends=False))[0] == 413


def test_a_body_that_never_ends_is_408(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request whose body does not end in time gets 408, after which clients try again."""
    monkeypatch.setattr(bounds, "BODY_WITHIN_S", 0.0)
    status, body = asyncio.run(ask(WholeBody(echo, 6, MEDIA_TYPE), b"ab", ends=False))
    assert (status, json.loads(body)["error_code"]) == (408, 408)


def test_half_bodies_keep_nobody_out() -> None:
    """Requests whose bodies are not there do not count as running, so they keep no other request
    out, however few requests may run at once."""

    async def both() -> list[int]:
        app = WholeBody(AtMost(echo, 1, MEDIA_TYPE), 6, MEDIA_TYPE)
        slow = [asyncio.create_task(ask(app, b"a", ends=False)) for _ in range(50)]
        await asyncio.sleep(0)
        found = [(await ask(app, b"good"))[0] for _ in range(3)]
        for each in slow:
            each.cancel()
        return found

    assert asyncio.run(both()) == [200] * 3


def test_half_bodies_share_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the bodies that are arriving need more memory than they may have together, the one that
    began first, of the address with the most, gets 408 at once; others are answered."""
    monkeypatch.setattr(bounds, "BODIES_BYTES_MAX", 10)

    async def all_of_them() -> tuple[list[int], list[bool]]:
        app = WholeBody(echo, 6, MEDIA_TYPE)
        slow = [
            asyncio.create_task(ask(app, b"four", ends=False, client=f"10.0.0.{n // 2}"))
            for n in range(4)
        ]
        good = (await ask(app, b"a", b"b", client="10.0.0.7"))[0]
        first, _ = await slow[0]
        done = [each.done() for each in slow]
        for each in slow:
            each.cancel()
        return [good, first], done

    answers, done = asyncio.run(all_of_them())
    assert answers == [200, 408]
    assert done[0]
    assert not done[3]


def test_more_requests_at_once_than_allowed_are_503() -> None:
    """If too many requests come at once, the requests beyond the limit get 503. Clients repeat a
    request after this status."""
    inside, go = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        inside.set()
        await go.wait()
        await echo(scope, receive, send)

    async def three() -> list[int]:
        app = AtMost(slow, 1, MEDIA_TYPE)
        first = asyncio.create_task(ask(app, b""))
        await inside.wait()
        second = await ask(app, b"")
        go.set()
        return [(await first)[0], second[0], (await ask(app, b""))[0]]

    assert asyncio.run(three()) == [200, 503, 200]


def test_a_request_for_another_host_is_421() -> None:
    """A request that names another host gets 421 and a sentence that names the setting."""
    app = ForHosts(echo, AllowedHosts(["alias.example"]), MEDIA_TYPE)
    for host in ("alias.example", "localhost:8081", "10.0.0.9:80"):
        assert asyncio.run(ask(app, b"x", host=host)) == (200, b"x")
    status, body = asyncio.run(ask(app, b"x", host="evil.example:8081"))
    assert status == 421
    assert "allowed.hosts" in json.loads(body)["message"]
    assert asyncio.run(ask(app, b"x"))[0] == 200
