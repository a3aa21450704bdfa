"""Tests the dashboard's pages. The tests call the dashboard directly, without a socket."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from typing import Any

import pytest

from skidway.audit.collector.editions import Edition
from skidway.audit.collector.pages.hosts import HOSTS_SHOWN
from skidway.audit.collector.web.rendering import SCRIPT
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger, ledger_of
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import acceptances
from skidway.audit.judgement.acceptances import Signature
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.roster import Roster, RosterEntry
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Heartbeat,
    Loss,
    Range,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.audit_senders import BROKER, LOGS, OTHER, REJECTED
from support.clock import ManualClock
from support.dashboard import ask
from support.ledgers import take
from support.one_bucket import good

HOSTILE = "<script>alert(1)</script>"
NASTY = Source("dc1", "cid", HOSTILE, "tid")
AGENT = Sender(Tier.AGENT, "dc1", "7", HOSTILE, 1)
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)


def _ledger(records: int = 5, buckets: int = 1, source: Source = LOGS) -> Ledger:
    def counts(count: int) -> tuple[Count, ...]:
        return tuple(
            Count(source, 7, index * 60_000, 60_000, count, 50, 9) for index in range(buckets)
        )

    said = [
        Delta(AGENT, 1, 5, counts=counts(5)),
        Delta(BROKER, 1, 5, ranges=(Range(source, 0, 0, 5),), counts=counts(records)),
        Seal(AGENT, 2, 10**9, (SealedTopic(source, 10**9, 1),)),
    ]
    return ledger_of(messages.encode(message) for message in said)


def _get(
    ledger: Ledger, path: str, method: str = "GET", policy: Policy = POLICY
) -> tuple[int, dict[str, str], str]:
    """Requests a page. Returns the status, headers and body of the dashboard's answer."""
    return ask(ledger, path, policy, method)


def _flat(body: str) -> str:
    """The text of a page, without the symbols that are hidden from screen readers."""
    return re.sub(r'<span aria-hidden="true">[^<]*</span> ?', "", body)


PAGES = [
    "/", "/?by=hour", "/?by=day", "/buckets", "/buckets?topic=logs", "/buckets?bucket=0", "/topics",
    "/hosts", "/loads", "/mirrors", "/rejects", "/search?q=lo",
]  # fmt: skip


@pytest.mark.parametrize("path", PAGES)
def test_pages_load_nothing_from_elsewhere(path: str) -> None:
    """A page of the dashboard has a strict content security policy and only one script, which the
    dashboard itself serves. It contains no address of another server."""
    status, headers, body = _get(_ledger(), path)
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert re.findall(r"<script[^>]*>", body) == [
        f'<script src="/live.js?{zlib.crc32(SCRIPT.encode()):08x}" defer>'
    ]
    assert not re.findall(r"(?:src|href)=\"(?![/#?])", body)
    assert " style=" not in body
    assert " on" not in " ".join(re.findall(r"<\w+ [^>]*>", body)).replace(" only", "")


@pytest.mark.parametrize("path", PAGES)
def test_text_from_outside_is_escaped(path: str) -> None:
    """The pages escape host names and topics as HTML, because any program that can write to the
    audit topic can choose these names."""
    _, _, body = _get(_ledger(source=NASTY), path)
    assert HOSTILE not in body


def test_the_overview_says_the_verdict_first() -> None:
    """The overview begins with a sentence that says the verdict on all buckets. The topics are
    named only below this sentence."""
    _, _, body = _get(_ledger(buckets=3), "/")
    first = re.search(r"<main[^>]*>\s*<h1[^>]*>(.*?)</h1>", body)
    assert first
    assert "<span>All 3 buckets of 1 topic are complete.</span>" in first[1]
    assert "dc1.logs" not in body[: first.end()]
    assert "dc1.logs" in body[first.end() :]


def test_verdicts_are_told_in_words_and_not_by_colour_alone() -> None:
    """The verdict is written in words in each cell of the overview's grid, and in each topic's row
    on the page of topics. A legend explains each word."""
    _, _, body = _get(_ledger(records=3, buckets=3), "/")
    assert "3 incomplete" in body
    said = re.findall(r'aria-label="(dc1.logs [^"]+)"', body)
    assert len(said) == 3
    assert all("incomplete, 5 records: " in x for x in said)
    assert all("broker dc1 is short by 2 of 5" in x for x in said)
    assert "a tier is short, or has other records" in body, "the key"
    assert ">3 incomplete</span>" in _flat(_get(_ledger(records=3, buckets=3), "/topics")[2])
    assert "</span> 1970-01-01 00:03</span>" in _get(_ledger(buckets=3), "/")[2]


def test_a_warning_colours_the_page_until_it_is_accepted() -> None:
    """If a complete bucket has a warning (for example about too many rejected lines), the overview
    has the colour of a warning until somebody accepts the bucket. After that, the overview names
    the person."""
    sent = (Count(LOGS, 7, 0, 60_000, 5, 50, 9, 5),)
    said = [
        Delta(AGENT, 1, 5, counts=sent),
        Delta(BROKER, 1, 5, ranges=(Range(LOGS, 0, 0, 5),), counts=sent),
        Seal(AGENT, 2, 10**9, (SealedTopic(LOGS, 10**9, 1),)),
    ]
    ledger = ledger_of(messages.encode(message) for message in said)
    headline = '<h1 class="verdict {}">'
    sentence = "The bucket of 1 topic is complete; the loader rejected 5 records"
    words = "5 of 5 records were rejected by broker dc1 (1% is allowed)"
    body = _get(ledger, "/")[2]
    assert headline.format("warned") in body
    assert sentence in body
    assert words in body
    signed = Signature(5, "ada", "a bad deploy")
    found = verdicts(ledger.evidence(), POLICY, 10**12)
    ledger.take(map(messages.encode, acceptances.acceptances(found, signed)))
    body = _get(ledger, "/")[2]
    assert headline.format("complete") in body
    assert f"{words}, accepted by ada (a bad deploy)" in body
    assert "warned, accepted" in body


def test_a_short_tier_is_shown_with_its_reason() -> None:
    """If a tier has counted too few records of a bucket, the list of buckets names this tier, and
    says how many records the tier lacks."""
    _, _, body = _get(_ledger(records=3), "/buckets")
    assert "broker dc1 is short by 2 of 5" in body
    assert "incomplete" in body


def test_a_bucket_is_shown_agent_by_agent() -> None:
    """The page of a bucket shows each agent's part of the bucket, with the counts of the tiers.
    The page's JSON document also has the checksums."""
    _, _, body = _get(_ledger(), "/buckets?topic=logs&bucket=0")
    assert ">By host</h2>" in body
    assert _flat(body).count('<td class="number r1">5</td>') == 2, "agent and broker"
    found = json.loads(_get(_ledger(), "/buckets.json?topic=logs&bucket=0")[2])
    assert {x["checksum"] for x in found["buckets"][0]["agents"][0]["places"]} == {9}


@pytest.mark.parametrize(("second", "buckets"), [(2, 2), (1, 1)])
def test_a_bucket_is_shown_with_the_rejects_that_its_acceptance_covers(
    second: int, buckets: int
) -> None:
    """The page of a bucket shows an `audit accept` command. If this command would also accept the
    bucket of the topic's rejects, the page shows that bucket, too. The command also accepts the
    topic's next bucket, but only if everything that the command would accept in the next bucket has
    the same causes. The JSON document of the page has the same explanations as the page."""
    lines, fewer = (
        [Count(LOGS, 7, at * 60_000, 60_000, n, 50, 9) for at in (0, 1)] for n in (5, 3)
    )
    rejects = [Count(REJECTED, 7, at * 60_000, 60_000, 4, 50, 9) for at in (0, 1)]
    came = [replace(x, count=n) for x, n in zip(rejects, (2, second), strict=True)]
    sealed = SealedTopic(LOGS, 10**9, 1), SealedTopic(REJECTED, 10**9, 1)
    ranges = Range(LOGS, 0, 0, 6), Range(REJECTED, 0, 0, 3)
    said: tuple[messages.Message, ...] = (
        Delta(AGENT, 1, 5, counts=(*lines, *rejects)),
        Delta(BROKER, 1, 5, ranges=ranges, counts=(*fewer, *came)),
        Seal(AGENT, 2, 10**9, sealed),
    )
    ledger = ledger_of(map(messages.encode, said))
    _, _, body = _get(ledger, "/buckets?topic=dc1.logs&bucket=0")
    assert body.count("<h1") == 2
    assert "broker dc1 is short by 2 of 4" in body
    assert ("after this one" in body) == (buckets == 2)
    document = json.loads(_get(ledger, "/buckets.json?topic=dc1.logs&bucket=0")[2])
    assert {x["topic"] for x in document["buckets"]} == {"logs", "logs.rejected"}
    [line] = [
        x["accept"]["line"] for x in document["explanations"] if "of 5" in x["accept"]["line"]
    ]
    assert line.count("1970-01-01T00:0") == buckets
    _, _, body = _get(ledger, "/buckets?topic=dc1.logs.rejected&bucket=0")
    assert body.count("<h1") == 1, "this command covers only the rejects"


@pytest.mark.parametrize("topic", ["&topic=logs", ""])
def test_a_bucket_is_shown_with_the_longer_bucket_that_its_acceptance_covers(topic: str) -> None:
    """In this test, `audit.bucket.ms` was changed, so a bucket overlaps a longer bucket that began
    earlier. The `audit accept` command for the bucket also accepts the longer bucket. The command
    for the longer bucket also accepts the short bucket that begins at the same time as the longer
    one. So the bucket's page shows all three buckets, and no bucket that none of these commands
    accepts."""
    minutes, ten = [(at * 60_000, 60_000) for at in (0, 1, 4, 5, 6)], (0, 600_000)
    lines = [Count(LOGS, 7, *bucket, 5, 50, 9) for bucket in (*minutes, ten)]
    fewer = tuple(replace(x, count=3) for x in lines)
    said: tuple[messages.Message, ...] = (
        Delta(AGENT, 1, 5, counts=tuple(lines)),
        Delta(BROKER, 1, 5, ranges=(Range(LOGS, 0, 0, 6),), counts=fewer),
        Seal(AGENT, 2, 10**9, (SealedTopic(LOGS, 10**9, 1),)),
    )
    ledger = ledger_of(map(messages.encode, said))
    path = f"/buckets?bucket=300000{topic}"
    body = _get(ledger, path)[2]
    titles = re.findall(r"<h1[^>]*>.*?</h1>", body)
    spans = [re.findall(r"00:0(\d):00 for (\d+) min", x) for x in titles]
    assert spans == [[("5", "1")], [("0", "10")], [("0", "1")]]
    assert body.count("4 buckets after this one have the same causes") == 2, "each counts once"
    found = json.loads(_get(ledger, path.replace("buckets", "buckets.json"))[2])
    commands = {x["accept"]["line"] for x in found["explanations"]}
    assert len(commands) == 2, "both buckets that begin at 00:00 have the same command"
    asked = "1970-01-01T00:05:00Z 1970-01-01T00:06:00Z"
    assert sum(asked in x for x in commands) == 1, "the next bucket has the same cause"


@pytest.mark.parametrize(
    ("longer", "judged"),
    [((), [(300_000, 60_000)]), ((0,), [(0, 600_000), (300_000, 60_000)])],
)
def test_the_page_of_a_bucket_judges_no_other_buckets(
    monkeypatch: pytest.MonkeyPatch, longer: tuple[int, ...], judged: list[BucketId]
) -> None:
    """For the page of a complete bucket, the dashboard judges this bucket and longer buckets around
    it, and no other bucket, because a verdict takes time in a large fleet."""
    spans = [(at * 60_000, 60_000) for at in range(1, 9)] + [(x, 600_000) for x in longer]
    counts = tuple(Count(LOGS, 7, *bucket, 5, 50, 9) for bucket in spans)
    said: tuple[messages.Message, ...] = (
        Delta(AGENT, 1, 5, counts=counts),
        Delta(BROKER, 1, 5, ranges=(Range(LOGS, 0, 0, 6),), counts=counts),
        Seal(AGENT, 2, 10**9, (SealedTopic(LOGS, 10**9, 1),)),
    )
    ledger, found = ledger_of(map(messages.encode, said)), list[BucketId]()
    verdicts_in = Edition.verdicts_in

    def noted(edition: Edition, *given: Any) -> list[BucketVerdict]:
        verdicts = verdicts_in(edition, *given)
        found.extend((x.bucket, x.bucket_ms) for x in verdicts)
        return verdicts

    monkeypatch.setattr(Edition, "verdicts_in", noted)
    assert _get(ledger, "/buckets?topic=logs&bucket=300000")[2].count("<h1") == 1
    assert found == judged


def test_before_the_first_message_the_pages_say_so() -> None:
    """Before the first message, every page can be loaded. In place of each table, the page says
    that there is nothing to show yet."""
    said = {
        "/": ("Nothing was counted yet.", "When the first counts arrive on the audit topic, they"),
        "/buckets": ("No bucket with records here.",),
        "/topics": ("Nothing was counted yet.",),
        "/hosts": ("No host is named by a roster", "Nobody has sent counts yet."),
        "/loads": ("No loader has sent counts yet.", "No loader has told of a load yet.",
                   "Nobody has counted the files again"),
        "/mirrors": ("No counter of a mirror has sent counts yet.", "None."),
        "/rejects": ("No line was rejected.",),
        "/search": ("No topic, host, sender or reason of the last day contains it.",),
    }  # fmt: skip
    for path in PAGES:
        status, _, body = _get(Ledger(), path)
        page = path.partition("?")[0]
        assert status == 200
        assert "Nothing was read yet" in body, path
        assert ("Nothing was counted of what was asked for" in body) == (page != "/hosts"), path
        assert [words for words in said[page] if words not in body] == [], path


def test_every_view_is_there_as_json() -> None:
    """The overview and all other pages also exist as JSON documents, which have the rows of the
    pages' tables."""
    ledger = _ledger(records=3)
    overview = json.loads(_get(ledger, "/index.json")[2])
    assert overview["by_verdict"]["incomplete"] == 1
    buckets = json.loads(_get(ledger, "/buckets.json?topic=logs")[2])
    assert buckets["buckets"][0]["reasons"]
    hosts = json.loads(_get(ledger, "/hosts.json")[2])
    assert {sender["tier"] for sender in hosts["senders"]} == {"agent", "broker"}
    assert [x["topic"] for x in json.loads(_get(ledger, "/topics.json")[2])["topics"]] == [
        "dc1.logs"
    ]
    ledger = ledger_of(map(messages.encode, good()))
    for path, table, key, values in (
        ("/loads.json", "loads", "output", ["/logs"]),
        ("/mirrors.json", "mirrors", "mirror", ["offline"]),
        ("/rejects.json", "rejects", "topic", ["dc1.logs"]),
        ("/search.json?q=/logs", "results", "what", ["/logs/dc1.logs"]),
    ):
        found = json.loads(_get(ledger, path)[2])
        assert [x[key] for x in found[table]] == values, path
        assert found["rows"][table] == 1, path


ROSTER = Roster(
    [
        RosterEntry(HOSTILE, "dc1"),
        RosterEntry("web9", "dc1", frozenset({"logs"})),
        RosterEntry("web7", "dc1", retired=True),
    ]
)
WATCHED = replace(POLICY, roster=ROSTER, silence_ms=600_000)


def test_the_overview_names_hosts_that_are_missed() -> None:
    """The overview lists the hosts that are silent or from which no message ever came, each with
    the command to run on it. A host that reports is not counted among them."""
    _, _, body = _get(_ledger(), "/", policy=WATCHED)
    assert "2 of 2 expected hosts do not report" in body
    assert "silent since 1970-01-12 13:46:40" in body
    assert "never heard" in body
    assert "on web9: systemctl start skidway-agent" in body
    assert HOSTILE not in body
    patient = replace(WATCHED, silence_ms=10**15)
    assert "1 of 2 expected hosts does not report" in _get(_ledger(), "/", policy=patient)[2]
    hosts = json.loads(_get(_ledger(), "/index.json", policy=WATCHED)[2])["hosts"]
    assert (hosts["expected"], hosts["missed"]) == (2, 2)


def test_the_roster_is_shown_with_every_hosts_state() -> None:
    """The page of hosts shows each host's state, for example "never heard", "retired", or since
    when the host is silent."""
    _, _, body = _get(_ledger(), "/hosts", policy=WATCHED)
    assert "✗</span> silent since 1970-01-12 13:46:40" in body
    assert "?</span> never heard" in body
    assert ">retired</td>" in body
    assert HOSTILE not in body
    found = json.loads(_get(_ledger(), "/hosts.json", policy=WATCHED)[2])
    states = {x["host"]: x["state"] for x in found["hosts"]}
    assert states == {HOSTILE: "silent", "web9": "never heard", "web7": "retired"}


def test_a_fleet_has_a_page_that_is_bounded() -> None:
    """The page of a large fleet shows a limited number of hosts. Its list begins with the expected
    hosts that do not report. The page says how many hosts it does not show."""
    fleet = [RosterEntry(f"web{index}", "dc1", retired=True) for index in range(HOSTS_SHOWN + 10)]
    many = replace(POLICY, roster=Roster([*fleet, RosterEntry("zz", "dc9")]))
    _, _, body = _get(_ledger(), "/hosts", policy=many)
    assert '<td class=" r1">zz</td>' in body
    assert ">And 12 more</a>" in body
    assert len(json.loads(_get(_ledger(), "/hosts.json", policy=many)[2])["hosts"]) == (
        HOSTS_SHOWN + 12
    )


def test_a_retired_host_with_data_is_named_as_retired() -> None:
    """If a retired host has records in a bucket, the pages call it retired, both in the reasons of
    the bucket's verdict and in the list of the bucket's agents."""
    gone = replace(POLICY, roster=Roster(retired=["7"]))
    _, _, body = _get(_ledger(records=3), "/buckets?topic=logs&bucket=0", policy=gone)
    assert "(retired): broker dc1 is short by 2 of 5" in body
    assert "(retired)</td>" in body


def test_an_old_fault_stays_in_the_sentence_and_in_its_row() -> None:
    """The sentence at the top of the overview mentions an old incomplete bucket, however many newer
    buckets are complete. The row of the bucket's topic has a link to the bucket."""
    ledger = _ledger(buckets=70)
    short = Count(OTHER, 7, 0, 60_000, 5, 50, 9)
    said = [Delta(AGENT, 3, 6, counts=(short,)), Seal(AGENT, 4, 10**9, _sealed(3))]
    ledger.take(messages.encode(message) for message in said)
    _, _, body = _get(ledger, "/")
    assert "70 of 71 buckets of 2 topics are complete; 1 should be and is not" in body
    assert "dc1.other" in body
    assert "/buckets?topic=dc1.other&amp;bucket=0" in body
    _, _, body = _get(ledger, "/buckets?topic=other")
    assert "0 of 1 buckets of 1 topic are complete" in body
    assert "tier broker never reported this topic" in body
    document = json.loads(_get(ledger, "/index.json")[2])
    assert document["buckets_overdue"] == 1
    assert {topic["topic"]: topic["buckets_judged"] for topic in document["topics"]} == {
        "logs": 70, "other": 1,
    }  # fmt: skip


def _sealed(at: int) -> tuple[SealedTopic, ...]:
    return tuple(SealedTopic(source, 10**9, at) for source in (LOGS, OTHER))


def test_what_a_recount_found_stands_in_the_topics_row() -> None:
    """On the page of topics, the row of a topic says when a recount of its output was made, and
    whether the output's rows agreed with the counts. If they did not agree, the page of loads gives
    the reason."""
    ledger = _ledger()
    good = RecountResult(60_000, "l1", "/out", LOGS, None, 1, 2, 5, 0, 0, ())
    ledger.take([messages.encode(good)])
    assert '✓</span> <a href="/loads">agrees at 1970-01-01 00:01</a>' in _get(ledger, "/topics")[2]
    bad = replace(good, faults=1, reasons=(f"{HOSTILE} is gone",))
    ledger.take([messages.encode(bad)])
    assert '✗</span> <a href="/loads">differs at 1970-01-01 00:01</a>' in _get(ledger, "/topics")[2]
    assert "is gone" in _get(ledger, "/loads")[2]
    body = _get(ledger, "/")[2]
    assert "by the newest recount the rows of dc1.logs are not what was counted" in body
    assert (
        '<h1 class="verdict incomplete">' in body
    )  # the overview is not green while somebody has to act
    assert HOSTILE not in body


def test_older_buckets_are_on_the_next_page() -> None:
    """A page of buckets shows a limited number of them, and a link at its end leads to the next
    page."""
    ledger = _ledger(buckets=70)
    first = json.loads(_get(ledger, "/buckets.json")[2])
    assert (len(first["buckets"]), first["older_until"]) == (60, 600_000)
    second = json.loads(_get(ledger, "/buckets.json?until=600000")[2])
    assert (len(second["buckets"]), second["older_until"]) == (10, None)
    assert "until=600000" in _get(ledger, "/buckets")[2]


def _fleet(agents: int) -> Ledger:
    """Returns a ledger with a bucket that all agents counted. For every third agent, the broker has
    counted one record less than the agent."""
    senders = [Sender(Tier.AGENT, "dc1", str(x), f"host-{x:04}", 1) for x in range(1, agents + 1)]
    counts = [Count(LOGS, int(x.producer), 0, 60_000, 5, 50, 7) for x in senders]
    said: list[messages.Message] = []
    for sender, each in zip(senders, counts, strict=True):
        said.append(Delta(sender, 1, 90_000, counts=(each,)))
        said.append(Seal(sender, 2, 900_000, (SealedTopic(LOGS, 900_000, 1),)))
    short = [replace(x, count=5 - (x.agent % 3 == 0)) for x in counts]
    said.append(Delta(BROKER, 1, 900_000, (Range(LOGS, 0, 0, 9),), tuple(short)))
    return ledger_of(map(messages.encode, said))


def test_a_large_bucket_is_told_in_parts_that_are_complete() -> None:
    """If a bucket has too many agents for one JSON document, the list of agents is divided into
    several documents. Each document gives the number of all agents and the URL of the next
    document. Together they contain each agent once. In a JSON list of buckets, such a bucket has
    only the agents with the gravest verdicts, and a URL that lists all agents."""
    ledger = _fleet(1_203)
    [listed] = json.loads(_get(ledger, "/buckets.json?topic=logs")[2])["buckets"]
    assert (listed["agents_count"], len(listed["agents"])) == (1_203, 3)
    assert {x["verdict"] for x in listed["agents"]} == {"incomplete"}
    address, found = listed["agents_at"], []
    while address:
        document = json.loads(_get(ledger, address)[2])
        [bucket] = document["buckets"]
        assert bucket["agents_count"] == 1_203
        assert len(bucket["agents"]) <= 500
        found += [x["agent"] for x in bucket["agents"]]
        address = document["next"]
    assert found == list(range(1, 1_204))


def test_many_hosts_are_told_in_parts_that_are_complete() -> None:
    """The JSON list of many hosts is divided into several documents. Each document gives the number
    of rows of each table and the URL of the next document. Together they contain each host and each
    sender once. The CSV contains all hosts in one document."""
    ledger, address = _fleet(1_203), "/hosts.json"
    hosts, senders = list[str](), list[str]()
    while address:
        document = json.loads(_get(ledger, address)[2])
        assert document["rows"] == {"hosts": 1_203, "senders": 1_204, "refused": 0}
        assert len(document["hosts"]) <= 500
        hosts += [x["host"] for x in document["hosts"]]
        senders += [x["name"] for x in document["senders"]]
        address = document["next"]
    assert sorted(hosts) == [f"host-{x:04}" for x in range(1, 1_204)]
    assert len(set(senders)) == len(senders) == 1_204
    assert _get(ledger, "/hosts.csv")[2].count("host-") == 1_203


def test_the_page_of_a_large_bucket_shows_the_gravest_hosts() -> None:
    """The page of a large bucket shows a limited number of hosts, first those that are not
    complete. It says how many hosts it does not show, and for how many hosts it explains the
    causes. It has a link to the list of all hosts."""
    ledger = _fleet(1_203)
    body = _get(ledger, "/buckets?topic=logs&bucket=0")[2]
    table = body.partition("By host")[2]
    assert [x for x in re.findall(r"host-(\d+)</td>", table) if int(x) % 3] == []
    assert "And 1,103 more" in body
    assert "The causes above are those of the 300 gravest of 1,203 hosts." in body
    csv = _get(ledger, "/buckets.csv?topic=logs&bucket=0&table=agents")[2]
    assert csv.count("host-") >= 1_203


@pytest.mark.parametrize(
    "path",
    [
        "/buckets?bucket=x",
        "/buckets?until=1e9",
        f"/buckets?bucket={10**30}",
        "/?by=year",
        f"/search?q={'x' * 201}",
        "/hosts.csv?table=x",
    ],
)
def test_parameters_that_cannot_be_read_are_refused(path: str) -> None:
    """If a query parameter is too long, or is not a valid number, unit or table, the dashboard
    refuses the request with status 400 and one sentence."""
    status, _, body = _get(_ledger(), path)
    assert status == 400
    assert body.strip()


def test_unknown_pages_and_methods_are_refused() -> None:
    """A request for an unknown page gets status 404, and a request with an unknown method gets
    status 405."""
    assert _get(_ledger(), "/nothing")[0] == 404
    assert _get(_ledger(), "/", method="POST")[0] == 405


def test_the_style_is_served() -> None:
    """The server delivers the style sheet and the script, the only files that the pages load."""
    status, headers, body = _get(_ledger(), "/style.css")
    assert (status, headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert ".incomplete" in body
    status, headers, body = _get(_ledger(), "/live.js")
    assert (status, headers["content-type"]) == (200, "text/javascript; charset=utf-8")


@pytest.mark.parametrize("path", ["/", "/hosts"])
def test_a_wrong_clock_is_named_on_the_page(path: str) -> None:
    """If the clock of a host is wrong, or the clock of the machine on which the collector runs, the
    pages and their JSON say so."""
    now_ms = ManualClock().time_ms()
    ledger = _ledger()
    for ahead_ms, who in ((3_600_000, "agent on web2"), (0, "agent on web3")):
        sender = replace(AGENT, producer=str(ahead_ms + 8), host=who.removeprefix("agent on "))
        where = Heard("t", "i", 0, 1, now_ms + ahead_ms, now_ms, is_live=True)
        ledger.take_records([(messages.encode(Heartbeat(sender, 0, now_ms)), where)], {}, now_ms)
    assert "The clock of the agent on web2 is 3600 s ahead" in _get(ledger, path)[2]
    take(ledger, [], {}, now_ms + 600_000)
    assert "The clock of this host is 600 s behind" in _get(ledger, path)[2]
    found = json.loads(_get(ledger, "/index.json")[2])["clocks"]
    assert (found["own_ahead_ms"], len(found["sentences"])) == (-600_000, 1)


def test_a_collector_that_read_nothing_yet_says_so() -> None:
    """Until the collector has read something, the overview says that nothing was read yet. It does
    not show a time in 1970 as the time of the last read."""
    assert "Nothing was read yet" in _get(_ledger(), "/")[2]


def test_what_was_accepted_is_passed_over_and_counted() -> None:
    """If a person has accepted a bucket, the time up to which the topic is "complete or accepted"
    on the overview lies after this bucket. The bucket's cell still shows its verdict and reason."""
    ledger = _ledger(buckets=3)
    loss = Loss(LOGS, 7, 3, 0, 9, Certainty.LOST, "gone", 60_000, 60_000)
    ledger.take([messages.encode(Delta(AGENT, 3, 5, losses=(loss,)))])
    assert ">!</span> 1970-01-01 00:01</span>" in _get(ledger, "/")[2]
    found = verdicts(ledger.evidence(), POLICY, ManualClock().time_ms())
    accepted = acceptances.acceptances(found, Signature(5, "ada", "<why>"))
    ledger.take(map(messages.encode, accepted))
    body = _get(ledger, "/")[2]
    assert "2 of 3 buckets of 1 topic are complete; 1 is not, and accepted (1 lost)." in body
    assert "1970-01-01 00:03 (or accepted)" in body
    assert "dc1.logs 1970-01-01 00:01:00: lost, accepted, 5 records" in body
    assert "accepted by ada (&lt;why&gt;)" in body
    assert json.loads(_get(ledger, "/index.json")[2])["buckets_accepted"] == 1


def test_a_loader_is_not_called_silent() -> None:
    """The dashboard never calls a loader silent. It says when the loader last loaded."""
    ledger = _ledger()
    loader = Sender(Tier.HDFS, "dc1", "/lake/dc1.logs", "l1", 1)
    ledger.take([messages.encode(Delta(loader, 1, 60_000, ranges=(Range(LOGS, 0, 0, 5),)))])
    senders = json.loads(_get(ledger, "/hosts.json")[2])["senders"]
    [found] = [x for x in senders if x["tier"] == "hdfs"]
    assert (found["state"], found["state_status"]) == (
        "loaded last at 1970-01-01 00:01:00Z",
        "complete",
    )
    assert "loaded last at 1970-01-01 00:01:00Z" in _get(ledger, "/hosts")[2]
    gone = replace(POLICY, retired_places=("hdfs /lake",))
    assert ">retired</td>" in _get(ledger, "/hosts", policy=gone)[2]


def test_topics_of_one_name_are_told_apart_on_the_pages() -> None:
    """A topic that was deleted and created again has separate rows for the old and the new topic,
    with the topic's id beside the name."""
    ledger = _ledger()
    again = replace(LOGS, topic_id="3f2a9c1d" * 4)
    ledger.take(
        [messages.encode(Delta(AGENT, 3, 5, counts=(Count(again, 7, 0, 60_000, 5, 5, 9),)))]
    )
    for path in ("/", "/buckets"):
        body = _get(ledger, path)[2]
        assert "dc1.logs (id 3f2a9c1d)" in body
        assert "dc1.logs (id tid)" in body


CONTROLS = "\x1b\x07\x7f\x9b\u202e\u2028\u200b"


@pytest.mark.parametrize(
    "path", ["/", "/topics", "/hosts", "/buckets", "/topics.csv", "/hosts.csv", "/index.json"]
)
def test_no_control_character_of_a_name_reaches_a_terminal(path: str) -> None:
    """Whoever reads a page, a CSV table or a JSON document with curl gets escapes in place of the
    control characters in names that others chose."""
    ledger = _ledger(source=replace(LOGS, topic=f"logs{CONTROLS}"))
    agent = replace(AGENT, producer="9", host=f"web{CONTROLS}")
    ledger.take([messages.encode(Delta(agent, 1, 5))])
    body = _get(ledger, path)[2]
    assert "\\u001b\\u0007" in body
    assert not set(CONTROLS) & set(body)
