"""Rejected lines are exported, repaired and replayed through a real agent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway
from support.promises import promise
from support.registry import Registry

pytestmark = pytest.mark.crash

Make = Callable[..., AgentProcess]


def ok(*words: str) -> subprocess.CompletedProcess[str]:
    done = run_skidway(*words)
    assert done.returncode == 0, done.stderr
    return done


def counts(process: AgentProcess) -> list[dict[str, Any]]:
    done = ok("agent", "replayed", "logs", "--json", "--config", str(process.config))
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@promise("2 replay")
def test_rejected_lines_are_repaired_and_replayed_once(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker, registry: Registry
) -> None:
    """Two rejected lines are exported, one of them is repaired by hand, and both are replayed. The
    repaired line arrives in the topic. The other line is rejected again, and its new reject still
    names the line's first position. A second replay of the same lines sends nothing."""
    log = tmp_path / "a.log"
    log.write_text("1\ntwo\nthree\n4\n")
    source: dict[str, Any] = {
        "topic": "logs",
        "paths": [str(log)],
        "parser": {"type": "regex", "pattern": "(?P<n>[0-9]+)"},
    }
    process = agent(source)
    process.settings["rejected.share.max"] = 1
    process.start()
    eventually(lambda: process.settled({log: 14}), what="all lines")
    config = ["--config", str(process.config)]
    brokers = ["--bootstrap-server", own_broker.address]
    file = tmp_path / "repair.jsonl"
    ok("rejected", "export", "logs", str(file), *brokers)
    documents = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["line"] for each in documents] == ["two", "three"]
    assert run_skidway("agent", "replay", str(file), *config).returncode == 78

    process.settings["sources"] = [{**source, "replay": True}]
    process.config.write_text(yaml.safe_dump(process.settings))
    assert ok("agent", "reload", *config).stdout.splitlines() == [
        "source of topic logs changed: replay",
        "source of topic logs: schema 1 became 3",
    ]
    done = run_skidway("agent", "replay", str(file), *config)
    assert done.returncode == 1
    assert "2 lines would be rejected again" in done.stderr
    documents[0]["line"] = "2"
    file.write_text("".join(json.dumps(each) + "\n" for each in documents))
    ok("agent", "replay", "--also-unfit", str(file), *config)
    eventually(lambda: counts(process)[0]["again"] == 1, every_s=1, what="the reject of a replay")
    assert counts(process) == [
        {"reason": "no-match", "rejected": 3, "again": 1, "replayed": 2, "open": 1}
    ]
    again = ok("agent", "replay", str(file), *config).stdout
    assert again == "2 lines were replayed before, and are left out\nnothing to replay\n"

    shown = json.loads(ok("rejected", "show", "logs", "--max", "1", "--json", *brokers).stdout)
    assert shown[0]["line"] == "three"
    assert shown[0]["path"] == str(log)
    assert shown[0]["original_first"] == 6
    places = [*brokers, "--registry", registry.url]
    rows = ok("consume", "--topic", "logs", "--from-beginning", "--max", "3", *places).stdout
    assert sorted(json.loads(row)["n"] for row in rows.splitlines()) == ["1", "2", "4"]
    assert not [each for each in process.ledger() if each["pending"]]
