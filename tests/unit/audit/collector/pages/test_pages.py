"""Tests what the dashboard's pages show of prepared messages and verdicts. The tests look at the
values of which the pages are made (view models), and at the pages as HTML and JSON."""

from __future__ import annotations

import csv
import html
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient

from skidway.audit.collector.pages import risk, words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.hosts import silent_table
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import WINDOW_MS, Reading
from skidway.audit.evidence.ledger import ledger_of
from skidway.audit.explanation.explanation import explain
from skidway.audit.explanation.next_command import SET_CLOCK
from skidway.audit.explanation.present_causes import COLLECTOR
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.standing import NOTHING_JUDGED
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.reports import report
from skidway.audit.topic.backlog import Backlog, TopicBacklog
from skidway.audit.topic.messages import encode
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import KIND as STATUS
from skidway.audit.topic.program_status import Kind, Obstacle, ProgramStatus, body_of
from skidway.invocation import installed
from skidway.kafka.types import TopicPartition
from support import one_bucket
from support.audit_senders import AGENT
from support.dashboard import ask
from support.dashboard_site import (
    AUTH,
    EXAMPLE,
    HOUR,
    LOST,
    MINUTE,
    NOW,
    POLICY,
    STATES,
    UNREAD,
    Site,
)
from support.fold import Fold
from support.one_bucket import COUNTERS, DUE, START, good, seal

Asked = dict[str, Any]


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> TestClient:
    made: Site = STATES[request.param]()
    return TestClient(made.dashboard().application())


def shown(site: Site) -> TestClient:
    """The pages of a site, without a history."""
    return TestClient(site.dashboard(has_history=False).application())


def _json(site: TestClient, path: str) -> Asked:
    answer = site.get(path)
    assert answer.status_code == 200, answer.text
    found: Asked = json.loads(answer.text)
    return found


def in_state(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("site", [name], indirect=True)


@in_state("complete")
def test_where_nothing_is_wrong_the_page_says_so(site: TestClient) -> None:
    """If a site has no problems, the first page's tables of silent hosts and of rejects are empty,
    and each of them says so. The table of risks has only records of the last three minutes, which
    the loader has not loaded yet. If all records are loaded, this table, too, says that it is
    empty."""
    found = _json(site, "/index.json")
    assert found["buckets_overdue"] == 0
    assert {(x["lacking"], x["left"]) for x in found["at_risk"]} == {("hdfs", "not known")}
    assert [x["what"] for x in found["at_risk"]] == ["dc1.auth", "dc1.nginx", "dc1.orders"]
    assert min(x["since"] for x in found["at_risk"]) >= NOW - 3 * MINUTE
    assert (found["silent_hosts"], found["rejects"]) == ([], [])
    body = site.get("/").text
    for said in ("None: 6 expected hosts reported within 3 min.", "No line was rejected."):
        assert said in body
    assert 'class="verdict complete"' in body
    _, _, loaded = ask(ledger_of(map(encode, good())), "/", one_bucket.POLICY, now_ms=DUE)
    assert "Nothing: every tier has what the newest minutes have, and every host has" in loaded


def test_what_was_known_before_the_brokers_stopped_has_a_time() -> None:
    """While the collector cannot read its topics, the first page says of which time its sentence
    about all buckets and its table of risks are: newer lines may wait. The note in which the
    collector says so does not count as something that it has read."""
    ledger = ledger_of(map(encode, good()))
    ledger.take_records([], {}, DUE)
    reason = Obstacle(Kind.CLUSTER, "b1:9092", "refused", DUE + 1)
    status = body_of(ProgramStatus(obstacles=(reason,)))
    ledger.take([encode(Note(STATUS, COLLECTOR, "au1", "", 0, 0, DUE + 1, status))])
    assert ledger.taken_ms == DUE
    _, _, body = ask(ledger, "/", one_bucket.POLICY, now_ms=DUE + 1)
    time = words.moment(DUE)
    assert f"As of {time}: Nothing: every tier has" in body
    headline = re.search(f"As of {time}: (.*complete.*)", body)
    assert headline is not None, body


@in_state("incomplete")
def test_what_the_mirror_lacks_is_at_risk(site: TestClient) -> None:
    """If a tier (here the mirror) lacks records that an earlier tier has, the table of risks on the
    first page has a row for these records. The row shows how many records are missing in later
    tiers, how many bytes they have, since when they are missing, and which place has them. The row
    also shows a command to run for the first tier that lacks them."""
    [row] = [x for x in _json(site, "/index.json")["at_risk"] if x["what"] == "dc1.orders"]
    assert row["since"] == NOW // MINUTE * MINUTE - 9 * MINUTE
    assert row["lacking"] == "mirror, hdfs"
    assert row["bytes"] == 180 * row["records"] > 0
    assert (row["where"], row["command"]) == (
        "broker dc1",
        f"{installed('broker').call} mirror status",
    )


@in_state("silent")
def test_a_silent_host_is_named_with_a_command(site: TestClient) -> None:
    """A host that has been silent for longer than `silence.ms` is in the first page's table of
    silent hosts. A seal says that all lines before a time are counted. The first page also says
    that all lines which the host has written since its last seal are at risk."""
    found = _json(site, "/index.json")
    [row] = found["silent_hosts"]
    assert (row["host"], row["state"]) == ("app3", NOW - 14 * MINUTE - 2_000)
    assert row["command"] == "on app3: systemctl start skidway-agent"
    assert found["at_risk"][0]["what"] == "host app3"
    assert found["at_risk"][0]["since"] == NOW - 14 * MINUTE - 4_000
    assert found["at_risk"][0]["bytes"] == "unknown"
    assert found["at_risk"][0]["command"] == row["command"]


START_AGENT = "systemctl start skidway-agent"


@pytest.mark.parametrize(("status", "line"), [("behind", SET_CLOCK), ("silent", START_AGENT)])
def test_a_host_has_one_next_command_on_all_pages(status: str, line: str) -> None:
    """For an expected host that does not report in time, the table of silent hosts and the table of
    risks name the same command. `skidway audit why` names the same command for this host when it
    explains a bucket."""
    policy = replace(one_bucket.POLICY, roster=one_bucket.roster("web1", "web9"))
    evidence = Fold([*good()[:4], seal(AGENT, 2, START, 1)]).evidence()
    now = evidence.taken_ms = DUE + 3 * policy.silence_ms
    if status == "behind":
        behind_ms = 2 * policy.silence_ms
        evidence.heard[AGENT.tier, AGENT.producer] = now - behind_ms
        for sender, ms in ((AGENT, behind_ms), *((x, 0) for x in COUNTERS)):
            read = Reading(now // WINDOW_MS, ms, ms, ms)
            evidence.readings[sender.tier, sender.producer] = read
    hosts = survey(evidence, policy, now)
    assert [x.status.value for x in hosts] == [status, "never heard"]
    facts = Facts(NOTHING_JUDGED, {}, evidence, policy, now, hosts=hosts)
    [verdict] = verdicts(evidence, policy, now)
    asked = {x.host: str(x.command) for x in explain(verdict, evidence, policy, now) if x.host}
    commands = {"web1": f"on web1: {line}", "web9": f"on web9: {START_AGENT}"}
    assert {host: asked[host] for host in commands} == commands
    for table, column in ((silent_table(facts, 9), "host"), (risk.table(facts), "what")):
        found = {x[column].removeprefix("host "): x["command"] for x in table.records()}
        assert found == commands


@pytest.mark.parametrize(("minutes", "silent"), [(2.9, []), (3.1, ["app3"])])
def test_a_killed_agent_is_silent_after_three_minutes(minutes: float, silent: list[str]) -> None:
    """By default, the first page names a host as silent three minutes after the last message of its
    agent."""
    made = Site(silent={"app3": minutes})
    site = shown(made)
    assert [x["host"] for x in _json(site, "/index.json")["silent_hosts"]] == silent


def test_a_host_that_does_not_vouch_is_at_risk() -> None:
    """An agent may still send messages although it cannot deliver its lines. A seal says that all
    lines before a time are counted. If the time of the agent's newest seal is too old, the first
    page shows the host's lines as at risk."""
    site = shown(Site(held_up={"app5": 9}))
    found = _json(site, "/index.json")
    assert found["silent_hosts"] == []
    assert (found["at_risk"][0]["what"], found["at_risk"][0]["records"]) == ("host app5", "unknown")


def at_risk(made: Site) -> list[Asked]:
    found = _json(shown(made), "/index.json")["at_risk"]
    assert isinstance(found, list)
    return found


def test_unsafe_bytes_of_a_host_are_at_risk_with_file_time_and_command() -> None:
    """If an agent has reported bytes that no broker has acknowledged yet, the first page shows
    their number, their host and file, the time until they will be lost, and a command to run. If
    the host has been silent since then, the page marks the number with "≥", because the host may
    have more such bytes."""
    [row] = [x for x in at_risk(Site(backlogs={"app5": UNREAD})) if "app5" in x["what"]]
    assert (row["what"], row["bytes"], row["left"]) == ("dc1.nginx on app5", 48_314_518, 92 * 60)
    assert (row["since"], row["lacking"]) == (NOW - 26 * MINUTE, "broker")
    assert row["where"] == "app5: /var/log/nginx/access.log.6"
    assert row["command"] == f"on app5: {installed('agent').call} agent state show"
    made = Site(silent={"app3": 14}, backlogs={"app3": UNREAD})
    [row] = [x for x in at_risk(made) if "app3" in x["what"]]
    assert (row["left"], row["command"]) == (92 * 60, "on app3: systemctl start skidway-agent")
    body = shown(made).get("/").text
    assert "≥ 48.3 MB" in body
    assert "1 h 32 min" in body


def test_members_without_a_field_are_on_the_page_of_topics() -> None:
    """The page of topics names the members of lines that agents left out, because the topic's
    schema has no field for them."""
    made = Site(fieldless={"nginx": {"a": 1, "session": 312}})
    site = shown(made)
    rows = {row["topic"]: row["fieldless"] for row in _json(site, "/topics.json")["topics"]}
    assert rows.pop("dc1.nginx") == {"session": 312, "a": 1}
    assert not any(rows.values())
    assert "no field for session (in 312 lines), a (in 1 line)" in site.get("/topics").text


def test_what_is_lost_first_comes_first() -> None:
    """In the table of risks, each row names records or bytes that may be lost. The rows are sorted
    by the time of this loss, the earliest time first. Rows without a known time come last."""
    soon = TopicBacklog("auth", 7, 0, NOW - 5 * MINUTE, NOW + MINUTE)
    gone = TopicBacklog("auth", 7, 0, NOW - 5 * MINUTE, NOW - MINUTE)
    never = TopicBacklog("auth", 7, 0, NOW - 50 * MINUTE)
    backlogs = {"app1": Backlog((never,)), "app2": Backlog((soon,)), "app4": Backlog((gone,))}
    found = at_risk(Site(mirror_late=9, kept_ms=6 * HOUR, backlogs=backlogs))
    lost = [(x["what"], x["left"]) for x in found]
    assert lost[:2] == [("dc1.auth on app4", 0), ("dc1.auth on app2", 60)]
    assert lost[2] == ("dc1.orders", 6 * 3_600 - 9 * 60 - 20)
    assert [x[0] for x in lost if x[1] == "not known"] == ["dc1.auth on app1"]
    assert lost[-1][0] == "dc1.auth on app1"


def test_bytes_on_their_way_are_not_at_risk() -> None:
    """At any time, a working agent has bytes that it has just read and that no broker has
    acknowledged yet. The first page gives the number of such bytes below the table of risks. These
    bytes get a row in the table only if they will be lost within ten minutes."""
    told = NOW - 20_000
    fresh = TopicBacklog("auth", 0, 900, told - 60_000)
    urgent = TopicBacklog("orders", 0, 900, told - 60_000, NOW + 9 * MINUTE)
    later = TopicBacklog("nginx", 0, 900, told - 60_000, NOW + 11 * MINUTE)
    made = Site(backlogs={"app1": Backlog((fresh, urgent, later), 1, 300)})
    assert [x["what"] for x in at_risk(made) if "app1" in x["what"]] == ["dc1.orders on app1"]
    body = shown(made).get("/").text
    assert "no broker has acknowledged yet: 3 kB on 1 host; 5 agents did not tell." in body


@pytest.mark.parametrize("kept_ms", [None, 6 * HOUR])
def test_what_is_not_loaded_yet_expires_with_its_cluster(kept_ms: int | None) -> None:
    """If some records are in one cluster only, the first page shows how much time is left until
    this cluster deletes them. The cluster's retention time counts from the start of the first
    bucket with such records."""
    [row] = [x for x in at_risk(Site(mirror_late=9, kept_ms=kept_ms)) if x["what"] == "dc1.orders"]
    left = "not known" if kept_ms is None else (kept_ms - 9 * MINUTE - 20_000) // 1_000
    assert (row["where"], row["left"]) == ("broker dc1", left)


def test_a_host_that_told_nothing_unsafe_has_no_bytes_at_risk() -> None:
    """A seal says that all lines before a time are counted. The time of a host's newest seal may be
    too old although its agent has reported that all bytes are acknowledged. Then the first page
    shows "none told" as the host's bytes at risk."""
    site = Site(held_up={"app5": 9, "app6": 9}, backlogs={"app5": Backlog()})
    found = {x["what"]: x["bytes"] for x in at_risk(site)}
    assert (found["host app5"], found["host app6"]) == ("none told", "unknown")


def test_the_newest_loads_say_rows_files_and_duration() -> None:
    """The page of loads lists the newest loads that loaders have reported, the newest load first. A
    value that a note about a load lacks is shown as `not told`."""
    site = shown(Site(has_recount=True))
    found = _json(site, "/loads.json")["newest_loads"]
    assert [x["load"] for x in found] == [20, 19, 18, 17]
    newest, *_, oldest = found
    assert (newest["topic"], newest["time"], newest["seconds"]) == ("dc1.nginx", NOW - MINUTE, 12.5)
    assert (newest["rows"], newest["rejects"], newest["files"]) == (2_990, 10, 2)
    assert (newest["rows_per_second"], newest["bytes"]) == (239, 81_300)
    assert newest["output"] == "hdfs://nn:8020/logs"
    assert oldest["bytes"] == "not told"
    assert "12 s" in site.get("/loads").text


@in_state("complete")
def test_the_flow_says_when_each_place_had_all_records(site: TestClient) -> None:
    """For each place (cluster or output) that has all records of a bucket, the bucket's page shows
    how much time passed from the bucket's end until the place had all of them. The page takes this
    time from the history of verdicts."""
    bucket = NOW // MINUTE * MINUTE - 10 * MINUTE
    body = site.get(f"/buckets?topic=dc1.nginx&bucket={bucket}").text
    after_s = round((190_000 + bucket // MINUTE * 7_919 % 60 * 1_000) / 1_000)
    assert body.count(f"all after {words.duration(after_s)}</span>") == 4


@in_state("lost")
def test_one_acceptance_covers_neighbours_with_the_same_causes(site: TestClient) -> None:
    """The page of a bucket that is not complete shows a command that accepts it. If the next
    buckets are incomplete for the same causes, the command accepts these buckets, too. The command
    then names the first and the last bucket, and the page says how many other buckets the command
    covers. The page of the last of these buckets shows a command that accepts only the last
    bucket."""
    found = _json(site, "/buckets.json?topic=dc1.nginx")["buckets"]
    lost = sorted(x["bucket"] for x in found if x["verdict"] == "lost")
    assert len(lost) > 1
    times = [report.time_text(x) for x in lost]

    def accept(bucket: int) -> tuple[str, str]:
        asked = f"topic=dc1.nginx&bucket={bucket}"
        [said] = {
            x["accept"]["line"] for x in _json(site, f"/buckets.json?{asked}")["explanations"]
        }
        return said, site.get(f"/buckets?{asked}").text

    command, body = accept(lost[0])
    assert f"dc1.nginx {times[0]} {times[-1]} --reason" in command
    assert f"{len(times) - 1} bucket" in body
    assert f"dc1.nginx {times[0]} {times[-1]} --reason" in body
    assert body.count("audit accept ") == 1
    command, body = accept(lost[-1])
    assert f"dc1.nginx {times[-1]} --reason" in command
    assert "With a second time after the first" in body


def test_a_recount_that_differs_is_told_on_the_first_page() -> None:
    """A recount may find other files in an output than those that the loader committed. The first
    page then names the topic, the output, one of these files, and the command to run next."""
    made = Site(has_recount=True, copied="copy.parquet")
    body = shown(made).get("/").text
    said = "in hdfs://nn:8020/logs, on etl1, found: copy.parquet. Next: skidway audit why dc1."
    assert body.count(said) == 1


def test_while_the_store_is_rebuilt_no_host_is_called_silent() -> None:
    """While the collector reads old messages again, it may not have the newest messages of a host
    yet. So the first page names no host as silent or at risk, and does not say that all hosts
    report."""
    for rebuilding in (0, 7):
        evidence = Evidence(rebuilding=rebuilding)
        hosts = survey(evidence, POLICY, NOW)
        facts = Facts(NOTHING_JUDGED, {}, evidence, POLICY, NOW, hosts=hosts)
        tables = silent_table(facts, 9), risk.table(facts)
        assert [len(x.rows) for x in tables] == ([0, 0] if rebuilding else [6, 6])
        if rebuilding:
            assert all(x.empty.startswith("Not known: ") for x in tables)


@in_state("warned")
def test_rejects_have_a_share_and_an_example(site: TestClient) -> None:
    """For each topic with rejects, the first page shows the share of rejects, a link to the newest
    bucket with rejects, and the text of a rejected line, escaped for HTML. The page of a bucket
    names the host with most of the bucket's rejects."""
    [row] = _json(site, "/index.json")["rejects"]
    assert row["topic"] == "dc1.auth"
    assert 0.02 < row["share"] < 0.03
    assert row["share_status"] == "warned"
    newest = NOW // MINUTE * MINUTE - MINUTE
    assert row["example"] == {"bucket": newest, "rejected": 4}
    assert row["command"] == "skidway rejected show dc1.auth --max 5 --bootstrap-server k1:9092"
    assert row["line"]["text"] == EXAMPLE.text
    assert (row["line"]["path"], row["line"]["offset"]) == ("/var/log/auth.log", 812)
    first, room = site.get("/").text, site.get("/rejects").text
    assert "&lt;b&gt;bad&lt;/b&gt; packet length" in first
    assert "<b>bad" not in first + room
    assert "closing the connection" not in first
    assert r"closing the connection\x00 (app2:/var/log/auth.log, no-match)" in room
    page = site.get(f"/buckets?topic=dc1.auth.rejected&bucket={newest - 10 * MINUTE}").text
    assert "app2" in page.partition("Why, and what next")[2].partition("History")[0]
    everything = _json(site, "/rejects.json")["rejects"]
    assert [x["topic"] for x in everything] == ["dc1.auth", "dc1.nginx", "dc1.orders"]
    assert everything[0]["rejected"] == everything[0]["by_agents"] == 200


def test_a_record_that_the_loader_rejected_is_an_example_of_its_own() -> None:
    """The page of rejects shows two examples of a topic's rejects, one beside the other: a line
    that an agent rejected, and a record that the loader rejected. For the record, the page gives
    the partition and the offset in place of host and path."""
    record = replace(
        EXAMPLE, tp=TopicPartition("dc1.auth", 2), offset=9, reason="rejected by the loader",
        host="", path="", text="a record",
    )  # fmt: skip
    site = shown(Site(rejects=4, records={AUTH: record}))
    row = _json(site, "/rejects.json")["rejects"][0]
    assert (row["line"]["text"], row["record"]["text"]) == (EXAMPLE.text, "a record")
    assert (row["record"]["topic"], row["record"]["offset"]) == ("dc1.auth", 9)
    assert "a record (dc1.auth-2 offset 9, rejected by the loader)" in site.get("/rejects").text


@in_state("rebuilding")
def test_while_hours_are_not_judged_nothing_is_green(site: TestClient) -> None:
    """Until the collector has judged all hours, the first page has no green heading, and shows no
    times up to which topics are complete."""
    body = site.get("/").text
    assert "31 hours of older buckets not judged yet" in body
    assert 'class="verdict open"' in body
    assert {x["complete_until"] for x in _json(site, "/index.json")["freshness"]} == {"not yet"}


@in_state("empty")
def test_an_empty_store_has_every_page(site: TestClient) -> None:
    """Before the first message, every page says what it will show later."""
    for path in ("/", "/?by=day", "/topics", "/hosts", "/loads", "/mirrors", "/rejects", "/search"):
        answer = site.get(path)
        assert answer.status_code == 200
        assert 'class="none"' in answer.text
    assert "When the first counts arrive" in site.get("/").text


@in_state("lost")
def test_a_lost_bucket_names_file_bytes_and_command(site: TestClient) -> None:
    """The page of a bucket explains a loss with host, path, bytes, and the command to run next."""
    path = f"?topic=dc1.nginx&bucket={LOST}"
    body = site.get(f"/buckets{path}").text
    for said in ("declared loss", "app4", "/var/log/nginx/access.log", "84,211 to 90,440"):
        assert said in body
    assert "Next: <code>skidway audit accept dc1.nginx" in body
    [said] = _json(site, f"/buckets.json{path}")["explanations"]
    assert (said["host"], said["path"]) == ("app4", "/var/log/nginx/access.log")
    assert said["ranges"] == [{"first": 84_211, "end": 90_440}]


@in_state("incomplete")
def test_hosts_with_one_trouble_are_one_cause(site: TestClient) -> None:
    """If one place (cluster or output) lacks records of all hosts, the bucket's page shows one
    cause for all hosts. If there are several causes, the page begins with the cause in the first
    tier that lacks records."""
    body = site.get(f"/buckets?topic=dc1.orders&bucket={NOW // MINUTE * MINUTE - 7 * MINUTE}").text
    assert body.count('<article class="why') == 2
    assert body.index("mirror behind") < body.index("load not run")
    assert "app1: mirror offline is short by" in body
    assert "and 1 more (the JSON of this page has all)" in body


@in_state("complete")
def test_the_flow_and_the_latency_of_a_bucket_are_shown(site: TestClient) -> None:
    """The page of a bucket shows how many records each tier has, and how much time passed between
    the bucket's end and the moment at which the bucket was first complete."""
    body = site.get(f"/buckets?topic=dc1.nginx&bucket={NOW // MINUTE * MINUTE - 20 * MINUTE}").text
    assert body.count('<span class="count">') == 4
    assert "First complete 3 min" in body or "First complete 4 min" in body


@in_state("incidents")
def test_hours_and_days_sum_up_the_buckets(site: TestClient) -> None:
    """In the grid of topics and times, the cell of an hour or a day shows the gravest verdict among
    its overdue buckets. An overdue bucket should be complete by now, but is neither complete nor
    accepted. Columns in which no topic has a bucket are left out, and the next column says how much
    time is left out before it."""
    hours = _json(site, "/index.json?by=hour")["grid"]
    newest = {x["topic"]: x["verdict"] for x in hours if x["start_ms"] == 1_769_850_000_000}
    assert newest == {
        "dc1.auth": "unknown", "dc1.auth.rejected": "unknown", "dc1.nginx": "lost",
        "dc1.orders": "unknown",
    }  # fmt: skip
    assert len({x["start_ms"] for x in hours}) == 24
    assert "after 1 h without lines" in site.get("/?by=hour").text
    days = _json(site, "/index.json?by=day")["grid"]
    assert len({x["start_ms"] for x in days}) == 3


@in_state("complete")
def test_older_hours_are_a_link_away_and_lead_back(site: TestClient) -> None:
    """The grid of hours has links to the columns before and after those that it shows, so people
    can reach any hour."""
    body = site.get("/?by=hour").text
    older = body.partition('">← Older')[0].rpartition('href="')[2].replace("&amp;", "&")
    page = site.get(older.partition("#")[0]).text
    assert "← Older" not in page
    newer = page.partition('">Newer →')[0].rpartition('href="')[2].replace("&amp;", "&")
    starts = [x["start_ms"] for x in _json(site, "/index.json?by=hour")["grid"]]
    again = newer.partition("#")[0].replace("/?", "/index.json?")
    assert [x["start_ms"] for x in _json(site, again)["grid"]] == starts


@in_state("incidents")
def test_search_finds_topics_hosts_outputs_and_reasons(site: TestClient) -> None:
    """The search finds a text in names of topics, hosts and outputs, and in the reasons of buckets'
    verdicts."""
    for text, kind in (
        ("NGINX", "topic"), ("app3", "host"), ("nn:8020", "sender at hdfs"),
        ("is short by", "bucket"), ("deleted unread", "bucket"),
    ):  # fmt: skip
        found = _json(site, f"/search.json?q={text}")["results"]
        assert kind in {x["kind"] for x in found}, text
    assert _json(site, "/search.json?q=nowhere")["results"] == []


@in_state("incidents")
def test_mirrors_and_loads_say_how_many_records_they_lack(site: TestClient) -> None:
    """The row of a mirror or an output shows how many records it lacks: the difference between what
    the brokers' counter has counted, and what the mirror's counter or the loader has counted."""
    mirrors = {x["topic"]: x["behind"] for x in _json(site, "/mirrors.json")["mirrors"]}
    assert mirrors["dc1.nginx"] == 0 < mirrors["dc1.orders"]
    loads = {x["topic"]: x for x in _json(site, "/loads.json")["loads"]}
    assert loads["dc1.orders"]["behind"] == mirrors["dc1.orders"]
    assert loads["dc1.orders"]["output"] == "hdfs://nn:8020/logs"
    assert len(_json(site, "/loads.json")["recounts"]) == 3


@in_state("complete")
def test_the_buckets_of_all_topics_are_listed_the_newest_first(site: TestClient) -> None:
    """The list of buckets begins with the newest buckets, also if it has the buckets of several
    topics. The topics of buckets with the same start are in the order of their names."""
    rows = list(csv.DictReader(site.get("/buckets.csv").text.splitlines()))
    found = [(-int(row["bucket"]), row["topic"]) for row in rows]
    assert len({topic for _, topic in found}) > 1
    assert len({bucket for bucket, _ in found}) > 1
    assert found == sorted(found)


@in_state("incidents")
def test_every_table_is_there_as_csv(site: TestClient) -> None:
    """All tables of all pages are also served as CSV; a parameter names one of a page's tables.
    Beside each table that has rows, the page has a link to its CSV."""
    named = re.findall(r'<li><a href="(/[a-z]*)"', site.get("/").text)
    assert len(named) == 6
    listed = "/buckets?topic=dc1.nginx"
    for page in (*named, "/?by=hour", "/search?q=app", listed, f"{listed}&bucket={LOST}"):
        body = site.get(page).text
        tables = re.findall(r'<h2 id="(?:t-)?(\w+)">', body)
        assert tables
        path, _, query = page.partition("?")
        texts = {}
        for table in tables:
            name = "/index" if path == "/" else path
            answer = site.get(f"{name}.csv?{query}&table={table}")
            assert answer.status_code == 200, (page, table)
            assert answer.headers["content-type"].startswith("text/csv")
            texts[table] = answer.text
            assert "," in answer.text.splitlines()[0]
        links = map(html.unescape, re.findall(r'class="csv" href="([^"]+)"', body))
        filled = [x for x in texts.values() if len(x.splitlines()) > 1]
        assert [site.get(x).text for x in links] == filled, page
