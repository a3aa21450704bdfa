"""A real agent reloads changed settings while it runs, and neither loses nor doubles a line."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.agent_process import AgentProcess, rows
from support.brokers import SkidwayBroker
from support.processes import NotReady, eventually, run_skidway
from support.promises import promise
from support.registry import Registry

Make = Callable[..., AgentProcess]


def source(topic: str, *paths: Path, **others: Any) -> dict[str, Any]:
    return {"topic": topic, "paths": [str(path) for path in paths], **others}


def write(process: AgentProcess, *sources: dict[str, Any], **others: Any) -> None:
    """Writes the agent's configuration file with changed settings. The given sources replace all
    sources; if no source is given, the sources stay. `others` are further settings to change."""
    process.settings |= {"sources": list(sources)} if sources else {}
    process.settings |= {key.replace("_", "."): value for key, value in others.items()}
    process.config.write_text(yaml.safe_dump(process.settings))


def reload(process: AgentProcess) -> subprocess.CompletedProcess[str]:
    return run_skidway("agent", "reload", "--config", str(process.config))


def lines_of(broker: SkidwayBroker, topic: str) -> list[str]:
    return sorted(line for line, _, _ in rows(broker.address, topic))


@promise("2 new settings")
@pytest.mark.quick
def test_sources_come_change_and_go_without_a_restart(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker
) -> None:
    """`agent reload` prints what changed, and the agent's process continues. Sources are added,
    removed and moved to other topics, and each line arrives in one topic."""
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text("a1\n")
    b.write_text("b1\n")
    process = agent(source("logs", a)).start()
    eventually(lambda: process.settled({a: 3}), what="the first line")
    process_id = process.program.pid
    write(process, source("others", b), source("logs", a))
    done = reload(process)
    assert (done.returncode, done.stdout) == (0, f"source of topic others added: {b}\n")
    with a.open("a") as file:
        file.write("a2\n")
    eventually(lambda: process.settled({a: 6, b: 3}), what="the lines of both files")
    write(process, source("moved", a))
    assert reload(process).returncode == 0
    with a.open("a") as file:
        file.write("a3\n")
    eventually(lambda: lines_of(own_broker, "moved") == ["a3"], what="the line in the new topic")
    assert lines_of(own_broker, "logs") == ["a1", "a2"]
    assert lines_of(own_broker, "others") == ["b1"]
    assert process.program.pid == process_id
    assert "configuration" not in process.health()
    assert reload(process).stdout == "nothing changed\n"


def test_an_agent_without_sources_runs_and_takes_them_at_a_reload(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker
) -> None:
    """If `sources.dir` has no file yet, the agent starts, and its log and /health say that it has
    no sources. When the agent reloads its settings, it takes the sources from a new file *.yml. The
    schema file that this file names may be in the same directory. If the file *.yml is removed, the
    agent continues to run without sources."""
    log, folder = tmp_path / "a.log", tmp_path / "agent.d"
    folder.mkdir()
    log.write_text("a1\n")
    process = agent()
    process.settings["sources.dir"] = str(folder)
    process.start()
    sentence = f"there are no sources: no file *.yml is in {folder}"
    assert sentence in process.health()["sources"]
    assert process.program.output().count('"event": "no_sources"') == 1
    (folder / "line.avsc").write_text(
        '{"type": "record", "name": "r", "fields": [{"name": "line", "type": "string"}]}'
    )
    mine = source("logs", log, schema="line.avsc")
    (folder / "a.yml").write_text(yaml.safe_dump({"sources": [mine]}))
    done = reload(process)
    assert (done.returncode, done.stdout) == (0, f"source of topic logs added: {log}\n")
    eventually(lambda: lines_of(own_broker, "logs") == ["a1"], what="the line")
    eventually(lambda: "sources" not in process.health(), what="a health without the sentence")
    (folder / "a.yml").unlink()
    assert reload(process).stdout == f"source of topic logs removed: {log}\n"
    eventually(lambda: "sources" in process.health(), what="the sentence")


def test_what_is_refused_never_runs(agent: Make, tmp_path: Path) -> None:
    """`agent reload` refuses settings that need a restart, settings that are not valid, and a
    schema that the registry refuses. It exits with status 78 and names the setting or source. The
    agent continues with its old settings, and /health names the reason for the refusal."""
    log = tmp_path / "a.log"
    log.write_text("1\n")
    good = source("logs", log)
    process = agent(good).start()
    write(process, host_name="elsewhere")
    done = reload(process)
    assert done.returncode == 78
    assert "host.name: " in done.stderr
    assert "restart it" in done.stderr
    eventually(
        lambda: "host.name" in process.health().get("configuration", {}).get("refused", ""),
        what="the reason in /health",
    )
    del process.settings["host.name"]
    write(process, source("logs", log, parser={"type": "regex", "pattern": "("}))
    assert reload(process).returncode == 78
    number = tmp_path / "number.avsc"
    number.write_text(
        '{"type": "record", "name": "logs", "fields": [{"name": "n", "type": "int"}]}'
    )
    write(process, source("logs", log, parser={"type": "json"}, schema=str(number)))
    done = reload(process)
    assert done.returncode == 78
    assert "source of topic logs" in done.stderr
    write(process, good)
    assert reload(process).stdout == "nothing changed\n"
    eventually(lambda: process.settled({log: 2}), what="the line")
    assert process.healthy()


def test_a_reload_without_registry_is_refused(
    agent: Make, tmp_path: Path, registry: Registry
) -> None:
    """If the registry cannot be reached, `agent reload` exits with status 3. The agent continues to
    deliver the lines of its old sources."""
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.write_text("1\n")
    b.write_text("1\n")
    process = agent(source("logs", a)).start()
    registry.program.kill()
    write(process, source("logs", a), source("others", b))
    assert reload(process).returncode == 3
    with a.open("a") as file:
        file.write("2\n")
    eventually(lambda: process.settled({a: 4}), what="the second line")


def test_kill_9_around_reloads(agent: Make, tmp_path: Path, own_broker: SkidwayBroker) -> None:
    """Every line arrives once, even if the agent gets SIGHUP again and again with changed settings,
    and is killed at random moments."""
    log, other = tmp_path / "a.log", tmp_path / "b.log"
    other.touch()
    process = agent(source("logs", log))
    moments = random.Random(11)
    written: list[str] = []
    for round_ in range(6):
        with log.open("a") as file:
            for _ in range(5_000):
                written.append(f"line {len(written):06}")
                file.write(f"{written[-1]}\n")
        process.start()
        extra = [source("others", other)] if round_ % 2 else []
        write(process, *extra, source("logs", log), idle_flush_ms=200 + round_, linger_ms=round_)
        process.program.signal(signal.SIGHUP)
        with contextlib.suppress(NotReady):
            eventually(lambda: False, within_s=moments.uniform(0.0, 1.5))
        process.program.kill()
    process.start()
    eventually(lambda: process.settled({log: log.stat().st_size}), what="all settled")
    assert lines_of(own_broker, "logs") == written
