"""The steps of docs/first-pipeline.md work exactly as printed, with and without a mirror."""

from __future__ import annotations

import re
import shlex
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml

from skidway.agent.settings import AgentSettings
from skidway.audit.settings import AuditSettings, CounterSettings
from skidway.broker.settings import BrokerSettings
from skidway.loader.settings import LoaderSettings
from skidway.schemas.registry.program import RegistrySettings
from skidway.settings.spec import specs
from skidway.zookeeper import ZookeeperSettings
from support.processes import Program, answers, eventually, free_port, run_skidway

pytestmark = [pytest.mark.java, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
LOGS = "/var/log/hadoop"
ADDRESS = re.compile(r"127\.0\.0\.1:(\d+)")

SERVICES: dict[str, type[Any]] = {
    "zookeeper run": ZookeeperSettings,
    "broker run": BrokerSettings,
    "registry run": RegistrySettings,
    "agent run": AgentSettings,
    "audit run": AuditSettings,
    "audit count": CounterSettings,
}
JOBS: dict[str, type[Any]] = {
    "agent validate": AgentSettings,
    "agent state": AgentSettings,
    "mirror status": BrokerSettings,
    "load run": LoaderSettings,
}


class Reader:
    """Acts as a person who follows the page on one machine.

    The test replaces only the folder of the logs, the words for which a shell puts in the working
    directory and the host's name, and every port, including the ports that programs use by default.
    Each port of the page is always replaced by the same test port. So if the page gives two
    programs the same port, these programs also collide in this test.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "log"
        self.programs: list[Program] = []
        self._ports: dict[str, int] = {}
        self.env = {
            "SKIDWAY_BOOTSTRAP_SERVER": self.changed("127.0.0.1:9092"),
            "SKIDWAY_REGISTRY": self.changed("http://127.0.0.1:8081"),
        }

    def changed(self, text: str) -> str:
        """Returns the text with the test's folder and ports in place of those of the page."""
        moved = ADDRESS.sub(lambda found: f"127.0.0.1:{self._port(found[1])}", text)
        for named, found in {
            LOGS: str(self.logs), "$PWD": str(self.folder), "$(hostname)": socket.gethostname()
        }.items():  # fmt: skip
            moved = moved.replace(named, found)
        return moved

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(self.changed(text))

    def start(self, command: list[str]) -> None:
        """Starts a program as in a separate terminal, and waits until the program is healthy."""
        words = self._words(command, SERVICES[" ".join(command[:2])])
        log = self.folder / f"{len(self.programs)}-{command[0]}.out"
        program = Program([sys.executable, "-m", "skidway.cli", *words], log, cwd=self.folder)
        self.programs.append(program)
        listener = self._setting(words, "metrics.listener")
        program.start().wait_until(lambda: answers(f"http://{listener}/health"))

    def do(self, command: list[str]) -> str:
        """Runs a `skidway` command of the page. Asserts that its status is 0, and returns its
        output."""
        done = self.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Runs a `skidway` command of the page to its end, with the ports of the test."""
        words = self._words(command, JOBS.get(" ".join(command[:2])))
        return run_skidway(*words, env=self.env, cwd=self.folder, within_s=300)

    def page(self, path: str) -> str:
        """Returns what the collector answers for `path`; "{}" if it does not listen yet."""
        url = f"http://{self.changed('127.0.0.1:8088')}{path}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return str(answer.read().decode())
        except urllib.error.URLError:
            return "{}"

    def _words(self, command: list[str], cls: type[Any] | None) -> list[str]:
        """Returns the command with replaced ports, and with settings for the ports that the program
        would use by default."""
        words = [self.changed(word) for word in command]
        for key, spec in () if cls is None else specs(cls).items():
            several = isinstance(spec.default, tuple | list)
            text = ",".join(map(str, spec.default)) if several else str(spec.default)
            if key == "clientPort":
                words += ["--set", f"{key}={self._port(text)}"]
            elif ADDRESS.search(text) and self._setting(words, key) is None:
                words += ["--set", f"{key}={self.changed(text)}"]
        return words

    def _setting(self, words: list[str], key: str) -> str | None:
        """Returns the value of the setting `key` on the command line `words`, or in the
        configuration file that the command line names. Returns None if neither has the setting."""
        for word in words:
            if word.startswith(f"{key}="):
                return word.partition("=")[2]
        if "--config" in words:
            document = yaml.safe_load(
                (self.folder / words[words.index("--config") + 1]).read_text()
            )
            return document.get(key)
        return None

    def _port(self, named: str) -> int:
        return self._ports.setdefault(named, free_port())


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    made = Reader(tmp_path)
    made.logs.mkdir()
    shutil.copy(ROOT / "tests/data/logs/hdfs.log", made.logs / "datanode.log")
    yield made
    for program in reversed(made.programs):
        program.kill() if program.running else None


def blocks() -> Iterator[list[str]]:
    """Yields the indented blocks of the page up to "What the agent can do"."""
    text = (ROOT / "docs" / "first-pipeline.md").read_text()
    part = text.partition("## From a log to rows\n")[2].partition("## What the agent can do")[0]
    for found in re.findall(r"(?:^(?: {4}.*)?\n)+", part, re.MULTILINE):
        lines = [line.removeprefix("    ") for line in found.splitlines()]
        if any(lines):
            yield [line for line in lines if line]


def test_the_steps_run_one_after_the_other(reader: Reader) -> None:
    """If a reader runs the commands of the page on one machine exactly as printed, every line
    becomes a row, from the broker and from its mirror, and each time the audit confirms that all
    lines are loaded. The collector's page says so too."""
    said: dict[str, str] = {}
    reports: list[str] = []
    for block in blocks():
        named = re.fullmatch(r"# ([\w-]+\.yml)", block[0])
        if named is not None:
            reader.write(named[1], "\n".join(block[1:]) + "\n")
            continue
        for line in block:
            first, *command = shlex.split(line, comments=True)
            assert first == "skidway", line
            what = " ".join(command[:2])
            if what == "audit run":  # the lines are of 2008
                reader.start([*command, "--set", "keep.days=36500"])
                eventually(lambda: complete(reader.page("/index.json")), what="a complete page")
            elif what in SERVICES:
                reader.start(command)
            elif what == "agent state":
                eventually(lambda c=command: settled(reader.do([*c, "--json"])), what="all is sent")
                said[what] = reader.do(command)
            elif what == "mirror status":
                eventually(lambda c=command: mirrored(reader.do([*c, "--json"])), what="mirrored")
            elif what == "audit report":
                eventually(lambda c=command: "complete." in reader.run(c).stdout, what="complete")
                reports.append(reader.do(command))
            else:
                said[what] = reader.do(command)
    lines = len((reader.logs / "datanode.log").read_bytes().splitlines())
    for loaded in ("rows/hdfs-logs", "offline-rows/dc1.hdfs-logs"):
        rows = ds.dataset(reader.folder / "data" / loaded, partitioning="hive").to_table()
        assert rows.num_rows == lines
        assert set(rows.column("level").to_pylist()) <= {"INFO", "WARN"}
    assert f"all of {lines:,} records fit" in said["agent validate"]
    assert len(said["consume --topic"].splitlines()) == 3
    assert ["are complete." in report for report in reports] == [True, True]


def settled(shown: str) -> bool:
    files = yaml.safe_load(shown)["files"]
    return bool(files) and not any(file["pending"] for file in files)


def complete(shown: str) -> bool:
    page = yaml.safe_load(shown)
    counts = page.get("by_verdict", {})
    return bool(counts.get("complete")) and not any(
        count for word, count in counts.items() if word != "complete"
    )


def mirrored(shown: str) -> bool:
    sources = yaml.safe_load(shown)
    return bool(sources) and all(
        source["partitions"] > 0
        and not (source["lag"] or source["lag_unknown"] or source["waiting"])
        for source in sources
    )
