"""Where refused messages are named: report, hosts, `why` and the pages, of one store in which an
agent or a counter signs with a wrong key, or somebody writes without one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.audit.evidence.admission import Mode
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.explanation.explanation import explain
from skidway.audit.judgement.acceptances import Signature, disownments
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.refusals import Refusals
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import refused_report
from skidway.audit.topic import program_status
from skidway.audit.topic.decisions import Retirement
from skidway.audit.topic.messages import Heartbeat, Message, Range, Sender, Tier
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.cli.commands import main
from support.audit_senders import AGENT, BROKER, LOGS
from support.clock import ManualClock
from support.dashboard import ask
from support.one_bucket import (
    DUE,
    HDFS,
    MIRROR,
    POLICY,
    SECOND,
    count,
    delta,
    good,
    seal,
)
from support.promises import promise
from support.signed_records import MASTER, STRANGE, take_signed, verifying

JUNK = b"\xc3\x01" + b"12345678" + b"xx"
"""A record with a schema that nobody knows."""
LATER = DUE + 2 * POLICY.silence_ms
SETTINGS = (
    "bootstrap.servers: 127.0.0.1:1\nstore.dir: store\naudit.signatures: require\n"
    f"lateness.ms: {POLICY.lateness_ms}\nsilence.ms: {POLICY.silence_ms}\n"
)
Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def ledger(tmp_path: Path, ids_of_senders: None) -> Ledger:
    """A store that requires signatures, with one complete bucket."""
    (tmp_path / "store").mkdir()
    made = verifying(path=tmp_path / "store" / DATABASE)
    take_signed(made, good(), DUE)
    return made


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Returns a function that runs `skidway audit` at a time."""
    (tmp_path / "audit.yml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)

    def asked(line: str, now_ms: int = DUE + 1) -> tuple[int, str]:
        for name in ("report", "hosts", "why"):
            monkeypatch.setattr(
                f"skidway.audit.commands.{name}.SystemClock", lambda: ManualClock(now_ms)
            )
        status = main(["audit", *shlex.split(line), "--config", "audit.yml"])
        return status, capsys.readouterr().out

    return asked


def shown(ledger: Ledger, path: str, now_ms: int) -> str:
    """Returns what the dashboard answers for a path."""
    _, _, body = ask(ledger, path, POLICY, now_ms=now_ms)
    ledger.let_go()
    return body


def unheard(now_ms: int) -> list[Message]:
    """What the counters say while the agent of web1 is not heard: newer records than it has."""
    return [Heartbeat(x, 1, now_ms) for x in (BROKER, MIRROR, HDFS)]


@promise("6 signed")
def test_refused_messages_are_named_and_change_no_verdict(ledger: Ledger, run: Ask) -> None:
    """Unsigned messages in the name of an agent, a record of twelve bytes and a decision without a
    key are refused: the report names each of them beside the verdict, which stays what it was, with
    status 0. JSON has a row for each, with topic and offsets."""
    forged = [seal(AGENT, 9, DUE, 5), delta(AGENT, 8, count(1)), JUNK]
    take_signed(ledger, forged, DUE, master=None, offset=20)
    take_signed(ledger, [Retirement(1, 5, "ceo", "x", "hdfs")], DUE, master=None, offset=30)
    status, printed = run("report")
    assert (status, "The bucket of 1 topic is complete." in printed) == (0, True)
    for words in (
        "2 messages in the name of agent/dc1/web1 are refused: unsigned.",
        "1 message of an unknown sender is refused: unsigned.",
        "1 message in the name of person/ceo is refused: unsigned.",
    ):
        assert words in printed
    found = json.loads(run("report --json")[1])["refused"]
    rows = {(x["sender"], x["kind"]): x for x in found}
    assert rows.keys() == {
        ("agent/dc1/web1", "seal"), ("agent/dc1/web1", "delta"), (None, "unread"),
        ("person/ceo", "retirement"),
    }  # fmt: skip
    seen = rows["agent/dc1/web1", "seal"]
    assert (seen["topic"], seen["partition"], seen["first_offset"]) == ("_skidway_audit", 0, 20)
    assert (seen["count"], seen["last_seen"], seen["taken"]) == (1, DUE, False)


@promise("6 signed")
@pytest.mark.parametrize(
    ("master", "reason"),
    [(STRANGE, "wrong signature"), (None, "unsigned")],
    ids=["another key", "no key"],
)
def test_a_host_whose_messages_are_refused_is_not_only_silent(
    ledger: Ledger, run: Ask, master: object, reason: str
) -> None:
    """An agent that signs with a wrong key, or with none, looks silent. `hosts`, `why`, report and
    pages say that its messages are refused and why, and name the command that prints its key."""
    beats = [Heartbeat(AGENT, 2, LATER - 1), Heartbeat(AGENT, 2, LATER)]
    take_signed(ledger, beats, LATER, master=master, offset=50)  # type: ignore[arg-type]
    take_signed(ledger, [*unheard(LATER), *newer()], LATER, offset=60)
    words = f"2 messages in the name of agent/dc1/web1 are refused: {reason}"
    command = "skidway audit keys derive agent/dc1/web1 --config audit.yml"
    status, printed = run("hosts", LATER + 1)
    assert (status, f": {words}" in printed.splitlines()[1]) == (1, True)
    [host] = json.loads(run("hosts --json", LATER + 1)[1])["hosts"]
    assert (host["state"], host["refused"]) == ("silent", words)
    status, printed = run("why logs", LATER + 90_000)
    assert status == 1
    assert "messages refused: " in printed
    assert words in printed
    assert command in printed
    assert "host silent: " not in printed
    assert words in run("report", LATER + 90_000)[1]
    page = shown(ledger, "/", LATER + 1)
    assert f"{words}." in page
    assert "keys derive agent/dc1/web1" in page
    page = shown(ledger, "/hosts.json", LATER + 1)
    [row] = json.loads(page)["refused"]
    assert (row["sender"], row["reason"], row["count"]) == ("agent/dc1/web1", reason, 2)


def newer() -> list[Message]:
    """A bucket after the first one that the agent has not counted, and is not known to have."""
    later = count(bucket=600_000 + 60_000)
    return [delta(x, 2, later) for x in (BROKER, MIRROR, HDFS)]


def test_a_host_that_is_heard_again_is_not_called_refused(ledger: Ledger) -> None:
    """What was refused before the host was last heard does not explain why it is silent now. Nor
    does what is forged in the name of another host of that name in another cluster."""
    take_signed(ledger, [Heartbeat(AGENT, 2, LATER)], LATER, master=STRANGE, offset=50)
    refusals = Refusals(ledger.evidence())
    assert refusals.of_host("dc1", "web1") is not None
    assert refusals.of_host(None, "web1") is not None
    assert refusals.of_host("dc2", "web1") is None
    assert refusals.of_host("dc1", "web") is None
    take_signed(ledger, [Heartbeat(AGENT, 2, LATER + 5)], LATER + 5, offset=51)
    assert Refusals(ledger.evidence()).of_host("dc1", "web1") is None


@pytest.mark.parametrize(
    ("sender", "identity"),
    [
        (BROKER, "counter/broker/dc1"),
        (MIRROR, "counter/mirror/offline"),
        (HDFS, "loader/offline//logs"),
    ],
)
def test_a_counter_whose_messages_are_refused_is_not_only_stopped(
    sender: Sender, identity: str
) -> None:
    """If the messages of a counter or a loader are refused from the first one on, the explanation
    of the bucket says so in place of a counter that never counted, or of a load that did not
    run."""
    ledger = verifying()
    good_ones, own = good(), delta(sender, 1, count())
    take_signed(ledger, [x for x in good_ones if x != own], DUE)
    take_signed(ledger, [own], DUE, master=STRANGE, offset=9)
    evidence = ledger.evidence()
    [bucket] = verdicts(evidence, POLICY, LATER)
    found = explain(bucket, evidence, POLICY, LATER)
    [refused] = [x for x in found if x.cause is Cause.MESSAGES_REFUSED]
    assert refused.words.endswith(
        f"1 message in the name of {identity} is refused: wrong signature"
    )
    assert refused.command.line == f"skidway audit keys derive {identity}"


def test_a_counter_that_is_refused_later_has_not_stopped(ledger: Ledger) -> None:
    """If the messages of a counter are refused after it was heard, the first page does not advise
    to start it."""
    take_signed(ledger, [Heartbeat(BROKER, 1, LATER)], LATER, master=STRANGE, offset=50)
    others = [Heartbeat(x, 1, LATER) for x in (MIRROR, HDFS)] + [Heartbeat(AGENT, 2, LATER)]
    take_signed(ledger, others, LATER, offset=60)
    page = shown(ledger, "/", LATER + 1)
    assert "1 message in the name of counter/broker/dc1 is refused: wrong signature. Next: " in page
    assert "systemctl start skidway-audit-count" not in page


def test_an_output_whose_loads_are_refused_is_not_only_late(ledger: Ledger) -> None:
    """If the counts of a load are refused, the first page does not advise to start the loader for a
    late output."""
    take_signed(ledger, [delta(HDFS, 2, count())], LATER, master=STRANGE, offset=50)
    ranges = (Range(LOGS, 0, 10, 20),)
    newer = [replace(delta(x, 2, count(bucket=LATER)), ranges=ranges) for x in (BROKER, MIRROR)]
    take_signed(ledger, newer, LATER, offset=60)
    policy = replace(POLICY, loads_every_ms=1_000)
    _, _, page = ask(ledger, "/", policy, now_ms=LATER + 1)
    words = "1 message in the name of loader/offline//logs is refused: wrong signature"
    assert f"records wait for a load: {words}" in page
    assert "systemctl start skidway-loader" not in page


def test_while_a_fleet_begins_to_sign_messages_would_be_refused() -> None:
    """With `warn`, messages count although nothing proves them, and the sentence says what
    `require` would do. They are no reason why a host is silent."""
    ledger = verifying(Mode.WARN)
    take_signed(ledger, good(), DUE, master=None)
    evidence = ledger.evidence()
    said = refused_report.sentences(evidence, DUE)
    assert "2 messages in the name of agent/dc1/web1 would be refused: unsigned." in said
    assert Refusals(evidence).of_host("dc1", "web1") is None
    assert {x["taken"] for x in refused_report.document(evidence)["refused"]} == {True}


@promise("6 signed")
def test_only_a_person_with_a_key_disowns_what_a_sender_has_signed(ledger: Ledger) -> None:
    """If signatures are required, a message of an unknown schema that a sender has signed makes the
    bucket unknown. It is disowned with the key of a person, and not in a person's name alone, nor
    with the key of the host that sent it."""

    def status() -> Status:
        return verdicts(ledger.evidence(), POLICY, DUE)[0].status

    take_signed(ledger, [JUNK], DUE, identity="agent/dc1/web1", offset=20)
    assert status() is Status.UNKNOWN
    name = JUNK[2:10].hex()
    said = disownments([name], ledger.unread(), Signature(DUE, "ada", "a test"))
    take_signed(ledger, said, DUE, master=None, offset=21)
    take_signed(ledger, said, DUE, identity="agent/dc1/web1", offset=22)
    assert status() is Status.UNKNOWN
    take_signed(ledger, said, DUE, identity="person/ada", offset=23)
    assert (status(), ledger.unread()) == (Status.COMPLETE, {})
    words = f"1 message with the schema {name} is disowned by ada: a test."
    assert words in refused_report.sentences(ledger.evidence(), DUE)


def test_only_the_newest_senders_are_named(ledger: Ledger) -> None:
    """However many senders are refused, the report has a few sentences, with the newest first, and
    says how many more there are. What was refused more than a day ago is only in the table."""
    for number in range(8):
        host = Sender(Tier.AGENT, "dc1", str(100 + number), f"h{number}", 1)
        take_signed(ledger, [Heartbeat(host, 0, DUE)], DUE + number, master=None, offset=number)
    said = refused_report.sentences(ledger.evidence(), DUE + 7)
    assert [x.split()[6] for x in said[:5]] == [f"agent/dc1/h{x}" for x in (7, 6, 5, 4, 3)]
    assert said[5].startswith("So are those of further senders or reasons (3)")
    later = refused_report.sentences(ledger.evidence(), DUE + 7 + refused_report.RECENT_MS)
    assert len(later) == 1
    assert len(refused_report.document(ledger.evidence())["refused"]) == 8


def test_what_a_forger_writes_is_shown_harmless(ledger: Ledger, run: Ask) -> None:
    """The names in a forged message are its writer's choice: the page shows them as text, and the
    terminal gets no escape sequence and no line of its own."""
    evil = "web<b>1</b>\x1b[2J\nall is well" + "x" * 5_000
    sender = Sender(Tier.AGENT, "dc1", "66", evil, 1)
    note = Note(program_status.KIND, "counter/evil/dc1", evil, "dc1", 1, 1, DUE, {})
    take_signed(ledger, [Heartbeat(sender, 0, DUE), note], DUE, master=None)
    for path in ("/", "/hosts"):
        page = shown(ledger, path, DUE + 1)
        assert "web&lt;b&gt;1" in page
        assert "<b>1" not in page
        assert "x" * 300 not in page
    printed = run("report")[1]
    assert "\x1b" not in printed
    assert "all is well" not in {x.split("x")[0].strip() for x in printed.splitlines()}


def test_each_kind_of_message_is_named_by_who_may_send_it(ledger: Ledger) -> None:
    """An unsigned message is named by the identity that it would need: that of an agent, a counter,
    a loader, a recount or a person."""
    status = Note(program_status.KIND, "8", "web2", "dc1", 1, 1, DUE, {})
    named: list[tuple[Message, str]] = [
        (seal(SECOND, 1, DUE, 1), "agent/dc1/web2"),
        (status, "agent/dc1/web2"),
        (delta(BROKER, 5, count()), "counter/broker/dc1"),
        (
            delta(Sender(Tier.MIRROR, "offline", "mine", "c2", 1), 5, count()),
            "counter/mirror/offline/mine",
        ),
        (delta(HDFS, 5, count()), "loader/offline//logs"),
        (RecountResult(DUE, "l1", "/logs", LOGS, None, 1, 1, 1, 0, 0, ()), "recount/l1"),
        (Retirement(1, DUE, "ada", "x", "hdfs"), "person/ada"),
    ]
    for number, (message, identity) in enumerate(named):
        take_signed(ledger, [message], DUE + number + 1, master=None, offset=number)
        assert ledger.refused()[0].sender == identity, message
        take_signed(ledger, [message], DUE, identity=identity, master=MASTER, offset=number)
    assert len(ledger.refused()) == len(named), "with the key of that identity it is taken"
