"""The command line: settings, stores and exit statuses, without a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from audit import messages
from audit.ledger import DATABASE, Ledger
from audit.messages import Count, Delta, Range, Seal, SealedTopic, Sender, Tier
from skidway.cli.commands import main
from skidway.kafka.source import Source

LOGS = Source("dc1", "cid", "logs", "tid")


def _store(folder: Path, *, records: int = 5) -> None:
    agent = Sender(Tier.AGENT, "dc1", "7", "web1", 1)
    broker = Sender(Tier.BROKER, "dc1", "broker-dc1", "c1", 1)
    said = [
        Delta(agent, 1, 5, counts=(Count(LOGS, 7, 0, 60_000, 5, 50, 9),)),
        Seal(agent, 2, 10**9, (SealedTopic(LOGS, 10**9, 1),)),
        Delta(
            broker, 1, 5, ranges=(Range(LOGS, 0, 0, 5),),
            counts=(Count(LOGS, 7, 0, 60_000, records, 50, 9),),
        ),
    ]  # fmt: skip
    folder.mkdir(exist_ok=True)
    ledger = Ledger(folder / DATABASE)
    ledger.take(map(messages.encode, said))
    ledger.close()


def test_a_complete_store_is_good(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 0, a table, and the sentence."""
    _store(tmp_path)
    assert main(["audit", "report", "--store", str(tmp_path), "--tiers", "agent,broker"]) == 0
    printed = capsys.readouterr().out
    assert "dc1.logs" in printed
    assert "The bucket of 1 topic is complete." in printed


def test_a_short_tier_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 1, and the reason in the JSON."""
    _store(tmp_path, records=3)
    arguments = ["audit", "report", "--store", str(tmp_path), "--tiers", "agent,broker", "--json"]
    assert main(arguments) == 1
    [bucket] = json.loads(capsys.readouterr().out)["buckets"]
    assert bucket["reasons"] == ["web1: broker dc1 is short by 2 of 5"]


def test_the_collectors_settings_say_where_its_store_is(tmp_path: Path) -> None:
    """And what it expects: here the tier hdfs, which never reported."""
    _store(tmp_path / "store")
    config = tmp_path / "audit.yml"
    text = f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {tmp_path / 'store'}\n"
    config.write_text(text + "tiers: [agent, broker]\n")
    assert main(["audit", "report", "--config", str(config)]) == 0
    config.write_text(text + "tiers: [agent, broker, hdfs]\n")
    assert main(["audit", "report", "--config", str(config)]) == 1


def test_topic_and_since_choose_buckets(tmp_path: Path) -> None:
    """Nothing left to judge is not good."""
    _store(tmp_path)
    base = ["audit", "report", "--store", str(tmp_path), "--tiers", "agent,broker"]
    assert main([*base, "--topic", "logs"]) == 0
    assert main([*base, "--topic", "other"]) == 1
    assert main([*base, "--since", "1970-01-01T00:00:00Z"]) == 0
    assert main([*base, "--since", "24h"]) == 1


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--store", "/nowhere"], 2, "no store"),
        (["--store", "{store}", "--since", "soon"], 2, "--since"),
        (["--store", "{store}", "--lateness-ms", "-1"], 2, "--lateness-ms"),
        (["--store", "{store}", "--tiers", "agent,kafka"], 78, "none of"),
    ],
)
def test_bad_arguments_get_a_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    words: str,
) -> None:
    """And the right exit status."""
    _store(tmp_path)
    given = [argument.format(store=tmp_path) for argument in arguments]
    assert main(["audit", "report", *given]) == status
    assert words in capsys.readouterr().err


def test_a_recount_of_nothing_is_not_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 1 and a sentence."""
    _store(tmp_path)
    (tmp_path / "out").mkdir()
    arguments = ["--output", str(tmp_path / "out"), "--store", str(tmp_path)]
    assert main(["audit", "recount", *arguments]) == 1
    assert "no committed load" in capsys.readouterr().out


@pytest.mark.parametrize("program", ["run", "count"])
def test_settings_can_be_checked_without_starting(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0 with what it would do, 78 with what is wrong."""
    arguments = ["audit", "validate", program, "--set", "bootstrap.servers=a:1"]
    if program == "count":
        arguments += ["--set", f"state.dir={tmp_path}"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("good: ")
    assert main([*arguments, "--set", "bucket.ms=1"]) == 78
