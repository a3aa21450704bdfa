"""The loader understands the answers that the real code of the audit's collector gives."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from skidway.audit.collector.judge import BLOCK_MS
from skidway.audit.evidence.ledger import ledger_of
from skidway.audit.judgement.policy import Policy
from skidway.audit.topic.messages import Delta, Heartbeat, Message, Tier, encode
from skidway.errors import SkidwayError, Unreachable
from skidway.loader.complete_hours.collector import Answer, Collector
from skidway.loader.complete_hours.success_file import content
from support.audit_senders import AGENT, BROKER, LOGS
from support.dashboard import ask
from support.one_bucket import HDFS, LOSS, POLICY, SIZE, START, count, delta, good, seal
from support.processes import free_port
from support.promises import promise

NOW = 3 * BLOCK_MS
FIRST, SECOND, THIRD = "1970-01-01T00", "1970-01-01T01", "1970-01-01T02"
HEARD: list[Message] = [*good(), seal(AGENT, 3, NOW - 1, 1), Heartbeat(BROKER, 1, NOW - 1)]


def collector(messages: list[Message], policy: Policy = POLICY) -> Collector:
    """Returns a collector that has read `messages`."""
    ledger = ledger_of(map(encode, messages))

    def get(url: str, query: Mapping[str, str]) -> Any:
        path = f"{urlsplit(url).path}?{urlencode(query)}"
        status, _, body = ask(ledger, path, policy, now_ms=NOW)
        assert status == 200, body
        return json.loads(body)

    return Collector("http://audit:8088/", get)


@promise("5 success file")
def test_an_hour_is_complete_if_the_audit_says_so_of_its_rows() -> None:
    """The loader counts an hour as complete under two conditions: the audit calls the hour
    complete, and the audit has also compared the counts of this output (tier hdfs). The collector's
    answer also has the epoch and number of the newest message of this output that the audit has
    read."""
    assert collector(HEARD).complete(LOGS, FIRST, HDFS.producer) == Answer(True, NOW, (1, 1))
    late = [*HEARD, delta(AGENT, 4, count(1, bucket=59 * SIZE))]
    assert not collector(late).complete(LOGS, FIRST, HDFS.producer).is_complete
    assert collector(HEARD).complete(LOGS, SECOND, "/other") == Answer(False, NOW)
    assert not collector(HEARD).complete(LOGS, THIRD, HDFS.producer).is_complete, "too young"
    without = Policy(
        tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=POLICY.lateness_ms, silence_ms=100_000
    )
    assert not collector(HEARD, without).complete(LOGS, FIRST, HDFS.producer).is_complete
    retired = replace(POLICY, retired_places=(f"hdfs {HDFS.producer}",))
    assert not collector(HEARD, retired).complete(LOGS, FIRST, HDFS.producer).is_complete


@promise("5 success file")
def test_an_hour_lacks_records_only_by_what_concerns_its_buckets() -> None:
    """An hour lacks records if one tier (for example the broker) counted fewer records than another
    tier, or if an agent declared a loss. An hour does not lack records merely because no program
    has reported lately, or because an agent has not yet confirmed (sealed) the hour."""
    late = [*HEARD, delta(AGENT, 4, count(1, bucket=59 * SIZE))]
    assert collector(late).complete(LOGS, FIRST, HDFS.producer).lacks
    assert not collector(late[:-2]).complete(LOGS, FIRST, HDFS.producer).lacks, "nobody was heard"
    open_hour = collector([*good(), HEARD[-1]]).complete(LOGS, FIRST, HDFS.producer)
    assert (open_hour.is_complete, open_hour.lacks) == (False, False)
    lost = [*HEARD, Delta(AGENT, 4, START, losses=(LOSS,))]
    assert collector(lost).complete(LOGS, FIRST, HDFS.producer).lacks


def test_the_last_judgements_come_by_hour() -> None:
    """For each hour with counts, the collector gives its last judgement and the time of this
    judgement."""
    late = [*HEARD, delta(AGENT, 4, count(1, bucket=BLOCK_MS))]
    assert collector(late).judged(LOGS, FIRST, THIRD) == {
        FIRST: Answer(True, NOW), SECOND: Answer(False, NOW)
    }  # fmt: skip


def test_what_is_no_collector_is_named() -> None:
    """If no program listens at the address in the loader's settings, the error says that the
    collector does not answer. If a program other than a collector answers there, the error says
    that this program is no collector."""
    url = f"http://127.0.0.1:{free_port()}"
    with pytest.raises(Unreachable, match="collector does not answer"):
        Collector(url).judged(LOGS, FIRST, THIRD)
    huge = {"hours": [{"hour_ms": 10**40, "complete": True, "judged_ms": 1}]}
    none = {"hours": [{"hour_ms": 0, "complete": True, "judged_ms": None}]}
    for answer in ({}, [], {"hours": [{}]}, huge, none):
        with pytest.raises(SkidwayError, match=r"http://x/hours.json is no collector"):
            Collector("http://x", lambda *_, said=answer: said).judged(LOGS, FIRST, THIRD)


def test_a_collector_that_does_not_answer_is_asked_once() -> None:
    """After one question without an answer, a run of the loader asks the collector nothing more,
    because each further question could take as long as the first."""
    asked = []

    def get(url: str, _query: Mapping[str, str]) -> Any:
        asked.append(url)
        raise Unreachable("the audit's collector does not answer")

    away = Collector("http://audit:8088", get)
    for _ in range(3):
        with pytest.raises(Unreachable, match="does not answer"):
            away.judged(LOGS, FIRST, THIRD)
    assert len(asked) == 1


def test_a_slow_collector_takes_a_bounded_time_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all answers of the collector together have taken too long, the loader's run asks no more
    questions."""
    monkeypatch.setattr("skidway.loader.complete_hours.collector.BUDGET_S", -1.0)
    slow = collector(HEARD)
    slow.judged(LOGS, FIRST, THIRD)
    with pytest.raises(Unreachable, match="s to answer; the next run asks about the other hours"):
        slow.judged(LOGS, FIRST, THIRD)


def test_the_file_has_what_the_collector_said() -> None:
    """The success file (`_SUCCESS`) of an hour has the number of rows, the time of the collector's
    judgement, and the buckets whose findings a person accepted."""
    data = content("logs", FIRST, 5, Answer(True, NOW, (1, 1), accepted=[{"bucket": 1}]))
    assert json.loads(data) == {
        "topic": "logs", "hour": FIRST, "rows": 5, "judged_ms": NOW, "accepted": [{"bucket": 1}]
    }  # fmt: skip


def test_an_answer_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a collector sends its answer byte by byte, the loader's run gives up after a limited
    time."""
    over = threading.Event()
    module = "skidway.loader.complete_hours.collector"
    monkeypatch.setattr(f"{module}._fetched", lambda _url, _query: over.wait())
    monkeypatch.setattr(f"{module}.ANSWER_S", 0.01)
    with pytest.raises(Unreachable, match="has not answered within"):
        Collector("http://audit").judged(LOGS, FIRST, SECOND)
    over.set()
