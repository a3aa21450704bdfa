"""A team's file in sources.dir asks for more than it may have. The agent is a real process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from support.agent_process import AgentProcess, rows, values
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway

Make = Callable[..., AgentProcess]

HWM_MB_MAX = 450
"""The unit's MemoryMax is 512 MB."""


def schema(default: str) -> str:
    names = {"line": {}, "more": {"default": default}}
    fields = [{"name": name, "type": "string", **more} for name, more in names.items()]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


SOURCES = {
    "surrogate": ('fields: {env: "\\ud800"}', "is no text in UTF-8"),
    "constant": (f"fields: {{env: {'x' * 65_000}}}", "add more than 16,384 bytes to each record"),
    "long": (f"fields: {{env: {'x' * 100_000}}}", "a key or value has at most 65,536 characters"),
    "default": ("schema: shop.avsc", "add more than 16,384 bytes to each record"),
    "timeout": (
        f'multiline: {{type: start, pattern: "^a", timeout.ms: {"9" * 400}}}',
        "timeout.ms must be at most 315360000000",
    ),
    "brackets": (f"exclude: ['/{'[' * 900_000}']", "a file in sources.dir has at most 256 KiB"),
    "braces": (f"exclude: ['/{{{',' * 60_000}}}xx']", "has more than 4,096 characters"),
    "nested": ('parser: {type: log4j, pattern: "%d ' + "%style{" * 1_000 + '"}', "are nested in"),
}


def has(broker: SkidwayBroker, lines: list[str]) -> bool:
    return [line for line, *_ in rows(broker.address, "others")] == lines


def test_a_file_that_asks_for_too_much_stops_nobody(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker
) -> None:
    """Whatever a team's file asks for, the agent refuses it with one sentence, at a reload as at
    its own look at the files; it reads on for the other teams, and starts again with the good
    file."""
    log, other, folder = tmp_path / "shop.log", tmp_path / "other.log", tmp_path / "agent.d"
    folder.mkdir()
    log.write_text("a\n" * 20_000)
    good = {"topic": "shop", "paths": [str(log)]}
    file = folder / "shop.yml"
    file.write_text(yaml.safe_dump({"sources": [good]}))
    (folder / "shop.avsc").write_text(schema("x" * 900_000))
    process = agent({"topic": "others", "paths": [str(other)]})
    process.settings["sources.dir"] = str(folder)
    process.start()
    for name, (text, words) in SOURCES.items():
        file.write_text(f"sources:\n- topic: shop\n  paths: ['{log}']\n  {text}\n")
        done = run_skidway("agent", "reload", "--config", str(process.config))
        assert done.returncode == 78
        assert words in done.stderr
        with other.open("a") as more:
            more.write(f"{name}\n")
        wanted = other.read_text().splitlines()
        eventually(partial(has, own_broker, wanted), what="the line of another team")
    eventually(
        lambda: process.health().get("configuration", {}).get("refused_files"),
        what="the agent's look",
    )
    assert process.program.running
    process.program.kill()
    file.write_text(yaml.safe_dump({"sources": [good]}))
    process.start()
    sizes = {log: 40_000, other: other.stat().st_size}
    eventually(lambda: process.settled(sizes), what="all lines")
    assert "press_failed" not in process.program.output()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["constant", "default"])
def test_the_largest_records_of_the_shortest_lines(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker, kind: str
) -> None:
    """With the largest constant fields or defaults, a log of empty lines is delivered within the
    memory that the agent's unit may have."""
    log, count = tmp_path / "shop.log", 20_000
    log.write_text("a\n" * count)
    (tmp_path / "shop.avsc").write_text(schema("x" * 16_000))
    more = {"fields": {"env": "x" * 16_000}}
    if kind == "default":
        more = {"schema": str(tmp_path / "shop.avsc")}
    parser = {"type": "regex", "pattern": "(?P<line>.*)"}
    process = agent({"topic": "shop", "paths": [str(log)], "parser": parser, **more})
    process.start()
    eventually(lambda: process.settled({log: 2 * count}), every_s=1, within_s=200, what="all lines")
    status = Path(f"/proc/{process.program.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    print(f"{kind}: {int(found[1]) // 1024} MB")
    assert int(found[1]) // 1024 <= HWM_MB_MAX
    assert sum(1 for _ in values(own_broker.address, "shop")) == count
