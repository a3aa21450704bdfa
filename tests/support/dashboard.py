"""Sends requests to the collector's dashboard without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

from skidway.audit.collector.editions import Editions, step_of
from skidway.audit.collector.history_store import HistoryStore
from skidway.audit.collector.judge import Judge
from skidway.audit.collector.web.dashboard import Dashboard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import Policy
from support.clock import ManualClock


def ask(
    ledger: Ledger,
    path: str,
    policy: Policy,
    method: str = "GET",
    now_ms: int | None = None,
    history: HistoryStore | None = None,
) -> tuple[int, dict[str, str], str]:
    """Sends one request to a dashboard. Returns the status, the headers and the body of the answer.
    `now_ms` is the time of the collector's clock."""
    clock = ManualClock() if now_ms is None else ManualClock(now_ms)
    judge = Judge(ledger, lambda: policy, clock)
    editions = Editions([ledger], lambda: None)
    editions.publish(step_of(judge, judge.step(), clock.time_ms()))
    application = Dashboard(editions, clock, history).application()
    path, _, query = path.partition("?")
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
        "scheme": "http", "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": [], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "root_path": "",
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(application(scope, receive, send))  # type: ignore[arg-type]
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], headers, body.decode()
