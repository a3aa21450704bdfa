"""Tests the audit's command line: settings, stores and exit statuses. The tests use no cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.audit.commands import options
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Range, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.cli.commands import main
from support.audit_senders import LOGS
from support.clock import ManualClock


def _store(folder: Path, *, records: int = 5, topic: str = "logs") -> None:
    source = replace(LOGS, topic=topic)
    agent = Sender(Tier.AGENT, "dc1", "7", "web1", 1)
    broker = Sender(Tier.BROKER, "dc1", "broker-dc1", "c1", 1)
    said = [
        Delta(agent, 1, 5, counts=(Count(source, 7, 0, 60_000, 5, 50, 9),)),
        Seal(agent, 2, 10**9, (SealedTopic(source, 10**9, 1),)),
        Delta(
            broker, 1, 5, ranges=(Range(source, 0, 0, 5),),
            counts=(Count(source, 7, 0, 60_000, records, 50, 9),),
        ),
    ]  # fmt: skip
    folder.mkdir(exist_ok=True)
    ledger = Ledger(folder / DATABASE)
    ledger.take(map(messages.encode, said))
    ledger.close()


def test_a_complete_store_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the only bucket of a store is complete, `report` ends with status 0, and prints a table
    and a sentence with the verdict."""
    _store(tmp_path)
    assert main(["audit", "report", "--store", str(tmp_path), "--tiers", "agent,broker"]) == 0
    printed = capsys.readouterr().out
    assert "dc1.logs" in printed
    assert "The bucket of 1 topic is complete." in printed


def test_a_short_tier_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If a tier lacks records, `report` ends with status 1, and its JSON has the reason."""
    _store(tmp_path, records=3)
    arguments = ["audit", "report", "--store", str(tmp_path), "--tiers", "agent,broker", "--json"]
    assert main(arguments) == 1
    [bucket] = json.loads(capsys.readouterr().out)["buckets"]
    assert bucket["reasons"] == ["web1: broker dc1 is short by 2 of 5"]


def test_the_collectors_settings_say_where_its_store_is(tmp_path: Path) -> None:
    """`report` takes the path of the store and the expected tiers from the collector's settings."""
    _store(tmp_path / "store")
    config = tmp_path / "audit.yml"
    text = f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {tmp_path / 'store'}\n"
    config.write_text(text + "tiers: [agent, broker]\n")
    assert main(["audit", "report", "--config", str(config)]) == 0
    config.write_text(text + "tiers: [agent, broker, hdfs]\n")
    assert main(["audit", "report", "--config", str(config)]) == 1


@pytest.mark.parametrize("where", [["--store", "{store}"], []])
def test_installed_settings_hold_wherever_the_evidence_is_read(
    where: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If an option names the store, `report` takes all other settings from the installed audit.yml.
    If no audit.yml is installed, `report` says which default settings it used."""
    _store(tmp_path / "store")
    monkeypatch.setattr(options, "DIRECTORY", tmp_path)
    named = ["audit", "report", "--store", str(tmp_path / "store")]
    assert main(named) == 1
    printed = capsys.readouterr()
    assert "tier hdfs never reported" in printed.out
    words = (
        f"note: {tmp_path}/audit.yml is not here, so default settings apply: tiers agent, broker,"
        " mirror, hdfs, no roster, nothing exempt or retired by settings, signatures not"
        " verified; --config FILE names others\n"
    )
    assert words in printed.err
    (tmp_path / "audit.yml").write_text(
        f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {tmp_path / 'store'}\ntiers: [agent, broker]\n"
    )
    given = [each.format(store=tmp_path / "store") for each in where]
    assert main(["audit", "report", *given]) == 0
    assert "default settings" not in capsys.readouterr().err


def test_topic_and_since_choose_buckets(tmp_path: Path) -> None:
    """The options --topic and --since choose the buckets of the report. If there is no such bucket,
    `report` ends with status 1."""
    _store(tmp_path)
    base = ["audit", "report", "--store", str(tmp_path), "--tiers", "agent,broker"]
    assert main([*base, "--topic", "logs"]) == 0
    assert main([*base, "--topic", "dc1.logs"]) == 0  # the topic as the report prints it
    assert main([*base, "--topic", "dc2.logs"]) == 1
    assert main([*base, "--topic", "other"]) == 1
    assert main([*base, "--since", "1970-01-01T00:00:00Z"]) == 0
    assert main([*base, "--since", "24h"]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "/nowhere"], "no store"),
        (["--store", "{store}", "--since", "soon"], "--since"),
        (["--store", "{store}", "--lateness-ms", "-1"], "--lateness-ms"),
        (["--store", "{store}", "--tiers", "agent,kafka"], "none of"),
    ],
)
def test_bad_arguments_get_a_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    """For a bad argument, `report` prints one sentence and ends with status 2."""
    _store(tmp_path)
    given = [argument.format(store=tmp_path) for argument in arguments]
    assert main(["audit", "report", *given]) == 2
    assert words in capsys.readouterr().err


def test_a_recount_of_nothing_is_not_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the output is empty, `audit recount` prints one sentence and ends with status 1."""
    _store(tmp_path)
    (tmp_path / "out").mkdir()
    arguments = ["--output", str(tmp_path / "out"), "--store", str(tmp_path)]
    assert main(["audit", "recount", *arguments]) == 1
    assert "no committed load" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["", "s3://bucket/x", "/nowhere/at/all", "hdfs:///x"])
def test_a_recount_of_what_is_no_output_is_a_mistake_in_the_question(
    output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the path in --output is not an output of a loader, the command ends with status 2 and a
    sentence, as it does for any other bad option."""
    assert main(["audit", "recount", "--output", output]) == 2
    assert "output" in capsys.readouterr().err


@pytest.mark.parametrize("program", ["run", "count"])
def test_settings_can_be_checked_without_starting(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`audit validate` ends with status 0 if the settings are good. If the settings have a mistake,
    the command prints one sentence about it, and ends with status 78."""
    arguments = ["audit", "validate", program, "--set", "bootstrap.servers=a:1"]
    if program == "count":
        arguments += ["--set", f"state.dir={tmp_path}"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("good: ")
    assert main([*arguments, "--set", "bucket.ms=1"]) == 78
    words = "skidway audit: --set bucket.ms=1: bucket.ms must be at least 1000, not 1\n"
    assert capsys.readouterr() == ("", words)


SEALED_MS = 10**9
ROSTER = "hosts:\n  - {host: web1, cluster: dc1, topics: [logs]}\n"


def _config(folder: Path, roster: str = ROSTER) -> Path:
    """Writes settings with a roster file, and a store with one bucket. Agent and broker counted the
    same records in this bucket. The tier hdfs, which the settings expect, counted nothing."""
    _store(folder / "store")
    (folder / "roster.yml").write_text(roster)
    config = folder / "audit.yml"
    config.write_text(
        f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {folder / 'store'}\n"
        f"tiers: [agent, broker, hdfs]\nroster.file: {folder / 'roster.yml'}\n"
    )
    return config


def test_waiting_for_a_host_that_is_proven_ends_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`wait` ends at once if the host is already proven (its lines are sealed and counted). Without
    `--tiers`, the command usually requires no counts of the tier hdfs, because the next load may be
    a day away."""
    clock = ManualClock(SEALED_MS + 5_000)
    monkeypatch.setattr("skidway.audit.commands.hosts.SystemClock", lambda: clock)
    arguments = ["audit", "wait", "--config", str(_config(tmp_path)), "--host", "web1"]
    assert main([*arguments, "--since", "90s"]) == 0
    assert capsys.readouterr().out == (
        "1 host sealed past the bucket of 1970-01-12T13:45:15Z, and complete since then in"
        " agent, broker.\n"
    )
    assert main([*arguments, "--since", "90s", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["hosts"][0]["sealed_to_ms"]) == (True, SEALED_MS)
    exempt = ["--set", "tiers=agent,broker,mirror", "--set", "exempt.mirror=dc1.logs"]
    assert main([*arguments, "--since", "90s", *exempt]) == 0
    assert "agent, broker, mirror (but for exempt topics)." in capsys.readouterr().out
    clock.set_time_ms(150_000)
    more = ["--since", "1970-01-01T00:00:10Z", "--timeout-s", "0"]
    assert main([*arguments, *more, "--tiers", "agent,broker,hdfs"]) == 1
    assert "tier hdfs never reported this topic" in capsys.readouterr().out
    assert main([*arguments, *more, *exempt, "--tiers", "agent,broker,mirror"]) == 1
    assert "tier mirror never reported this topic" in capsys.readouterr().out
    # Without --tiers, `wait` usually requires no counts of hdfs. But if the settings have only the
    # tiers agent and hdfs, it requires counts of both, because only hdfs can confirm the agent's
    # counts.
    assert main([*arguments, *more, "--set", "tiers=agent,hdfs"]) == 1
    assert "tier hdfs never reported this topic" in capsys.readouterr().out


@pytest.mark.parametrize("records", [5, 4])
def test_waiting_judges_a_larger_bucket_that_began_long_before(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    records: int,
) -> None:
    """The agent used buckets of ten minutes, and now uses buckets of a minute. If the time of
    `--since` is in a bucket of ten minutes, `wait` judges this bucket, although it began several
    minutes before that time. In one case of this test the broker has all 5 records of this bucket,
    and in the other case only 4."""
    config, large, small = _config(tmp_path), 999_000_000, 999_960_000
    agent = Sender(Tier.AGENT, "dc1", "7", "web1", 1)
    broker = Sender(Tier.BROKER, "dc1", "broker-dc1", "c1", 1)
    newest = Count(LOGS, 7, small, 60_000, 1, 1, 1)
    ledger = Ledger(tmp_path / "store" / DATABASE)
    ledger.take(
        messages.encode(x)
        for x in (
            Delta(agent, 3, 5, counts=(Count(LOGS, 7, large, 600_000, 5, 5, 5), newest)),
            Seal(agent, 4, SEALED_MS, (SealedTopic(LOGS, SEALED_MS, 3),)),
            Delta(
                broker, 2, 5, ranges=(Range(LOGS, 0, 5, 11),),
                counts=(Count(LOGS, 7, large, 600_000, records, 5, 5), newest),
            ),
        )
    )  # fmt: skip
    ledger.close()
    clock = ManualClock(SEALED_MS + 5_000)
    monkeypatch.setattr("skidway.audit.commands.hosts.SystemClock", lambda: clock)
    arguments = ["--host", "web1", "--since", "705s", "--timeout-s", "0"]
    found = main(["audit", "wait", "--config", str(config), *arguments])
    printed = capsys.readouterr().out
    assert found == (0 if records == 5 else 1), printed
    assert ("short by 1 of 5" in printed) is (records == 4)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "soon"], "--since 'soon'"),
        (["--since", "8d"], "more than 10,080 buckets ago"),
        (["--timeout-s", "-1"], "--timeout-s"),
        (["--tiers", "broker,mirror"], "agent must be among them"),
        (["--host", "web7"], "--host web7: no roster names this host"),
        (["--store", "/nowhere"], "no store"),
    ],
)
def test_waiting_for_nonsense_gets_a_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    """`wait` with bad arguments fails at once with a sentence, and not only at the end of the
    allowed time."""
    given = ["audit", "wait", "--config", str(_config(tmp_path)), "--host", "web1", "--since", "9s"]
    assert main([*given, *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_host_that_is_short_is_named_when_the_time_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """When the allowed time is over, `wait` prints one sentence for each host that is not proven,
    that is, whose lines are not yet sealed and counted."""
    config = _config(tmp_path, ROSTER + "  - {host: web2, cluster: dc1}\n")
    arguments = ["--host", "web1", "--host", "web2", "--since", "0s", "--timeout-s", "0"]
    assert main(["audit", "wait", "--config", str(config), *arguments]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "web1 (dc1): its agent is silent since 1970-01-12 13:46:40Z; topic logs"
    )
    assert second == "web2 (dc1): no agent of it was ever heard."


UNTIL = "1970-01-01T00:01:00Z"


def _complete(folder: Path, *arguments: str, topic: str = "logs", until: str = UNTIL) -> int:
    where = ["--store", str(folder), "--set", "bootstrap.servers=127.0.0.1:1"]
    given = [*where, "--set", "tiers=agent,broker", "--topic", topic, "--until", until]
    return main(["audit", "complete", *given, *arguments])


def _heard(folder: Path, time_ms: int, *, number: int = 1) -> None:
    """Stores a heartbeat of the broker's counter, sent at `time_ms`, in the collector's store in
    the directory `folder`."""
    broker = Sender(Tier.BROKER, "dc1", "broker-dc1", "c1", 1)
    ledger = Ledger(folder / DATABASE)
    ledger.take([messages.encode(messages.Heartbeat(broker, number, time_ms))])
    ledger.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """A simulated clock for `audit complete`. It begins shortly after the newest message of the
    store, and moves forward when the command pauses."""
    clock = ManualClock(SEALED_MS + 5_000)
    monkeypatch.setattr("skidway.audit.commands.complete.SystemClock", lambda: clock)
    monkeypatch.setattr("skidway.audit.commands.complete.time.sleep", clock.advance)
    return clock


@pytest.mark.usefixtures("clock")
def test_a_job_may_run_when_all_before_a_time_is_complete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`audit complete` ends with status 0 if all buckets of the topic before the given time are
    complete. Its output names the tiers whose counts were compared."""
    _store(tmp_path)
    _heard(tmp_path, SEALED_MS)
    said = (
        "dc1.logs is complete from 1969-12-31T00:01:00Z to 1970-01-01T00:01:00Z in agent, broker"
        " (5 records); it is not compared with tier hdfs.\n"
    )
    for topic in ("logs", "dc1.logs", "dc1.logs (id tid)"):
        assert _complete(tmp_path, topic=topic) == 0
        assert capsys.readouterr().out == said
    assert _complete(tmp_path, "--since", "1970-01-01T00:00:00Z", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["topics"][0]["buckets"]) == (True, 1)
    assert _complete(tmp_path, "--set", "tiers=agent,broker,hdfs") == 1
    assert "tier hdfs never reported this topic" in capsys.readouterr().out


@pytest.mark.usefixtures("clock")
def test_a_name_that_may_mean_a_topic_that_was_never_heard_of_gets_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The name `dc1.logs` may mean topic `logs` of cluster `dc1`, or a topic that is called
    `dc1.logs`. If the audit has never heard of topic `logs` of cluster `dc1`, `audit complete`
    judges the topic that is called `dc1.logs`. The command prints this topic's full name, and a
    note about the other meaning. There is no note in three cases: the given name is a full name, or
    cluster `dc1` has a known topic `logs`, or no known topic has the given name."""
    _store(tmp_path, topic="dc1.logs")
    _heard(tmp_path, SEALED_MS)
    assert _complete(tmp_path, "--json", topic="dc1.logs") == 0
    said = capsys.readouterr()
    note = (
        "dc1.logs may also mean topic logs of cluster dc1, of which the audit has never heard; the"
        " answer is about dc1.dc1.logs"
    )
    assert f"note: {note}\n" in said.err
    found = json.loads(said.out)
    assert found["sentences"][0].startswith("dc1.dc1.logs is complete")
    assert found["notes"] == [note]
    assert _complete(tmp_path, topic="dc1.dc1.logs") == 0
    assert "may also mean" not in capsys.readouterr().err
    _store(tmp_path / "both")
    _store(tmp_path / "both", topic="other")
    _complete(tmp_path / "both", topic="dc1.logs")
    _complete(tmp_path / "both", topic="dc1.never")
    assert "may also mean" not in capsys.readouterr().err


@pytest.mark.usefixtures("clock")
def test_a_job_must_not_run_while_rows_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If records are missing, `audit complete` ends with status 1, and says in which hours, how
    many, and why. An unknown topic is not complete."""
    _store(tmp_path, records=3)
    _heard(tmp_path, SEALED_MS)
    assert _complete(tmp_path) == 1
    assert capsys.readouterr().out == (
        "dc1.logs is not complete up to 1970-01-01T00:01:00Z. 1 of 1,440 buckets is short, in the"
        " hour 1970-01-01T00:00:00Z. There broker dc1 lacks 2 records. 1970-01-01T00:00:00Z is"
        " incomplete: web1: broker dc1 is short by 2 of 5.\n"
    )
    assert _complete(tmp_path, "--json") == 1
    [topic] = json.loads(capsys.readouterr().out)["topics"]
    assert topic["hours_short"] == [
        {"hour": "1970-01-01T00:00:00Z", "buckets_short": 1, "verdict": "incomplete"}
    ]
    assert topic["lacking"] == [{"tier": "broker", "place": "dc1", "records": 2}]
    assert _complete(tmp_path, until="1970-01-01T00:00:00Z") == 0
    capsys.readouterr()
    assert _complete(tmp_path, topic="dc2.logs") == 1
    assert capsys.readouterr().out == (
        "dc2.logs is not complete up to 1970-01-01T00:01:00Z: the audit has never heard of this"
        " topic.\n"
    )


def test_a_job_can_wait_until_all_is_complete(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --wait, `audit complete` repeats its check until everything is complete, or until the
    allowed time is over."""
    _store(tmp_path)
    begun = clock.monotonic()
    assert _complete(tmp_path, "--wait", "2m") == 1
    assert clock.monotonic() - begun == 120
    looks = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        clock.advance(seconds)
        if len(looks) == 3:
            _heard(tmp_path, SEALED_MS)

    monkeypatch.setattr("skidway.audit.commands.complete.time.sleep", pause)
    clock.set_time_ms(SEALED_MS)
    assert _complete(tmp_path, "--wait", "2h") == 0
    assert len(looks) == 3


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--until", "soon"], 2, "--until 'soon'"),
        (["--since", "soon"], 2, "--since 'soon'"),
        (["--since", UNTIL], 2, "earlier than --until"),
        (["--since", "1969-12-24T00:00:00Z"], 2, "more than 10,080 buckets"),
        (["--wait", "long"], 2, "--wait 'long' is not a duration"),
        (["--wait", "2000000000d"], 2, "is not a duration"),
        (["--set", "tiers=agent"], 78, "at least two"),
    ],
)
def test_asking_nonsense_gets_a_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    words: str,
) -> None:
    """`audit complete` with bad arguments fails at once with a sentence. The status is 2 for a bad
    option, and 78 for a bad setting."""
    _store(tmp_path)
    assert _complete(tmp_path, *arguments) == status
    assert words in capsys.readouterr().err


def test_hosts_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`audit hosts` ends with status 1 while an expected host does not report, and also if no host
    is known at all."""
    config = _config(tmp_path)
    assert main(["audit", "hosts", "--config", str(config)]) == 1
    assert "1 of 1 expected hosts does not report (silent: web1)." in capsys.readouterr().out
    silent = ["--set", f"silence.ms={10**15}"]
    assert main(["audit", "hosts", "--config", str(config), *silent]) == 0
    assert "reporting" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    Ledger(tmp_path / "empty" / DATABASE).close()
    assert main(["audit", "hosts", "--store", str(tmp_path / "empty")]) == 1


def test_a_report_names_the_hosts_that_are_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report lists the expected hosts that do not report, even if all its buckets are complete,
    because such a host may have unsent lines of these buckets."""
    report = ["audit", "report", "--tiers", "agent,broker", "--config", str(_config(tmp_path))]
    assert main(report) == 0
    said = capsys.readouterr().out
    assert "The bucket of 1 topic is complete." in said
    assert "1 of 1 expected hosts does not report (silent: web1)." in said
    assert main([*report, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hosts"]["missed"] == 1
    silent = ["--set", f"silence.ms={10**15}"]
    assert main([*report, *silent]) == 0
    assert "report (" not in capsys.readouterr().out


def test_reports_name_what_the_roster_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An expected host that never reported keeps a bucket from being complete. If a bucket has
    records of a retired host, the report calls this host retired."""
    report = ["audit", "report", "--tiers", "agent,broker", "--config"]
    assert main([*report, str(_config(tmp_path))]) == 0
    capsys.readouterr()
    config = _config(tmp_path, ROSTER + "  - {host: web2, cluster: dc1, topics: [logs]}\n")
    assert main([*report, str(config)]) == 1
    assert "host web2 is expected, but no agent of it reported yet" in capsys.readouterr().out
    retired = "hosts:\n  - {host: web1, cluster: dc1, retired: true}\n"
    (tmp_path / "short").mkdir()
    config = _config(tmp_path / "short", retired)
    (tmp_path / "short" / "store" / DATABASE).unlink()
    _store(tmp_path / "short" / "store", records=3)
    assert main([*report, str(config)]) == 1
    assert "web1 (retired): broker dc1 is short by 2 of 5" in capsys.readouterr().out


def test_a_roster_that_cannot_be_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All commands that judge buckets or hosts refuse a roster with mistakes, and so does
    `validate`."""
    config = str(_config(tmp_path, "hosts:\n  - {host: web1}\n"))
    (tmp_path / "out").mkdir()
    for verb in (
        ["validate"],
        ["report"],
        ["hosts"],
        ["why"],
        ["why", "dc1.logs"],
        ["complete", "--topic", "dc1.logs", "--until", UNTIL],
        ["wait", "--host", "web1", "--since", "9s"],
        ["accept", "dc1.logs", "1970-01-01T00:00:00Z", "--reason", "ticket 1"],
        ["recount", "--output", str(tmp_path / "out")],
    ):
        assert main(["audit", *verb, "--config", config]) == 78, verb
        said = capsys.readouterr()
        assert "roster.yml, line 2: the key 'hosts[0].cluster' is missing" in said.err, verb
        assert said.out == "", verb


@pytest.mark.parametrize(
    "expected",
    [["--tiers", "agent,broker"], ["--set", "tiers=[agent,broker]"]],
)
def test_why_judges_as_the_report_does(
    expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`why` takes the same options as the report, and a store with settings needs no address of
    brokers. The commands that are printed next judge by the same tiers."""
    _store(tmp_path, records=3)
    capsys.readouterr()
    assert main(["audit", "why", "--store", str(tmp_path), *expected]) == 1
    said = capsys.readouterr().out
    assert "is short by 2 of 5" in said
    assert f"audit why TOPIC --store {tmp_path} --set 'tiers=[agent,broker]' explains" in said
    assert "mirror" not in said
