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
        app = WholeBody(AtMost(echo, 1, 0, MEDIA_TYPE), 6, MEDIA_TYPE)
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


class Gate:
    """An application whose requests wait until the test lets them go on, one after the other."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.tokens = asyncio.Semaphore(0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun.append(scope["client"][0])
        await self.tokens.acquire()
        await echo(scope, receive, send)


def test_more_requests_than_may_wait_are_503() -> None:
    """If too many requests wait, one of the address that has most of them gets 503, after which
    clients try again. Neither those that run nor those of another address are refused."""

    async def many() -> tuple[list[int], list[int]]:
        gate = Gate()
        app = AtMost(gate, 1, 3, MEDIA_TYPE)
        bad = [asyncio.create_task(ask(app, b"", client="bad")) for _ in range(8)]
        await asyncio.sleep(0)
        good = [asyncio.create_task(ask(app, b"", client=f"good {n}")) for n in range(2)]
        for _ in range(8 + 2):
            gate.tokens.release()
        return [(await each)[0] for each in bad], [(await each)[0] for each in good]

    bad, good = asyncio.run(many())
    assert good == [200, 200]
    assert sorted(bad) == [200] * 2 + [503] * 6
    assert bad[0] == 200


def test_one_address_does_not_hold_up_another() -> None:
    """However many requests of one address wait, a place is free for the first of another address,
    or becomes free for it when the next one ends."""

    async def begun() -> list[str]:
        gate = Gate()
        app = AtMost(gate, 4, 100, MEDIA_TYPE)
        tasks = [asyncio.create_task(ask(app, b"", client="bad")) for _ in range(50)]
        await asyncio.sleep(0)
        tasks += [asyncio.create_task(ask(app, b"", client=f"good {n}")) for n in range(3)]
        await asyncio.sleep(0)
        gate.tokens.release()
        while len(gate.begun) < 5:
            await asyncio.sleep(0)
        found = list(gate.begun)
        for each in tasks:
            each.cancel()
        return found

    assert asyncio.run(begun()) == ["bad", "bad", "good 0", "good 1", "good 2"]


def test_a_request_whose_client_has_left_does_not_run() -> None:
    """While a request waits, its client may leave. Then it does not run, and keeps nobody out."""

    async def begun() -> list[str]:
        gate = Gate()
        app = AtMost(gate, 1, 3, MEDIA_TYPE)
        first = asyncio.create_task(ask(app, b"", client="first"))
        await asyncio.sleep(0)

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            assert message.get("status") in (503, None)

        for _ in range(5):
            await app({"type": "http", "client": ("left", 1)}, receive, send)
        last = asyncio.create_task(ask(app, b"", client="last"))
        for _ in range(2):
            gate.tokens.release()
        assert ((await first)[0], (await last)[0]) == (200, 200)
        return gate.begun

    assert asyncio.run(begun()) == ["first", "last"]


def test_a_request_for_another_host_is_421() -> None:
    """A request that names another host gets 421 and a sentence that names the setting."""
    app = ForHosts(echo, AllowedHosts(["alias.example"]), MEDIA_TYPE)
    for host in ("alias.example", "localhost:8081", "10.0.0.9:80"):
        assert asyncio.run(ask(app, b"x", host=host)) == (200, b"x")
    status, body = asyncio.run(ask(app, b"x", host="evil.example:8081"))
    assert status == 421
    assert "allowed.hosts" in json.loads(body)["message"]
    assert asyncio.run(ask(app, b"x"))[0] == 200
