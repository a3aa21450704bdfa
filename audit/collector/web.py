"""The dashboard shows verdicts as pages and as JSON. It reads the ledger, and never writes to it.

    /                 the standing: a sentence on all buckets, and a grid of topics x newest buckets
    /buckets          buckets with every tier's count and the reasons; ?topic= ?until= ?bucket=
    /agents           the hosts: expected, silent, retired; all senders, and when each was heard
    /index.json, /buckets.json, /agents.json    the same for programs
    /history.json     the history of verdicts, see `history_answers`
    /complete.json, /hours.json                 for programs that wait for whole hours, see `hours`

This module renders the pages. The pages work without JavaScript and load only /style.css. The
content security policy allows nothing else. The templates escape text from outside.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any
from urllib.parse import urlencode

import jinja2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from skidway.audit.collector import history_answers
from skidway.audit.collector.history_store import HistoryStore
from skidway.audit.collector.hours import Hours
from skidway.audit.evidence.evidence import Evidence, Window
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.judgement.clocks import Clocks, clocks, present_ms
from skidway.audit.judgement.hosts import HostState, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.sender_states import sender_states
from skidway.audit.judgement.standing import Standing, TopicStanding
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports import clock_report, host_report, report
from skidway.audit.reports.topic_names import topic_names
from skidway.audit.topic.recount_result import RecountResult
from skidway.clock import Clock
from skidway.errors import SkidwayError

PAGE_BUCKETS = 60
HOSTS_SHOWN = 500
"""The page shows at most this many hosts, and shows missed hosts first. The JSON has all hosts."""

WARNED = "warned"
"""The status of a bucket that is complete with a warning."""

GLYPHS = {
    "complete": "✓", WARNED: "△", "open": "…", "incomplete": "✗", "unknown": "?", "lost": "!"
}  # fmt: skip
MEANINGS = {
    "complete": "every line arrived, in every tier, once",
    WARNED: "complete, but with more rejects than allowed",
    "open": "too young to say, or an agent has not vouched for it yet",
    "incomplete": "a tier is short, or has other records",
    "unknown": "something that is needed to say is missing",
    "lost": "an agent declared lines lost",
}

_STYLE = resources.files("skidway.audit.collector").joinpath("pages/style.css").read_text("utf-8")
_KEY = {
    "statuses": list(MEANINGS),
    "glyphs": GLYPHS,
    "meanings": MEANINGS,
    "style": f"/style.css?{zlib.crc32(_STYLE.encode()):08x}",  # a changed style gets a new URL
}

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none';"
        " frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Shown:
    """The buckets of a page. older: the bucket at which the next page begins; None on the last
    page."""

    verdicts: list[BucketVerdict]
    older: int | None


class Dashboard:
    """Answers requests from one ledger, one request at a time, because all requests share the
    ledger's connection.

    policy: returns the present policy. standing: returns the newest judgement of all buckets.
    hours: answers requests about whole hours, from the same ledger.
    """

    def __init__(
        self,
        ledger: Ledger,
        policy: Callable[[], Policy],
        standing: Callable[[], Standing],
        hours: Hours,
        clock: Clock,
        history: HistoryStore | None = None,
    ) -> None:
        self._history = history
        self._ledger = ledger
        self._policy_now = policy
        self._standing = standing
        self._hours = hours
        self._clock = clock
        self._lock = threading.Lock()
        self._pages = _environment()

    def application(self) -> Starlette:
        """The ASGI application."""
        routes = [
            Route("/", self._page("overview.html", self._overview)),
            Route("/index.json", self._json(self._overview_json)),
            Route("/buckets", self._page("buckets.html", self._buckets)),
            Route("/buckets.json", self._json(self._buckets_json)),
            Route("/agents", self._page("agents.html", self._agents)),
            Route("/agents.json", self._json(self._agents_json)),
            Route("/history.json", self._json(self._history_json)),
            Route("/complete.json", self._json(self._hours.complete)),
            Route("/hours.json", self._json(self._hours.judged)),
            Route("/style.css", _style),
        ]
        return Starlette(
            routes=routes,
            exception_handlers={
                HTTPException: _failure,
                SkidwayError: _failure,
                sqlite3.OperationalError: _failure,
            },
        )

    @property
    def _policy(self) -> Policy:
        """The present policy. The roster may have changed since the last request."""
        return self._policy_now()

    # What the pages show.

    def _overview(self, request: Request) -> dict[str, Any]:
        found, evidence = self._standing(), self._ledger.evidence(NO_BUCKETS)
        names = topic_names(topic.source for topic in found.topics)
        return _frame(found) | {
            "clocks": self._clock_sentences(evidence),
            "grid": [_row(topic, names[topic.source], found.starts) for topic in found.topics],
            "starts": found.starts,
            "hosts": host_report.remarks(self._survey(evidence)),
            "json": "/index.json",
        }

    def _buckets(self, request: Request) -> dict[str, Any]:
        topic, shown = self._asked(request)
        names = topic_names(x.source for x in shown.verdicts)
        query = dict(request.query_params)
        older = None
        if shown.older is not None:
            older = "/buckets?" + urlencode(query | {"until": str(shown.older)})
        return _frame(self._standing_of(topic)) | {
            "topic": topic,
            "tiers": [tier.value.lower() for tier in self._policy.tiers],
            "verdicts": [self._line(x, names[x.source]) for x in reversed(shown.verdicts)],
            "detail": "bucket" in query,
            "history": history_answers.page(self._history, shown.verdicts)
            if "bucket" in query
            else None,
            "older": older,
            "json": "/buckets.json?" + urlencode(query),
        }

    def _overview_json(self, request: Request) -> dict[str, Any]:
        found, evidence = self._standing(), self._ledger.evidence(NO_BUCKETS)
        newest = [verdict for topic in found.topics for verdict in topic.newest.values()]
        hosts = host_report.summary(self._survey(evidence))
        times = clock_report.document(self._clocks(evidence))
        return report.document(found, newest) | {"hosts": hosts, "clocks": times}

    def _buckets_json(self, request: Request) -> dict[str, Any]:
        topic, shown = self._asked(request)
        document = report.document(self._standing_of(topic), shown.verdicts)
        return document | {"older_until": shown.older}

    def _history_json(self, request: Request) -> dict[str, Any]:
        known = self._ledger.evidence(NO_BUCKETS).topics
        return history_answers.answer(
            self._history, request.query_params, known, self._clock.time_ms()
        )

    def _standing_of(self, topic: str | None) -> Standing:
        found = self._standing()
        return found if topic is None else found.where(lambda source: source.topic == topic)

    def _agents(self, request: Request) -> dict[str, Any]:
        evidence = self._ledger.evidence(NO_BUCKETS)
        states = self._survey(evidence)
        first = sorted(states, key=lambda x: not x.is_missed)[:HOSTS_SHOWN]
        return {
            "clocks": self._clock_sentences(evidence),
            "sentence": host_report.sentence(states),
            "worst": host_report.status(states).word,
            "hosts": [self._host_line(state) for state in first],
            "more": len(states) - len(first),
            "senders": self._senders(evidence),
        }

    def _agents_json(self, request: Request) -> dict[str, Any]:
        evidence = self._ledger.evidence(NO_BUCKETS)
        return host_report.document(self._survey(evidence)) | {"senders": self._senders(evidence)}

    def _host_line(self, state: HostState) -> dict[str, Any]:
        colour = host_report.status_of(state)
        return {
            "state": state,
            "words": host_report.words(state),
            "status": "none" if colour is None else colour.word,
            "glyph": "" if colour is None else GLYPHS[colour.word],
        }

    def _survey(self, evidence: Evidence) -> list[HostState]:
        return survey(evidence, self._policy, self._clock.time_ms())

    def _clocks(self, evidence: Evidence) -> Clocks:
        return clocks(evidence, self._policy, self._clock.time_ms())

    def _clock_sentences(self, evidence: Evidence) -> list[str]:
        return clock_report.sentences(self._clocks(evidence))

    def _senders(self, evidence: Evidence) -> list[dict[str, Any]]:
        now_ms = present_ms(evidence, self._policy, self._clock.time_ms())
        return [
            {
                "tier": x.key.tier.value.lower(), "host": x.numbers.host, "name": x.key.producer,
                "epoch": x.key.epoch, "last": x.numbers.last, "last_seen": x.last_seen_ms,
                "state": x.words, "status": x.status,
            }
            for x in sender_states(evidence, self._policy, now_ms)
        ]  # fmt: skip

    def _line(self, verdict: BucketVerdict, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "topic": verdict.source.topic,
            "bucket": verdict.bucket,
            "counts": [verdict.count(tier) for tier in self._policy.tiers],
            "status": _class(verdict),
            "word": _word(verdict),
            "reasons": verdict.words,
            "agents": verdict.agents,
            "filtered": verdict.filtered,
        }

    # Which buckets.

    def _asked(self, request: Request) -> tuple[str | None, Shown]:
        topic = request.query_params.get("topic")
        bucket = _number(request, "bucket")
        if bucket is not None:
            return topic, Shown(self._judged((bucket, bucket + 1), topic), None)
        return topic, self._shown(topic, _number(request, "until"), PAGE_BUCKETS)

    def _shown(self, topic: str | None, until: int | None, count: int) -> Shown:
        starts = self._ledger.newest_buckets(count + 1, until, topic)
        older = starts[count - 1] if len(starts) > count else None
        starts = starts[:count]
        window = (starts[-1], starts[0] + 1) if starts else NO_BUCKETS
        return Shown(self._judged(window, topic), older)

    def _judged(self, window: Window, topic: str | None) -> list[BucketVerdict]:
        evidence = self._ledger.evidence(window, None if topic is None else [topic])
        return verdicts(evidence, self._policy, self._clock.time_ms())

    # Answers.

    def _page(
        self, template: str, content: Callable[[Request], dict[str, Any]]
    ) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            with self._lock:
                found = {"json": request.url.path + ".json"} | content(request)
                taken_ms = self._ledger.taken_ms
                taken = f"Read up to {_moment(taken_ms)}" if taken_ms else "Nothing was read yet"
            page, judged_ms = self._pages.get_template(template), self._standing().judged_ms
            html = page.render(found, taken=taken, judged=judged_ms, **_KEY)
            return HTMLResponse(html, headers=HEADERS)

        return answer

    def _json(self, content: Callable[[Request], dict[str, Any]]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            with self._lock:
                found = content(request)
            return JSONResponse(found, headers=HEADERS)

        return answer


def _environment() -> jinja2.Environment:
    pages = resources.files("skidway.audit.collector").joinpath("pages")
    templates = {
        entry.name: entry.read_text("utf-8")
        for entry in pages.iterdir()
        if entry.name.endswith(".html")
    }
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(templates), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["moment"] = _moment
    environment.filters["number"] = "{:,}".format
    environment.filters["clock"] = lambda time_ms: report.time_text(time_ms)[11:19]
    return environment


def _style(request: Request) -> Response:
    return Response(
        _STYLE, media_type="text/css", headers=HEADERS | {"Cache-Control": "max-age=300"}
    )


def _failure(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        return PlainTextResponse(str(error.detail) + "\n", error.status_code, headers=HEADERS)
    return PlainTextResponse(f"{error}\n", 503, headers=HEADERS)


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError as error:
        raise HTTPException(400, f"{name} must be a number of milliseconds") from error
    if abs(number) >= 1 << 61:
        raise HTTPException(400, f"{name} is beyond all times")
    return number


def _frame(found: Standing) -> dict[str, Any]:
    """The sentence at the head of a page, and the worst status of all overdue buckets. A recount
    whose counts differ is as bad as a tier with missing records."""
    differ = [Status.INCOMPLETE] if any(not x.is_good for x in found.recounts) else []
    overdue = [*found.overdue, *differ]
    worst = max(overdue, default=Status.COMPLETE).word
    if not overdue:
        is_complete = found.by_status.get(Status.COMPLETE, 0) > 0
        is_complete &= not found.unjudged
        worst = WARNED if found.warned else worst if is_complete else Status.OPEN.word
    return {"sentence": report.sentence(found), "worst": worst}


def _row(found: TopicStanding, name: str, starts: tuple[int, ...]) -> dict[str, Any]:
    """The row of a topic in the grid."""
    return {
        "topic": found.source.topic,
        "name": name,
        "words": _words(found),
        "complete_until": found.complete_until,
        "accepted": sum(found.accepted.values()),
        "oldest_overdue": found.oldest_overdue,
        "recounts": [_recount(recount) for recount in found.recounts],
        "cells": [_cell(found.newest.get(start)) for start in starts],
    }


def _recount(found: RecountResult) -> dict[str, Any]:
    """The result of a recount, for the topic's row."""
    return {
        "time": found.time_ms,
        "word": report.recount_word(found),
        "status": (Status.COMPLETE if found.is_good else Status.INCOMPLETE).word,
        "why": report.reasons_text(found.reasons),
    }


def _cell(verdict: BucketVerdict | None) -> dict[str, Any] | None:
    """The cell of a bucket in the grid."""
    if verdict is None:
        return None
    return {
        "bucket": verdict.bucket,
        "status": _class(verdict),
        "word": _word(verdict),
        "records": verdict.records,
        "why": report.reasons_text(verdict.words),
    }


def _class(verdict: BucketVerdict) -> str:
    """The CSS class that colours the bucket."""
    return WARNED if verdict.is_warned else verdict.status.word


def _word(verdict: BucketVerdict) -> str:
    if verdict.is_warned_and_accepted:
        return f"{WARNED}, accepted"
    return verdict.word if verdict.status is not Status.COMPLETE else _class(verdict)


def _moment(time_ms: int) -> str:
    """A time for people, without its zone, because the page says once that all times are UTC."""
    return report.time_text(time_ms).removesuffix("Z").replace("T", " ")


def _words(found: TopicStanding) -> str:
    """The number of buckets with each verdict. The gravest verdict comes first."""
    counts: Counter[tuple[Status, str]] = Counter()
    for status, count in found.by_status.items():
        accepted = found.accepted.get(status, 0)
        counts[status, status.word] += count - accepted
        counts[status, f"{status.word}, accepted"] += accepted
    words = [f"{counts[each]} {each[1]}" for each in sorted(counts, reverse=True) if counts[each]]
    return ", ".join(words) or "nothing counted yet"
