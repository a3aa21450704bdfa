"""The commands `skidway audit accept` and `skidway audit retire`, tested without a cluster."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skidway.audit.commands import accept, options, publication
from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.admission import Mode
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.judgement.acceptances import Signature, acceptances, retirement
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Place
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.decisions import Decision, Retirement
from skidway.audit.topic.messages import TOPIC, Certainty, Delta, Loss, Range, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.audit.topic.topic import TopicBatch, records_of
from skidway.cli.commands import main
from skidway.errors import UsageError
from skidway.kafka.types import TopicPartition
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.clock import ManualClock
from support.ledgers import take
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryProducer
from support.promises import promise
from support.signed_records import take_signed, verifying

JUNK = b"\xc3\x01" + b"12345678" + b"xx"
"""A message with a schema that nobody knows."""
HDFS = Sender(Tier.HDFS, "dc1", "/old/dc1.logs", "l1", 1)
LOSS = Loss(LOGS, 7, 3, 100, 200, Certainty.LOST, "deleted", 60_000, 60_000)

Ask = Callable[..., tuple[int, str]]


@pytest.fixture
def store(tmp_path: Path) -> Ledger:
    """A store with three buckets. The bucket of 00:01 has the verdict "lost", because the agent
    declared a loss in it. The other two buckets are complete."""
    counts = tuple(Count(LOGS, 7, n * 60_000, 60_000, 5, 50, 9) for n in range(3))
    said = [
        Delta(AGENT, 1, 5, counts=counts),
        Seal(AGENT, 2, 60_000, (SealedTopic(LOGS, 60_000, 1),)),
        Delta(AGENT, 3, 60_000, losses=(LOSS,)),
        Delta(BROKER, 1, 5, ranges=(Range(LOGS, 0, 0, 15),), counts=counts),
        Delta(HDFS, 1, 5, ranges=(Range(LOGS, 0, 0, 15),), counts=counts),
        Seal(AGENT, 4, 10**9, (SealedTopic(LOGS, 10**9, 3),)),
    ]
    (tmp_path / "store").mkdir()
    ledger = Ledger(tmp_path / "store" / DATABASE)
    take(ledger, map(messages.encode, said), now_ms=10**9)
    return ledger


@pytest.fixture
def ask(
    store: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ask:
    """Returns a function that runs a command with the evidence in the store. Every decision that
    the command publishes is added to the store at once."""
    config = tmp_path / "audit.yml"
    config.write_text(
        f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {tmp_path / 'store'}\n"
        "tiers: [agent, broker, hdfs]\nlateness.ms: 0\nsilence.ms: 100000000000\n"
    )

    def publish(_args: Any, _settings: Any, decisions: Sequence[Decision], *_: Any) -> None:
        take(store, [messages.encode(each) for each in decisions], now_ms=10**9)

    monkeypatch.setattr(accept, "publish", publish)
    for module in ("commands.report", "commands.accept", "commands.decisions"):
        monkeypatch.setattr(f"skidway.audit.{module}.SystemClock", lambda: ManualClock(10**9))

    def run(line: str) -> tuple[int, str]:
        status = main(["audit", *shlex.split(line), "--config", str(config)])
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    return run


@promise("6 acceptance")
def test_a_loss_is_accepted_until_it_is_taken_back(ask: Ask) -> None:
    """`accept` prints the loss that it accepts. Afterwards `report` ends with status 0 and prints
    the number of accepted buckets, until a person takes the acceptance back."""
    assert ask("report")[0] == 1
    status, printed = ask(
        "accept dc1.logs 1970-01-01T00:01:30Z --reason 'the disk died' --name ada"
    )
    assert status == 0
    assert "dc1.logs 1970-01-01T00:01:00Z (lost): web1: bytes 100 to 200 of file 3" in printed
    status, printed = ask("report")
    assert status == 0
    assert "1 is not, and accepted (1 lost)." in printed
    assert "accepted by ada (the disk died)" in printed
    [found] = [x for x in json.loads(ask("report --json")[1])["buckets"] if x["accepted"]]
    assert (found["verdict"], found["acceptances"][0]["person"]) == ("lost", "ada")
    assert ask("accept logs 1970-01-01T00:01:00Z --revoke --reason 'not so' --name bob")[0] == 0
    assert ask("report")[0] == 1


def test_by_a_clock_that_is_ahead_nothing_is_accepted(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the clock of the host on which `accept` runs is ahead, the command accepts nothing. By
    this clock, buckets would be due (old enough to be judged) too early, and agents would seem
    silent too early."""
    monkeypatch.setattr(accept, "SystemClock", lambda: ManualClock(10**9 + 3_600_000))
    status, printed = ask(
        "accept dc1.logs 1970-01-01T00:01:30Z --reason known --set silence.ms=60000"
        " --set lateness.ms=0"
    )
    assert status == 2
    assert "By this host's clock nobody was heard for 3,600 s." in printed


def test_a_range_takes_what_is_there(ask: Ask) -> None:
    """If `accept` is given a range of time, it accepts only the buckets of the range that are not
    complete or have a warning. If the range has no such bucket, `accept` says so and ends with
    status 2."""
    status, printed = ask("accept logs 1970-01-01T00:00:00Z 1970-01-01T00:02:00Z --reason x")
    assert (status, printed.count("(lost)")) == (0, 1)
    for line, words in (
        ("accept logs 1970-01-01T00:02:00Z --reason x", "complete: there is nothing to accept"),
        ("accept other 1970-01-01T00:01:00Z --reason x", "No bucket of this topic"),
        ("accept logs 1970-01-01T00:01:00Z --reason ' '", "--reason must say something"),
        ("accept logs yesterday --reason x", "BUCKET 'yesterday' is neither a time"),
        ("accept logs 1970-01-01T00:01:00Z 1970-01-01T00:00:00Z --reason x", "LAST must not be"),
    ):
        status, printed = ask(line)
        assert (status, words in printed) == (2, True), printed


def test_without_a_name_it_is_the_login_name(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --name, an acceptance contains the person's login name, even if `accept` runs under
    sudo, where every person's user is root."""
    monkeypatch.setenv("SUDO_USER", "grace")
    assert ask("accept logs 1970-01-01T00:01:00Z --reason x")[0] == 0
    assert "accepted by grace (x)" in ask("report")[1]


def test_what_was_decided_is_listed_with_who_and_why(ask: Ask) -> None:
    """The list of decisions (acceptances and retirements) says who decided what, and why. Decisions
    that were taken back are not in the list."""
    assert "Nobody has accepted, retired or disowned anything." in ask("report --decisions")[1]
    ask("accept logs 1970-01-01T00:01:00Z --reason 'the disk died' --name ada")
    ask("retire hdfs --reason 'no loads here' --name bob")
    status, printed = ask("report --decisions")
    assert status == 0
    rows = printed.splitlines()[1:]
    assert len(rows) == 2, printed
    first, second = sorted(rows, key=lambda row: "retired" in row)
    assert all(word in first for word in ("ada", "accepted dc1.logs 1970-01-01 00:01:00Z", "died"))
    assert all(word in second for word in ("bob", "retired hdfs", "no loads here"))
    ask("retire hdfs --revoke --reason 'loads again'")
    [found] = json.loads(ask("report --decisions --json")[1])["decisions"]
    assert (found["kind"], found["topic"], found["person"]) == ("acceptance", "dc1.logs", "ada")
    assert not found["signed"]
    status, printed = ask("report --decisions --topic logs")
    assert (status, "--decisions takes no" in printed) == (2, True)


@promise("6 signed")
def test_who_decided_is_proven_if_the_decision_is_signed(
    ask: Ask, store: Ledger, tmp_path: Path, ids_of_senders: None
) -> None:
    """A decision that the person's key has signed is marked as signed wherever it is shown, even if
    somebody repeats it without the signature; any other decision is not."""
    policy = Policy(tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS), lateness_ms=0)
    judged = verdicts(store.evidence(), policy, 10**9)
    [said] = acceptances(judged[1:2], Signature(5, "ada", "the disk died"))
    checking = verifying(Mode.WARN, tmp_path / "store" / DATABASE)
    take_signed(checking, [said], 10**9, master=None, offset=1)
    assert "ada     no      accepted" in ask("report --decisions")[1]
    take_signed(checking, [said], 10**9, identity="person/ada", offset=2)
    take_signed(checking, [said], 10**9, identity="person/eve", offset=3)
    assert "ada     yes     accepted" in ask("report --decisions")[1]
    assert "accepted by ada, signed (the disk died)" in ask("report")[1]
    [found] = [x for x in json.loads(ask("report --json")[1])["buckets"] if x["accepted"]]
    assert found["acceptances"][0]["signed"]


@promise("6 newer version")
def test_messages_of_a_schema_that_nobody_knows_are_disowned(ask: Ask, store: Ledger) -> None:
    """A message with an unknown schema makes every verdict unknown, and nothing can be accepted. A
    person who knows that no newer version exists disowns the schema: the verdicts are as before,
    the report and --decisions name who did that, and why. It does not cover other schemas, and can
    be taken back."""
    take(store, [JUNK], now_ms=10**9)
    assert ask("report")[0] == 1
    assert "upgrade the audit first" in ask("accept logs 1970-01-01T00:01:00Z --reason x")[1]
    name = JUNK[2:10].hex()
    status, printed = ask(f"disown {name} --reason 'a bad script' --name ada")
    words = f"1 message with the schema {name} is disowned by ada: a bad script."
    assert (status, words in printed) == (0, True)
    assert store.unread() == {}
    printed = ask("report")[1]
    assert (words in printed, "unknown" in printed) == (True, False)
    [found] = json.loads(ask("report --json")[1])["disowned"]
    assert (found["fingerprint"], found["messages"], found["person"]) == (name, 1, "ada")
    assert f"disowned messages with the schema {name}" in ask("report --decisions")[1]
    assert ask("accept logs 1970-01-01T00:01:00Z --reason x --name ada")[0] == 0
    take(store, [b"\xc3\x01" + b"8" * 10], now_ms=10**9)
    assert ask("report")[0] == 1, "another schema"
    status, printed = ask(f"disown {name} 3838383838383838 --revoke --reason y --name bob")
    assert (status, "Nobody has disowned messages with the schema 3838" in printed) == (2, True)
    assert ask(f"disown {name} --revoke --reason 'it was ours' --name bob")[0] == 0
    assert len(store.unread()) == 2


def test_only_what_holds_verdicts_up_is_disowned(ask: Ask, store: Ledger) -> None:
    """A fingerprint of which there is no unread message is refused, with those that there are, so
    that no decision is made for the future. Messages beyond the schemas that the store tells apart
    are disowned together."""
    status, printed = ask("disown abcd --reason x")
    said = "No message with the schema abcd holds verdicts up (none)."
    assert (status, said in printed) == (2, True)
    take(store, (b"\xc3\x01" + n.to_bytes(8, "big") + b"x" for n in range(1, 71)), now_ms=10**9)
    unread = store.unread()
    assert unread["others"] == 6
    status, printed = ask(f"disown {' '.join(unread)} --reason x --name ada")
    assert (status, "and 45 more" in printed) == (0, True)
    assert store.unread() == {}


def test_too_many_rejects_are_accepted_until_it_is_taken_back(ask: Ask, store: Ledger) -> None:
    """If a person accepts a bucket with too many rejects, the bucket stays complete, the warning
    names this person, and `report` ends with status 0. If more lines are rejected later, the report
    warns again."""
    assert ask("accept logs 1970-01-01T00:01:00Z --reason x --name ada")[0] == 0
    reject(store, 1, 2)
    status, printed = ask("report --topic logs")
    assert (status, "1 bucket with more rejects than allowed." in printed) == (1, True)
    status, printed = ask("accept logs 1970-01-01T00:00:00Z --reason 'a bad deploy' --name ada")
    words = "2 of 7 records were rejected by the agents (1% is allowed)"
    assert (status, f"logs.rejected 1970-01-01T00:00:00Z (complete): {words}" in printed) == (
        0,
        True,
    )
    status, printed = ask("report --topic logs")
    assert (status, f"{words}, accepted by ada (a bad deploy)" in printed) == (0, True)
    assert "1 bucket with more rejects than allowed, and accepted." in printed
    found = json.loads(ask("report --json")[1])
    assert (found["buckets_warned"], found["buckets_warned_accepted"]) == (0, 1)
    status, printed = ask("accept logs 1970-01-01T00:00:00Z --reason again")
    assert (status, "was accepted already" in printed) == (2, True)
    assert ask("accept logs 1970-01-01T00:00:00Z --revoke --reason 'not so' --name bob")[0] == 0
    assert ask("report")[0] == 1
    assert ask("accept logs 1970-01-01T00:00:00Z --reason once --name ada")[0] == 0
    reject(store, 2, 3)
    assert ask("report")[0] == 1


def test_who_counts_again_makes_no_share_of_rejects_smaller(ask: Ask, store: Ledger) -> None:
    """A counter may count all records again in a new epoch, and a second output may have the same
    rows. Neither adds a line, so the share of rejects stays the same."""
    reject(store, 1, 2)
    counts = tuple(Count(LOGS, 7, n * 60_000, 60_000, 5, 50, 9) for n in range(3))
    others = [
        replace(BROKER, epoch=2),
        replace(HDFS, epoch=2),
        replace(HDFS, producer="/b/dc1.logs"),
    ]
    said = [Delta(x, 1, 5, ranges=(Range(LOGS, 0, 0, 15),), counts=counts) for x in others]
    take(store, map(messages.encode, said), now_ms=10**9)
    assert "2 of 7 records were rejected by the agents" in ask("report --topic logs")[1]


def reject(store: Ledger, number: int, count: int) -> None:
    """Adds messages to the store: an agent has rejected `count` more lines of the first bucket, and
    every tier has counted them in the topic of rejects."""
    counts = (Count(REJECTED, 7, 0, 60_000, count, 10 * count, number),)
    said = [
        Delta(AGENT, 2 * number + 3, 10**9, counts=counts),
        Delta(BROKER, number + 1, 10**9, ranges=(Range(REJECTED, 0, 0, 9),), counts=counts),
        Delta(HDFS, number + 1, 10**9, ranges=(Range(REJECTED, 0, 0, 9),), counts=counts),
        Seal(AGENT, 2 * number + 4, 10**9, (SealedTopic(REJECTED, 10**9, 2 * number + 3),)),
    ]
    take(store, map(messages.encode, said), now_ms=10**9)


def test_a_bucket_before_1970_is_accepted(ask: Ask, store: Ledger) -> None:
    """A person can accept a bucket before 1970 by its time, because event times may be that old."""
    said = [
        Delta(AGENT, 5, 10**9, counts=(Count(LOGS, 7, -60_000, 60_000, 5, 50, 9),)),
        Seal(AGENT, 6, 10**9, (SealedTopic(LOGS, 10**9, 5),)),
    ]
    take(store, map(messages.encode, said), now_ms=10**9)
    status, printed = ask("accept logs 1969-12-31T23:59:30Z --reason 'a broken clock'")
    assert (status, "dc1.logs 1969-12-31T23:59:00Z (incomplete)" in printed) == (0, True), printed
    assert ask("accept logs 1970-01-01T00:01:00Z --reason x")[0] == 0
    assert ask("report --since 1969-12-31T23:59:00Z")[0] == 0


def test_a_bucket_of_a_far_future_is_accepted(ask: Ask, store: Ledger) -> None:
    """A record of another producer may have a time of the year 9999. A person can accept that its
    bucket is too young, so that `report --all` is good again. A bucket that is not due yet, but may
    have lines of agents, is not accepted."""
    far, near = 253_402_300_740_000, 10**9 - 10**9 % 60_000 + 60_000

    def count(number: int, start: int) -> None:
        counts = (Count(LOGS, NO_AGENT, start, 60_000, 5, 0, 9),)
        ranges = (Range(LOGS, 0, 5 + 5 * number, 10 + 5 * number),)
        said = [Delta(x, number, 10**9, ranges=ranges, counts=counts) for x in (BROKER, HDFS)]
        take(store, map(messages.encode, said), now_ms=10**9)

    assert ask("accept logs 1970-01-01T00:01:00Z --reason x")[0] == 0
    count(2, far)
    assert ask("report --all")[0] == 1
    status, printed = ask("accept logs 9999-12-31T23:59:59Z --reason 'a sensor' --name ada")
    assert (status, "dc1.logs 9999-12-31T23:59:00Z (open): " in printed) == (0, True), printed
    [found] = [x for x in json.loads(ask("report --json")[1])["buckets"] if x["bucket"] == far]
    assert (found["verdict"], found["accepted"]) == ("open", True)
    assert ask("report --all")[0] == 0
    count(3, near)
    status, printed = ask("accept logs 1970-01-12T13:47:00Z 1970-01-12T14:00:00Z --reason x")
    assert (status, "Accept it once it is due" in printed) == (2, True), printed


def test_of_a_topic_that_was_made_again_one_can_be_accepted(ask: Ask, store: Ledger) -> None:
    """If two topics have the same name, a person can accept a bucket of one of them: the argument
    is the topic's name with the first digits of the topic's id, which reports print. Without an id,
    `accept` accepts the buckets of both topics."""
    again = replace(LOGS, topic_id="0123456789abcdef")
    loss = replace(LOSS, source=again, file=4)
    counts = (Count(again, 7, 60_000, 60_000, 5, 50, 9),)
    store.take([messages.encode(Delta(AGENT, 5, 60_001, counts=counts, losses=(loss,)))])
    new = "'dc1.logs (id 01234567)'"
    said = "1970-01-01T00:01:00Z --reason known --name ada"
    assert "of file 3" in ask("report --topic 'logs (id tid)'")[1]
    status, printed = ask(f"accept {new} {said}")
    assert (status, printed.count(" (lost): "), "of file 4" in printed) == (0, 1, True)
    assert "accepted by ada (known)" in ask(f"report --topic {new}")[1]
    status, printed = ask(f"accept logs {said}")
    assert (status, printed.count(" (lost): "), "of file 3" in printed) == (0, 1, True)
    assert printed.startswith("dc1.logs (id tid) 1970-01-01T00:01:00Z (lost): ")
    assert "of file 3 are lost: deleted, accepted by ada (known)" in ask("report")[1]


def test_what_agents_rejected_of_a_topic_is_in_its_report(ask: Ask, store: Ledger) -> None:
    """The report of one topic includes the lines that agents rejected for this topic. The topic may
    be given as TOPIC or as CLUSTER.TOPIC."""
    reject(store, 1, 2)
    for name in ("logs", "dc1.logs"):
        printed = ask(f"report --topic {name}")[1]
        assert "dc1.logs.rejected" in printed
        assert "agents rejected 2 lines" in printed


def test_an_output_is_retired_until_it_is_taken_back(ask: Ask) -> None:
    """`retire hdfs PATH` retires the output at this path, with all its topics, until a person takes
    the retirement back. If the audit knows no such output, `retire` refuses, and lists the known
    places (a place is a tier of one cluster, or an output)."""
    assert ask("retire hdfs /old --reason moved --name ada") == (
        0, "hdfs /old is retired by ada: nobody waits for its counts any more.\n"
    )  # fmt: skip
    assert ask("retire hdfs /old --revoke --reason back") == (0, "hdfs /old counts again.\n")
    status, printed = ask("retire hdfs /new --reason x")
    assert (status, "these places did: broker dc1, hdfs /old/dc1.logs" in printed) == (2, True)


def test_of_many_places_the_nearest_are_named_where_one_is_not_known() -> None:
    """If `retire` is given a place (a tier of one cluster, or an output) from which no message
    came, the command refuses, and lists the known places with the most similar names. The refusal
    is one line, however many places are known."""
    known = [Place(Tier.HDFS, f"/rows-{number}/dc1.logs") for number in range(99)]
    with pytest.raises(UsageError) as refused:
        retirement("hdfs /rows-777/dc1.logs", known, Signature(1, "ada", "x"))
    assert "hdfs /rows-77/dc1.logs" in str(refused.value)
    assert str(refused.value).endswith("and 94 others.")


def test_a_place_that_other_words_still_retire_is_named_with_them(ask: Ask) -> None:
    """If a person takes back the retirement of a place (a tier of one cluster, or an output),
    another retirement or a setting may still retire the place or a part of it. `retire` then names
    this other retirement or setting."""
    old = "hdfs /old --name ada --reason moved"
    one = "hdfs /old/dc1.logs --name bob --reason gone"
    assert ask(f"retire {old}")[0] == ask(f"retire {one}")[0] == 0
    assert ask("retire hdfs /old/dc1.logs --revoke --reason back") == (
        0, "hdfs /old/dc1.logs stays retired, by 'hdfs /old' of ada (moved).\n"
    )  # fmt: skip
    status, printed = ask("retire hdfs /old/dc1.logs --revoke --reason back")
    assert status == 2
    assert "was not retired by these words, but by 'hdfs /old' of ada (moved)." in printed
    closed, again = (
        "retire cluster dc1 --reason closed",
        "retire cluster dc1 --revoke --reason back",
    )
    assert ask(closed)[0] == 0
    words = "hdfs /old/dc1.logs: retired by 'hdfs /old' of ada (moved).\n"
    assert ask(again) == (0, f"cluster dc1 counts again, but for {words}")
    assert ask(closed)[0] == 0
    words = "by 'broker dc1' in retired.places and 'hdfs /old' of ada (moved).\n"
    by_settings = "--set 'retired.places=[broker dc1]'"
    assert ask(f"{again} {by_settings}") == (0, f"cluster dc1 stays retired, {words}")
    assert ask("retire hdfs /old --revoke --reason back") == (0, "hdfs /old counts again.\n")


def test_what_is_decided_is_published_in_order_to_the_audit_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Decisions are published on the audit topic, in their order and each once. If the audit topic
    is missing, it is created."""
    cluster, clock = MemoryCluster(), ManualClock()
    client = nullcontext(MemoryClient(cluster, clock))
    monkeypatch.setattr(options, "client_of", lambda *_: client)
    monkeypatch.setattr(publication, "Producer", lambda _: MemoryProducer(cluster))
    said = [Retirement(1, 5, "ada", "x", "hdfs /old"), Retirement(2, 5, "ada", "x", "mirror")]
    accept.publish(Namespace(key=None), None, said, clock)
    raw = [bytes(batch) for log in cluster.topics[TOPIC].logs for batch in log.batches]
    found = records_of([TopicBatch(TopicPartition(TOPIC, 0), 0, batch) for batch in raw])
    assert [messages.decode(each.value) for each in found] == said
