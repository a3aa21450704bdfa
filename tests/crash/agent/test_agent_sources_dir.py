"""Teams write files of `sources.dir` that a real agent cannot use."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.agent_process import AgentProcess, rows
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway
from support.promises import promise

Make = Callable[..., AgentProcess]

NUMBER = '{"type": "record", "name": "shop", "fields": [{"name": "n", "type": "int"}]}'
LINE = '{"type": "record", "name": "line", "fields": [{"name": "line", "type": "string"}]}'
KEY = "0123456789abcdef"


def source(topic: str, *paths: Path, **others: Any) -> dict[str, Any]:
    return {"topic": topic, "paths": [str(path) for path in paths], **others}


def write(file: Path, *sources: dict[str, Any]) -> None:
    file.write_text(yaml.safe_dump({"sources": list(sources)}))


def append(log: Path, *lines: str) -> None:
    with log.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))


def lines_of(broker: SkidwayBroker, topic: str) -> list[str]:
    return sorted(line for line, _, _ in rows(broker.address, topic))


def run(process: AgentProcess, *words: str) -> tuple[int, str, str]:
    done = run_skidway("agent", *words, "--config", str(process.config))
    return done.returncode, done.stdout, done.stderr


def refused(process: AgentProcess) -> dict[str, str]:
    """Returns which files /health names, and what the agent does instead."""
    found = process.health().get("configuration", {}).get("refused_files", {})
    return {Path(path).name: instead for path, instead in found.items()}


def lost(process: AgentProcess) -> list[dict[str, Any]]:
    return [each for each in process.ledger() if each["lost"] or each["uncertain"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "agent.d"
    made.mkdir()
    return made


@pytest.fixture
def process(agent: Make, folder: Path) -> AgentProcess:
    made = agent()
    made.settings["sources.dir"] = str(folder)
    return made


def break_every_way(folder: Path, log: Path) -> set[str]:
    """Writes files that cannot be used, each for another reason. Returns their names."""
    os.mkfifo(folder / "pipe.avsc")
    os.mkfifo(folder / "pipe.key")
    (folder / "zero.avsc").symlink_to("/dev/zero")
    with (folder / "large.avsc").open("wb") as file:
        file.truncate(100 << 30)
    schemas = {
        "nul": "a\0.avsc", "surrogate": "\ud800.avsc", "pipe": "pipe.avsc", "zero": "zero.avsc",
        "large": "large.avsc", "gone": "gone.avsc",
    }  # fmt: skip
    for name, schema in schemas.items():
        write(folder / f"{name}.yml", source(name, log, schema=schema))
    keys = {"key-nul": "k\0", "key-surrogate": "\ud800", "key-pipe": "pipe.key"}
    for name, key in keys.items():
        hashed = source(name, log, shape="hash line", **{"hash.key.location": key})
        write(folder / f"{name}.yml", hashed)
    (folder / "syntax.yml").write_text("sources: [")
    (folder / "deep.yml").write_text("sources: " + "[" * 5_000)
    (folder / "line.yml").write_text('"x\\nskidway: fine": 1')
    write(folder / "mode.yml", source("mode", log))
    (folder / "mode.yml").chmod(0o666)
    write(folder / "pattern.yml", source("pattern", log, parser={"type": "regex", "pattern": "("}))
    (folder / "directory.yml").mkdir()
    os.mkfifo(folder / "fifo.yml")
    names = {*schemas, *keys, "syntax", "deep", "line", "mode", "pattern", "directory", "fifo"}
    return {f"{name}.yml" for name in names}


@promise("2 new settings")
def test_a_file_that_cannot_be_used_is_refused_alone(
    process: AgentProcess, tmp_path: Path, folder: Path, own_broker: SkidwayBroker
) -> None:
    """Files of `sources.dir` that cannot be used, for whatever reason, neither end nor hold up the
    agent, at a look, at a reload, or at a start. /health, `reload`, `validate` and `state show`
    name them, and the sources of the other files come and go."""
    log, other = tmp_path / "a.log", tmp_path / "b.log"
    append(log, "1")
    append(other, "1")
    write(folder / "good.yml", source("good", log))
    process.start()
    names = break_every_way(folder, other)
    seen_at_a_look = names - {"pattern.yml"}  # a look tries no parser
    eventually(lambda: refused(process).keys() == seen_at_a_look, what="the names in /health")
    write(folder / "new.yml", source("new", other))
    status, said, errors = run(process, "reload")
    assert (status, said) == (78, f"source of topic new added: {other}\n")
    words = " is refused, and its sources are not read: "
    named = [each.partition(words)[0] for each in errors.splitlines()]
    assert sorted(named) == sorted(f"skidway agent: {folder / name}" for name in names)
    assert "syntax.yml, line 1" not in str(process.health())
    append(log, "2")
    eventually(lambda: lines_of(own_broker, "good") == ["1", "2"], what="lines of the good file")
    eventually(lambda: lines_of(own_broker, "new") == ["1"], what="lines of the new file")
    process.program.stop()
    append(log, "3")
    process.start()
    assert refused(process).keys() == names
    eventually(lambda: lines_of(own_broker, "good") == ["1", "2", "3"], what="the third line")
    for command in (["validate"], ["state", "show"]):
        status, _, errors = run(process, *command)
        assert status == (78 if command == ["validate"] else 0)
        assert all(f"{folder / name} is refused" in errors for name in names)
    for name in names - {"directory.yml"}:
        (folder / name).unlink()
    (folder / "directory.yml").rmdir()
    assert run(process, "reload")[0] == 0
    eventually(lambda: "configuration" not in process.health(), what="nothing is refused")


@promise("2 new settings")
def test_a_broken_file_is_no_wish_to_stop_reading(
    process: AgentProcess, tmp_path: Path, folder: Path, own_broker: SkidwayBroker
) -> None:
    """If a team breaks its file, its schema and its key, a running agent and one that is killed and
    started go on with the last good version: no line is lost, none comes twice, and no seal vouches
    for what is not read. When the file is mended, its new sources are read."""
    log, hashed, further = tmp_path / "a.log", tmp_path / "b.log", tmp_path / "c.log"
    append(log, "a1")
    append(hashed, "b1")
    append(further, "c1")
    (folder / "line.avsc").write_text(LINE)
    (folder / "key").write_text(KEY)
    sources = (
        source("shop", log, schema="line.avsc"),
        source("cart", hashed, shape="hash line", **{"hash.key.location": "key"}),
    )
    write(folder / "shop.yml", *sources)
    process.start()
    eventually(lambda: process.settled({log: 3, hashed: 3}), what="the first lines")
    (folder / "shop.yml").write_text("sources: [")
    (folder / "line.avsc").unlink()
    (folder / "key").unlink()
    status, said, errors = run(process, "reload")
    assert (status, said) == (78, "nothing changed\n")
    assert f"{folder}/shop.yml is refused, and its last good version is in use: " in errors
    append(log, "a2")
    append(hashed, "b2")
    eventually(lambda: process.settled({log: 6, hashed: 6}), what="the second lines")
    process.program.kill()
    append(log, "a3")
    append(hashed, "b1")
    process.start()
    eventually(lambda: process.settled({log: 9, hashed: 9}), what="the third lines")
    assert refused(process) == {"shop.yml": "its last good version is in use"}
    assert lines_of(own_broker, "shop") == ["a1", "a2", "a3"]
    names = [line for line, _, _ in rows(own_broker.address, "cart")]
    assert len(names) == 3
    assert len(set(names)) == 2  # one key for all
    (folder / "line.avsc").write_text(LINE)
    (folder / "key").write_text(KEY)
    write(folder / "shop.yml", *sources, source("further", further))
    assert run(process, "reload")[:2] == (0, f"source of topic further added: {further}\n")
    eventually(lambda: lines_of(own_broker, "further") == ["c1"], what="the new source")
    assert lost(process) == []


def test_what_the_registry_refuses_is_refused_alone(
    process: AgentProcess, tmp_path: Path, folder: Path, own_broker: SkidwayBroker
) -> None:
    """If the registry refuses the schema of one file of `sources.dir`, a reload takes the others,
    and so does a start; the file's last good version stays in use."""
    log, other = tmp_path / "a.log", tmp_path / "b.log"
    append(log, "1")
    append(other, "1")
    write(folder / "shop.yml", source("shop", log))
    process.start()
    eventually(lambda: process.settled({log: 2}), what="the first line")
    (folder / "number.avsc").write_text(NUMBER)
    write(folder / "shop.yml", source("shop", log, parser={"type": "json"}, schema="number.avsc"))
    write(folder / "other.yml", source("other", other))
    status, said, errors = run(process, "reload")
    assert (status, said) == (78, f"source of topic other added: {other}\n")
    assert "source of topic shop: " in errors
    process.program.stop()
    append(log, "2")
    append(other, "2")
    process.start()
    eventually(lambda: process.settled({log: 4, other: 4}), what="the second lines")
    assert refused(process) == {"shop.yml": "its last good version is in use"}
    assert lines_of(own_broker, "shop") == ["1", "2"]
    assert lost(process) == []
