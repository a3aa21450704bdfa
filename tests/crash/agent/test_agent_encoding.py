"""Depending on a setting, a real agent rejects lines that are not UTF-8, or replaces their invalid
bytes and delivers the lines. The agent counts rejected lines and replaced lines."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway
from support.registry import Registry

Make = Callable[..., AgentProcess]


def scraped(agent: AgentProcess) -> set[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{agent.metrics_port}/metrics") as answer:
        return set(answer.read().decode().splitlines())


def consumed(broker: SkidwayBroker, registry: Registry, count: int) -> list[dict[str, Any]]:
    at = ("--topic", "mail", "--max", str(count), "--bootstrap-server", broker.address)
    done = run_skidway("consume", *at, "--from-beginning", "--registry", registry.url)
    assert len(done.stdout.splitlines()) == count, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_setting_is_changed_from_reject_to_replace(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker, registry: Registry
) -> None:
    """After `on_error` is changed to replace, the agent delivers lines that are not UTF-8, and sets
    the field `encoding_replaced` in their records. To add this field, the agent registers a new
    version of the schema. /metrics counts rejected and replaced lines by topic, and /health shows
    that no line is pending."""
    path = tmp_path / "mail.log"
    path.write_bytes(b"one\ncaf\xe9\n")
    process = agent({"topic": "mail", "paths": [str(path)]})
    process.start()
    eventually(lambda: process.settled({path: path.stat().st_size}), what="the first lines")
    assert {
        'skidway_agent_rejected_lines_total{reason="encoding",topic="mail"} 1.0',
        'skidway_agent_rejected_bytes_total{reason="encoding",topic="mail"} 5.0',
    } <= scraped(process)
    assert process.program.stop() == 0
    process.settings["sources"][0]["on_error"] = "replace"
    with path.open("ab") as out:
        out.write(b"th\xe9\ntwo\n")
    process.start()
    eventually(lambda: process.settled({path: path.stat().st_size}), what="the other lines")
    assert process.health()["pending_bytes"] == 0
    assert {
        'skidway_agent_replaced_lines_total{topic="mail"} 1.0', "skidway_agent_pending_bytes 0.0"
    } <= scraped(process)  # fmt: skip
    assert process.program.stop() == 0
    assert consumed(own_broker, registry, 3) == [
        {"line": "one"},
        {"line": "th\ufffd", "encoding_replaced": True},
        {"line": "two", "encoding_replaced": False},
    ]
    done = run_skidway("rejected", "show", "mail", "--bootstrap-server", own_broker.address)
    assert "encoding" in done.stdout
    process.settings["sources"][0]["on_error"] = "ignore"
    process.command()  # writes the settings file
    refused = run_skidway("agent", "validate", "--config", str(process.config))
    assert refused.returncode == 78
    assert "sources[0].on_error must be one of reject, replace, not 'ignore'" in refused.stderr
