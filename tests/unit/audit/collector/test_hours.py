"""Programs can ask the collector which hours are complete. The tests compare the collector's
answers with the verdicts of the audit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from skidway.audit.collector.judge import BLOCK_MS
from skidway.audit.evidence.ledger import DATABASE, Ledger, ledger_of
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.reports import report
from skidway.audit.topic.messages import Heartbeat, Message, encode
from skidway.cli.commands import main
from support.audit_senders import AGENT, BROKER, LOGS
from support.clock import ManualClock
from support.dashboard import ask
from support.fold import Fold
from support.one_bucket import (
    COUNTERS,
    HDFS,
    LATENESS,
    LOSS,
    POLICY,
    SIZE,
    count,
    delta,
    good,
    seal,
)
from support.promises import promise

NOW = 3 * BLOCK_MS
NAME = "dc1.logs"
SETTINGS = [
    "--set=bootstrap.servers=a:1",
    f"--set=lateness.ms={POLICY.lateness_ms}",
    f"--set=silence.ms={POLICY.silence_ms}",
]
"""The collector's settings, as options of the command line. They give the policy POLICY, by which
buckets are judged."""


def heard() -> list[Message]:
    """Returns messages about one bucket, which lies in the first hour after 1970-01-01T00:00Z. All
    tiers counted the same records in this bucket. The agent's seal says that all lines of the first
    two hours are counted. The broker's counter has sent a heartbeat just now."""
    return [*good(), seal(AGENT, 3, 2 * BLOCK_MS + LATENESS, 1), Heartbeat(BROKER, 1, NOW - 1)]


def got(
    messages: Iterable[Message], path: str, policy: Policy = POLICY, **query: object
) -> tuple[int, Any]:
    times = {"since": report.time_text(0), "until": report.time_text(BLOCK_MS)}
    asked = urlencode({"topic": NAME, **times, **query})
    ledger = ledger_of(map(encode, messages))
    status, _, body = ask(ledger, f"{path}?{asked}", policy, now_ms=NOW)
    return status, json.loads(body) if status == 200 else body


@promise("6 complete before a time")
def test_complete_json_is_the_answer_of_audit_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """/complete.json contains what `audit complete --json` prints about the same store. It also
    contains three fields: the time of the judgement (`judged_ms`), the newest message of a
    requested output (`output`), and, for each incomplete bucket, the address of a list of further
    agents (`agents_at`). The last two are null here. In both documents, `ok` is true if the topic
    is complete in the requested span of time, and false otherwise.
    """
    monkeypatch.setattr("skidway.audit.commands.complete.SystemClock", lambda: ManualClock(NOW))
    late = [*heard(), delta(AGENT, 4, count(1, bucket=SIZE))]
    for messages, hours, hours_short in (
        (heard(), 1, []), (heard(), 2, []), (heard(), 3, [2 * BLOCK_MS]), (late, 1, [0])
    ):  # fmt: skip
        until = report.time_text(hours * BLOCK_MS)
        found = got(messages, "/complete.json", until=until)[1]
        assert found["ok"] is not bool(hours_short)
        short = [each["hour"] for each in found["topics"][0]["hours_short"]]
        assert short == list(map(report.time_text, hours_short))
        assert all(each.pop("agents_at") is None for each in found["topics"][0]["short"])
        ledger = Ledger(tmp_path / DATABASE)
        ledger.take(map(encode, messages))
        ledger.close()
        asked = ["--topic", NAME, "--since", report.time_text(0), "--until", until]
        status = main(["audit", "complete", "--json", "--store", str(tmp_path), *SETTINGS, *asked])
        printed = json.loads(capsys.readouterr().out)
        assert (status, printed.pop("seconds_waited")) == (int(not found["ok"]), 0)
        assert found == {**printed, "judged_ms": NOW, "output": None}


@promise("6 complete before a time")
def test_the_answer_says_up_to_which_message_an_output_was_heard() -> None:
    """If a request for /complete.json has the parameter `output`, the answer contains the epoch and
    the number of the newest message that the collector has received from this output's loader. If
    the collector has no message from this loader, the answer contains null."""
    later = [*heard(), delta(HDFS, 2)]
    for messages, last in ((heard(), 1), (later, 2)):
        _, found = got(messages, "/complete.json", output=HDFS.producer)
        assert found["output"] == {
            "name": HDFS.producer, "epoch": 1, "last": last, "retired": False
        }  # fmt: skip
    again = [*later, delta(replace(HDFS, epoch=2), 1)]
    assert got(again, "/complete.json", output=HDFS.producer)[1]["output"]["epoch"] == 2
    assert got(heard(), "/complete.json", output="/other")[1]["output"] is None
    retired = replace(POLICY, retired_places=(f"hdfs {HDFS.producer}",))
    assert got(heard(), "/complete.json", retired, output=HDFS.producer)[1]["output"]["retired"]


def test_a_topic_that_was_made_again_is_told_by_its_id() -> None:
    """A request that asks whether a topic is complete may contain the topic's id after its name.
    Then the answer is only about the topic with this id, and ignores another topic of the same
    name."""
    assert got(heard(), "/complete.json", topic=f"{NAME} (id {LOGS.topic_id})")[1]["ok"]
    assert not got(heard(), "/complete.json", topic=f"{NAME} (id 0123)")[1]["ok"]


@promise("6 complete before a time")
def test_hours_json_names_each_hour_with_buckets_and_its_last_judgement() -> None:
    """/hours.json lists the hours that have buckets, each with the time of its last judgement. An
    hour is complete if all its buckets are complete. An hour without buckets is in the list only if
    lines of this hour may be lost."""
    until = report.time_text(3 * BLOCK_MS)
    [hour] = got(heard(), "/hours.json", until=until)[1]["hours"]
    assert hour == {
        "hour": report.time_text(0), "hour_ms": 0, "complete": True, "judged_ms": NOW
    }  # fmt: skip
    short = [*heard(), delta(AGENT, 4, count(1, bucket=BLOCK_MS))]
    found = got(short, "/hours.json", until=until)[1]["hours"]
    assert [(each["hour_ms"], each["complete"]) for each in found] == [(0, True), (BLOCK_MS, False)]


@promise("5 success file")
def test_an_hour_in_which_lines_may_be_lost_is_not_complete() -> None:
    """If an agent declares a loss and does not know the last bucket of the lost lines, these lines
    may belong to hours in which nothing was counted. /hours.json lists these hours as not complete,
    although they have no bucket. The loader reads this list, so it removes the `_SUCCESS` files of
    these hours."""
    until = report.time_text(5 * BLOCK_MS)
    begin = 30 * SIZE
    lost = replace(LOSS, end=None, from_bucket=begin, to_bucket=None)
    said = [*heard(), replace(delta(AGENT, 4, losses=(lost,)), time_ms=BLOCK_MS + SIZE)]
    found = got(said, "/hours.json", until=until)[1]["hours"]
    assert [(each["hour_ms"], each["complete"]) for each in found] == [
        (0, False), (BLOCK_MS, False), (2 * BLOCK_MS, False)
    ], "up to the agent's last seal before the loss"  # fmt: skip
    assert not got(said, "/complete.json")[1]["ok"]


@promise("6 acceptance")
def test_a_loss_that_was_accepted_after_the_hour_does_not_hold_back_its_empty_buckets() -> None:
    """A declared loss may concern empty buckets of one hour (buckets in which nothing was counted),
    and end in a bucket of the next hour. If a person accepts the loss in this last bucket,
    /complete.json also counts the loss as accepted in the empty buckets of the hour before."""
    lost = replace(LOSS, from_bucket=0, to_bucket=BLOCK_MS + SIZE)
    said = [*heard(), delta(AGENT, 4, losses=(lost,)), seal(AGENT, 5, 2 * BLOCK_MS + LATENESS, 4)]
    since = report.time_text(BLOCK_MS // 2)
    assert not got(said, "/complete.json", since=since)[1]["ok"]
    last = [x for x in verdicts(Fold(said).evidence(), POLICY, NOW) if x.bucket > BLOCK_MS]
    said += acceptances(last, Signature(NOW, "ada", "ticket 1"))
    assert got(said, "/complete.json", since=since)[1]["ok"]


@pytest.mark.parametrize("later", [7 * SIZE, SIZE, BLOCK_MS])
def test_a_bucket_that_reaches_into_the_next_hour_belongs_to_both(later: int) -> None:
    """If buckets do not fit evenly into an hour, a bucket may reach into the next hour. Then
    neither of the two hours is complete before this bucket is complete. This is so even if later
    buckets have another size."""
    size = 7 * SIZE
    last = (BLOCK_MS // size) * size
    wide = replace(count(1, bucket=last), bucket_ms=size)
    start = last + size if later < BLOCK_MS else BLOCK_MS
    rest = replace(count(1, bucket=start), bucket_ms=later)
    said: list[Message] = [
        delta(AGENT, 1, wide, rest),
        *(delta(sender, 1, rest) for sender in COUNTERS),
        seal(AGENT, 2, NOW - 1, 1),
        Heartbeat(BROKER, 1, NOW - 1),
    ]
    found = got(said, "/hours.json", until=report.time_text(2 * BLOCK_MS))[1]["hours"]
    assert [each["complete"] for each in found] == [False, False]


def test_long_buckets_of_another_topic_hold_back_no_hour() -> None:
    """If another topic has buckets of a day, an hour depends on its own buckets as before."""
    other = replace(LOGS, topic="others")
    wide = replace(count(3, bucket=0, source=other), bucket_ms=24 * BLOCK_MS)
    short, whole = count(1, bucket=2 * SIZE), count(1, bucket=BLOCK_MS)
    said: list[Message] = [
        *heard(),
        delta(AGENT, 4, short, whole, wide),
        *(delta(sender, 2, whole) for sender in COUNTERS),
        seal(AGENT, 5, NOW - 1, 4),
    ]
    found = got(said, "/hours.json", until=report.time_text(2 * BLOCK_MS))[1]["hours"]
    assert [each["complete"] for each in found] == [False, True]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"topic": ""}, "topic is missing"),
        ({"since": "yesterday"}, "since 'yesterday' is neither a time"),
        ({"until": report.time_text(-BLOCK_MS)}, "since"),
        ({"until": "9000-01-01T00:00:00Z"}, "since"),
    ],
)
@pytest.mark.parametrize("path", ["/complete.json", "/hours.json"])
def test_a_question_that_makes_no_sense_is_refused(
    path: str, query: dict[str, str], words: str
) -> None:
    """If a request has no topic, a time that cannot be read, or a span of time that is empty or too
    long, the answer is status 400 and one sentence."""
    status, body = got(heard(), path, **query)
    assert status == 400
    assert words in body
