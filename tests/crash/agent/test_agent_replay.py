"""Rejected lines are exported, repaired and replayed through a real agent."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from support.agent_process import AgentProcess, values
from support.brokers import SkidwayBroker
from support.processes import NotReady, Program, call_skidway, eventually, run_skidway, skidway
from support.promises import promise
from support.registry import Registry

Make = Callable[..., AgentProcess]


def ok(*words: str) -> subprocess.CompletedProcess[str]:
    done = call_skidway(*words)
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
    names the line's position in the log. A second replay of the same lines sends nothing."""
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


@promise("2 replay")
def test_replays_that_are_killed_and_run_again_double_nothing(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker
) -> None:
    """Each repaired line arrives in the topic once, even if `agent replay` is killed and run again,
    if two of these commands run at once, or if the agent is killed meanwhile."""
    log, file = tmp_path / "a.log", tmp_path / "repair.jsonl"
    log.write_text("".join(f"line {n}\n" for n in range(3_000)))
    process = agent(
        {
            "topic": "logs",
            "paths": [str(log)],
            "parser": {"type": "regex", "pattern": "(?P<n>[0-9]+)"},
            "replay": True,
        }
    )
    process.settings["rejected.share.max"] = 1
    process.start()
    eventually(lambda: process.settled({log: log.stat().st_size}), what="all rejects")
    ok("rejected", "export", "logs", str(file), "--bootstrap-server", own_broker.address)
    file.write_text(file.read_text().replace('"line": "line ', '"line": "'))
    command = skidway("agent", "replay", str(file), "--config", str(process.config))
    for killed_after_s in (0.6, 1.2, 2.0, 3.0):
        replays = [Program(command, tmp_path / f"replay-{n}.out").start() for n in range(2)]
        with contextlib.suppress(NotReady):
            replays[0].wait(killed_after_s)
        for each in replays:
            each.kill()
        process.program.kill()
        process.start(ready=False)
    for _ in range(2):
        ok("agent", "replay", str(file), "--config", str(process.config))
    wanted = sorted(str(n) for n in range(3_000))
    found: list[str] = []

    def have_come() -> bool:
        # A value consists of 5 bytes with the schema id, one byte with the length of the text as a
        # zigzag varint (twice the length), and the text.
        texts = (value[6 : 6 + value[5] // 2] for value in values(own_broker.address, "logs"))
        found[:] = sorted(text.decode() for text in texts)
        return len(found) >= len(wanted)

    eventually(have_come, every_s=1, what="all repaired lines")
    assert found == wanted
    assert counts(process)[0]["open"] == 0
