"""The routes of the dashboard: which function answers the requests for which path."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from skidway.audit.collector import history_answers
from skidway.audit.collector.addresses import ROWS_MAX, agents_address, next_address
from skidway.audit.collector.editions import Edition, Editions, Step
from skidway.audit.collector.history_store import BucketHistory, HistoryStore
from skidway.audit.collector.hours import Hours
from skidway.audit.collector.pages import loads, mirrors, rejects, search, topics, words
from skidway.audit.collector.pages.bucket import (
    PAGE_BUCKETS,
    BucketPage,
    agents_table,
    bucket_page,
    buckets_table,
    filtered_table,
)
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.hosts import hosts_table, named, senders_table
from skidway.audit.collector.pages.overview import (
    alarms,
    headline,
    overview,
    overview_document,
    present_alarms,
)
from skidway.audit.collector.pages.pace import DAY_MS
from skidway.audit.collector.pages.refused import refused_table
from skidway.audit.collector.pages.table import Table
from skidway.audit.collector.reject_examples import NO_EXAMPLES, Examples
from skidway.audit.collector.web import answers, query
from skidway.audit.collector.web.rendering import Pages
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger_evidence import NO_BUCKETS
from skidway.audit.explanation.choice import (
    ByTopic,
    acceptable_with,
    alike,
    is_bad,
    with_covered,
)
from skidway.audit.explanation.document import document as explanation_document
from skidway.audit.explanation.explanation import NO_ACCESS, Explanation, explain
from skidway.audit.explanation.next_command import Access
from skidway.audit.judgement.standing import NEWEST_BUCKETS, Standing
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.judgement.verdicts_of_agents import gravest_first
from skidway.audit.reports import host_report, report
from skidway.audit.reports.latencies import latencies_ms
from skidway.audit.reports.topic_names import (
    is_named,
    topic_names,
    topics_named,
    with_rejects,
    without_id,
)
from skidway.clock import Clock
from skidway.errors import SkidwayError

EXPLAINED_MAX = 300
"""The page and the JSON document of a bucket explain the findings of at most this many agents. The
agents with the gravest findings come first."""
AGENTS_FEW = 1_000
"""If the topics of a list of buckets have more than this many agents, the list has only
NEWEST_BUCKETS buckets. The standing already has short verdicts on these buckets, which name only
the agents with the gravest findings. So these buckets need not be judged again.
"""
COMPLETIONS_MAX = 100_000
FOUND_MAX = 200

Content = dict[str, Any]


class Dashboard:
    """Answers requests from editions, one request at a time, because all requests share the
    editions' connections to the store.

    access: the addresses and options that the commands shown on the pages need. examples: a
    function that returns the known examples of rejected lines and records. insecure: what other
    hosts reach without authentication.
    """

    def __init__(
        self,
        editions: Editions,
        clock: Clock,
        history: HistoryStore | None = None,
        access: Access = NO_ACCESS,
        examples: Callable[[], Examples] = lambda: NO_EXAMPLES,
        insecure: Sequence[str] = (),
    ) -> None:
        self._access = access
        self._examples = examples
        self._history = history
        self._editions = editions
        self._edition: Edition
        """The edition from which the present request is answered."""
        self._hours = Hours(clock)
        self._clock = clock
        self._lock = threading.Lock()
        self._pages = Pages(insecure)

    def application(self) -> Starlette:
        """Returns the ASGI application."""
        rooms: dict[str, Callable[[Request, Facts], Sequence[Table]]] = {
            "topics": lambda _, facts: [topics.topics_table(facts)],
            "hosts": _hosts,
            "loads": lambda _, facts: [
                loads.loads_table(facts),
                loads.newest_loads_table(facts),
                loads.recounts_table(facts),
            ],
            "mirrors": lambda _, facts: [mirrors.mirrors_table(facts), mirrors.gaps_table(facts)],
            "rejects": lambda _, facts: [rejects.table(facts, everything=True)],
            "search": self._results,
        }
        routes = [
            Route("/", self._answer(self._overview)),
            Route("/index.json", self._answer(self._overview_json)),
            Route("/index.csv", self._answer(self._overview_csv)),
            Route("/buckets", self._answer(self._buckets)),
            Route("/buckets.json", self._answer(self._buckets_json)),
            Route("/buckets.csv", self._answer(self._buckets_csv)),
            Route("/history.json", self._answer(self._history_json)),
            Route("/complete.json", self._answer(self._complete_json)),
            Route("/hours.json", self._answer(self._hours_json)),
            Route("/style.css", answers.style),
            Route("/live.js", answers.script),
            *(route for name, tables in rooms.items() for route in self._room(name, tables)),
        ]
        handled = (HTTPException, SkidwayError, sqlite3.OperationalError)
        return Starlette(routes=routes, exception_handlers=dict.fromkeys(handled, answers.failure))

    # The first page.

    def _overview(self, request: Request) -> Response:
        unit, until = query.unit(request), query.number(request, "until")
        found = overview(self._facts(), unit, until)
        return self._html(request, "overview.html", {"page": found}, name="index")

    def _overview_json(self, request: Request) -> Response:
        unit, until = query.unit(request), query.number(request, "until")
        return answers.json(overview_document(self._facts(), unit, until))

    def _overview_csv(self, request: Request) -> Response:
        unit, until = query.unit(request), query.number(request, "until")
        found = overview(self._facts(), unit, until)
        tables = [*found.tables, found.grid.table()]
        return answers.csv(tables, request.query_params.get("table"))

    # Pages of tables: topics, hosts and others.

    def _room(self, name: str, tables: Callable[[Request, Facts], Sequence[Table]]) -> list[Route]:
        def page(request: Request) -> Response:
            facts = self._facts()
            found = headline(facts.standing)
            content: Content = {
                "title": name.capitalize(),
                "headline": found,
                "alarms": alarms(facts),
                "tables": tables(request, facts),
            }
            if name == "hosts":
                about = facts.hosts, facts.unread.hosts
                said, status = host_report.sentence(*about), host_report.status(*about)
                content["headline"] = type(found)(said, status.word)
            return self._html(request, "tables.html", content, name=name)

        def for_programs(request: Request) -> Response:
            facts, begin = self._facts(), query.number(request, "from") or 0
            made, given = tables(request, facts), dict(request.query_params)
            found: Content = {x.key: x.records(begin, ROWS_MAX) for x in made}
            most = max(len(x.rows) for x in made)
            if name == "hosts":
                states = named(facts, query.text(request))
                found |= host_report.document(states, facts.unread.hosts, begin, ROWS_MAX)
            found["rows"] = {x.key: len(x.rows) for x in made}
            found["next"] = next_address(request.url.path, given, begin, most)
            return answers.json(found)

        def for_spreadsheets(request: Request) -> Response:
            key = request.query_params.get("table")
            return answers.csv(tables(request, self._facts()), key)

        return [
            Route(f"/{name}", self._answer(page)),
            Route(f"/{name}.json", self._answer(for_programs)),
            Route(f"/{name}.csv", self._answer(for_spreadsheets)),
        ]

    def _results(self, request: Request, facts: Facts) -> Sequence[Table]:
        text, noted = query.text(request), list[BucketHistory]()
        if text and self._history is not None:
            noted = self._history.search(text, facts.now_ms - DAY_MS, FOUND_MAX)
        return [search.results_table(facts, text, noted)]

    # Buckets.

    def _buckets(self, request: Request) -> Response:
        topic = request.query_params.get("topic")
        content: Content = {"topic": topic, "headline": headline(self._standing_of(topic))}
        content["alarms"] = present_alarms(self._facts())
        history = self._history
        content["remembers"] = None if history is None else report.time_text(history.since_ms)
        if "bucket" in request.query_params:
            found, run, evidence = self._explained_buckets(request, topic)
            names = topic_names(x.source for x in found)
            content["buckets"] = [self._bucket(x, names[x.source], evidence, run) for x in found]
            return self._html(request, "bucket.html", content, name="buckets")
        found, content["older"] = self._listed(request, topic)
        names = topic_names(x.source for x in found)
        tables = [buckets_table(found, names, self._edition.policy.tiers)]
        content |= {"title": topic or "Buckets", "tables": tables}
        return self._html(request, "tables.html", content, name="buckets")

    def _bucket(
        self, verdict: BucketVerdict, name: str, evidence: Evidence, run: ByTopic
    ) -> BucketPage:
        """Returns the page of a bucket. run: the verdicts on this bucket, and on later buckets that
        may have the same causes.
        """
        now_ms, noted = self._clock.time_ms(), self._noted(verdict)
        same, explained = alike(verdict, run.related(verdict.source)), _explained(verdict)
        said = self._explanations(explained, evidence, same)
        if noted is None or self._history is None:
            return bucket_page(verdict, name, now_ms, said, len(same), explained=explained)
        first = next((x.time_ms for x in noted.rows if x.is_complete), None)
        changes, arrivals = history_answers.changes(noted), self._history.arrivals(verdict)
        return bucket_page(
            verdict, name, now_ms, said, len(same), first, changes, arrivals, explained
        )

    def _explanations(
        self, explained: BucketVerdict, evidence: Evidence, same: Sequence[BucketVerdict]
    ) -> Sequence[Explanation]:
        """Returns the causes why the bucket is not complete. For each cause, the command that
        accepts it also accepts the buckets in `same`: later buckets that have the same causes.
        """
        policy, now_ms = self._edition.policy, self._clock.time_ms()
        last = same[-1].bucket if same else None
        return explain(explained, evidence, policy, now_ms, self._access, last=last)

    def _explained_buckets(
        self, request: Request, topic: str | None
    ) -> tuple[list[BucketVerdict], ByTopic, Evidence]:
        """Returns three values: the verdicts on the buckets to explain, the verdicts on these and
        later buckets (which may have the same causes), and the evidence. The buckets to explain are
        those that the request asks for, and those that the shown commands would also accept:
        buckets of related topics, and buckets of another length.
        """
        names = None if topic is None else with_rejects([without_id(topic)])
        bucket = query.number(request, "bucket") or 0
        near, evidence = self._near(bucket, names)
        asked = [x for x in near if x.bucket == bucket]
        asked = [x for x in asked if topic is None or is_named(x.source, [topic])]
        found = with_covered(asked, near)
        run = {(x.source, x.bucket, x.bucket_ms): x for x in (*near, *self._run(found, names))}
        return found, ByTopic(run.values()), evidence

    def _near(
        self, bucket: int, names: Sequence[str] | None
    ) -> tuple[list[BucketVerdict], Evidence]:
        """Returns the verdicts on the buckets that begin at the time `bucket`, and on those that
        the commands for these buckets may also accept. Judges no other buckets, because each takes
        time in a large fleet. Also returns the evidence about the buckets. names: names of topics;
        None for all."""
        window = self._edition.ledger.window_with_overlaps(bucket)
        evidence = self._edition.evidence(window, topics_named(names))
        known = (x for topic in evidence.topics.values() for x in (*topic.tallies, *topic.lossy))
        chosen = acceptable_with(bucket, known)
        return self._edition.verdicts_in(evidence, names, chosen), evidence

    def _run(
        self, found: Sequence[BucketVerdict], names: Sequence[str] | None
    ) -> list[BucketVerdict]:
        """Returns the verdicts on the buckets that come after the first bad bucket in `found`. A
        bucket is bad if somebody should look at it. Judges only some of the buckets that come next:
        the more agents the topics have, the fewer buckets. names: names of topics; None for all.
        """
        bad = [x for x in found if is_bad(x)]
        count = min(PAGE_BUCKETS, ROWS_MAX // max(self._edition.agents_of(names), 1))
        if not bad or not count:
            return []
        first = min(x.bucket for x in bad)
        end = first + count * min(x.bucket_ms for x in found)
        return self._edition.verdicts((first + 1, end), names)[0]

    def _noted(self, verdict: BucketVerdict) -> BucketHistory | None:
        if self._history is None:
            return None
        window = (verdict.bucket, verdict.bucket + 1)
        found = self._history.read(window, lambda x: x == verdict.source, 10)
        return next((x for x in found if x.bucket_ms == verdict.bucket_ms), None)

    def _buckets_json(self, request: Request) -> Response:
        topic = request.query_params.get("topic")
        standing = self._standing_of(topic)
        if "bucket" not in request.query_params:
            found, older = self._listed(request, topic)
            said = report.document(standing, found, report.Bounded(agents_address))
            return answers.json({**said, "older_until": older})
        found, run, evidence = self._explained_buckets(request, topic)
        same = [alike(x, run.related(x.source)) for x in found]
        explanations = [
            explanation_document(said)
            for verdict, each in zip(found, same, strict=True)
            for said in self._explanations(_explained(verdict), evidence, each)
        ]
        begin, given = query.number(request, "from") or 0, dict(request.query_params)
        end, most = begin + ROWS_MAX, max((len(x.agents) for x in found), default=0)
        parts = [replace(x, agents=x.agents[begin:end], known_parts=x.parts) for x in found]
        more = {
            "older_until": None,
            "explanations": explanations,
            "hosts_explained": EXPLAINED_MAX,
            "next": next_address(request.url.path, given, begin, most),
        }
        said = report.document(standing, parts)
        for verdict, bucket in zip(parts, said["buckets"], strict=True):
            self._add_latencies(verdict, bucket["places"])
        return answers.json({**said, **more})

    def _add_latencies(self, verdict: BucketVerdict, places: Sequence[Content]) -> None:
        """Adds `latency_ms` to the JSON document of each place: how long after the bucket's end the
        place first had all records."""
        arrivals = {} if self._history is None else self._history.arrivals(verdict)
        for place, after_ms in zip(places, latencies_ms(verdict, arrivals).values(), strict=True):
            place["latency_ms"] = after_ms

    def _buckets_csv(self, request: Request) -> Response:
        topic = request.query_params.get("topic")
        policy = self._edition.policy
        if "bucket" not in request.query_params:
            found, _ = self._listed(request, topic)
            names = topic_names(x.source for x in found)
            tables = [buckets_table(found, names, policy.tiers)]
            return answers.csv(tables, request.query_params.get("table"))
        bucket, asked = query.number(request, "bucket") or 0, None if topic is None else [topic]
        found, _ = self._edition.verdicts((bucket, bucket + 1), asked)
        names = topic_names(x.source for x in found)
        tables = [buckets_table(found, names, policy.tiers)]
        tables += [agents_table(found[0]), filtered_table(found[0])] if found else []
        return answers.csv(tables, request.query_params.get("table"))

    def _listed(
        self, request: Request, topic: str | None
    ) -> tuple[list[BucketVerdict], int | None]:
        """Returns the verdicts on the buckets of a page. Also returns the start of the page's last
        bucket; None if no older buckets follow on another page. If there are many agents, returns
        short verdicts, which name only the agents with the gravest findings.
        """
        names = None if topic is None else [topic]
        agents = self._edition.agents_of(names)
        count = PAGE_BUCKETS if agents <= AGENTS_FEW else NEWEST_BUCKETS
        starts = self._newest(topics_named(names), query.number(request, "until"), count + 1)
        older = starts[count - 1] if len(starts) > count else None
        starts = starts[:count]
        window = (starts[-1], starts[0] + 1) if starts else NO_BUCKETS
        if len(starts) * agents <= ROWS_MAX:
            return self._edition.verdicts(window, names)[0], older
        return self._edition.short_verdicts(window, names), older

    def _newest(self, names: Sequence[str] | None, until: int | None, count: int) -> list[int]:
        ledger = self._edition.ledger
        if names is None:
            return ledger.newest_buckets(count, until)
        found = {x for name in names for x in ledger.newest_buckets(count, until, name)}
        return sorted(found, reverse=True)[:count]

    def _standing_of(self, topic: str | None) -> Standing:
        found = self._edition.step.standing
        return found if topic is None else found.where(lambda source: is_named(source, [topic]))

    def _complete_json(self, request: Request) -> Response:
        return answers.json(self._hours.complete(self._edition, request))

    def _hours_json(self, request: Request) -> Response:
        return answers.json(self._hours.judged(self._edition, request))

    def _history_json(self, request: Request) -> Response:
        known = self._edition.step.common.evidence.topics
        now_ms = self._clock.time_ms()
        return answers.json(
            history_answers.answer(self._history, request.query_params, known, now_ms)
        )

    # The parts that all answers have.

    def _facts(self) -> Facts:
        kept = self._edition.kept
        if "facts" not in kept:
            kept["facts"] = self._made_facts(self._edition.step)
        found: Facts = kept["facts"]
        return found

    def _made_facts(self, step: Step) -> Facts:
        now_ms = self._clock.time_ms()
        return Facts(
            step.standing,
            step.blocks,
            step.common.evidence,
            step.common.policy,
            now_ms,
            None if self._history is None else self._completions(self._history, now_ms),
            step.hosts,
            step.clocks,
            self._edition.ledger.notes(),
            self._access,
            self._examples(),
        )

    def _completions(self, history: HistoryStore, now_ms: int) -> Any:
        return history.completions(max(now_ms - DAY_MS, history.since_ms), COMPLETIONS_MAX)

    def _html(self, request: Request, template: str, content: Content, *, name: str) -> Response:
        step, given = self._edition.step, dict(request.query_params)
        taken_ms = step.common.evidence.taken_ms
        older = content.get("older")
        frame = {
            "path": request.url.path,
            "asked": request.query_params.get("q", ""),
            "json": words.link(f"/{name}.json", **given),
            "csv": lambda key: words.link(f"/{name}.csv", **(given | {"table": key})),
            "older": words.link("/buckets", **(given | {"until": older})) if older else "",
            "taken": f"Read up to {words.moment(taken_ms)}" if taken_ms else "Nothing was read yet",
            "judged": step.standing.judged_ms,
            "link": words.link,
        }
        return answers.html(self._pages.render(template, content | frame))

    def _answer(self, content: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            with self._lock, self._editions.newest() as self._edition:
                return content(request)

        return answer


def _explained(verdict: BucketVerdict) -> BucketVerdict:
    """Returns a copy of the verdict that has only the agents whose findings the page explains (see
    EXPLAINED_MAX)."""
    agents = gravest_first(verdict.agents, EXPLAINED_MAX)
    return replace(verdict, agents=agents, known_parts=verdict.parts)


def _hosts(request: Request, facts: Facts) -> Sequence[Table]:
    return [hosts_table(facts, query.text(request)), senders_table(facts), refused_table(facts)]
