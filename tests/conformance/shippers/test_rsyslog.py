"""Tests `skidway audit compare` with a real rsyslog, which reads files with imfile and sends their
lines with omkafka to Skidway's broker. rsyslog uses the template of docs/audit.md."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skidway.kafka.client import LATEST, Client, NewTopic
from skidway.kafka.types import TopicPartition
from support import foreign
from support.brokers import SkidwayBroker
from support.counting import CountProcess
from support.peers import ROOT
from support.processes import Program, eventually, run_skidway

pytestmark = pytest.mark.foreign
PLACES, TEXTS = "rsyslog-places", "rsyslog-texts"
PAGE = (ROOT / "docs" / "audit.md").read_text()
TEMPLATE = re.search(r'^ *template\(name="lines".*?^ *}$', PAGE, re.MULTILINE | re.DOTALL)
CONFIG = """
global(workDirectory="{state}")
module(load="imfile" mode="polling" pollingInterval="1")
module(load="omkafka")
{template}
template(name="texts" type="string" string="%msg%")
input(type="imfile" File="{folder}/app.log" Tag="app" addMetadata="on" ruleset="ship"
      persistStateInterval="1")
ruleset(name="ship") {{
  if $msg contains "swallowed" then stop
  action(type="omkafka" broker=["{broker}"] topic="{places}" template="lines")
  action(type="omkafka" broker=["{broker}"] topic="{texts}" template="texts")
}}
"""


class Rsyslog:
    """rsyslog with its own configuration and state, and the log file that it reads."""

    def __init__(self, folder: Path, broker: SkidwayBroker) -> None:
        self.broker, self.folder, self.state = broker, folder / "log", folder / "state"
        self.file = self.folder / "app.log"
        self.folder.mkdir()
        self.state.mkdir()
        assert TEMPLATE is not None
        config = folder / "rsyslog.conf"
        config.write_text(
            CONFIG.format(
                state=self.state, template=TEMPLATE[0], folder=self.folder, broker=broker.address,
                places=PLACES, texts=TEXTS,
            )
        )  # fmt: skip
        command = [foreign.rsyslog(), "-n", "-f", str(config), "-i", str(folder / "pid")]
        self.program = Program(command, folder / "rsyslog.out")

    def write(self, *texts: str) -> None:
        with self.file.open("a") as file:
            file.write("".join(f"{text}\n" for text in texts))

    def wait_shipped(self, count: int) -> None:
        """Waits until each of rsyslog's two topics (PLACES and TEXTS) has this many records."""
        tps = [TopicPartition(topic, 0) for topic in (PLACES, TEXTS)]
        with Client(self.broker.address) as client:
            eventually(
                lambda: (
                    {
                        each.offset
                        for each in client.list_offsets(dict.fromkeys(tps, LATEST)).values()
                    }
                    == {count}
                ),
                what=f"{count} records; rsyslog says {self.program.output()[-2000:]}",
            )

    def lose_one_and_double_twenty(self, older: Path) -> None:
        """Writes 21 lines, one of which a rule of rsyslog leaves out. rsyslog sends the other 20
        lines. Then an older copy of rsyslog's state (`older`) replaces the newer state, so rsyslog
        sends these 20 lines again. rsyslog still runs when this method returns."""
        self.write("swallowed 1", *(f"more {n}" for n in range(20)))
        self.program.start()
        self.wait_shipped(70)
        self.program.stop()
        shutil.rmtree(self.state)
        older.rename(self.state)
        self.program.start()
        self.wait_shipped(90)

    def compare(self, topic: str, shape: str, *where: str) -> tuple[int, dict[str, Any]]:
        """Runs `skidway audit compare` for a topic. Returns its exit status and its JSON output.
        `where` has the options that name the notes of `skidway agent count`. Without these options,
        the command reads the log files."""
        done = run_skidway(
            "audit", "compare", "--json", "--bootstrap-server", self.broker.address,
            "--topic", topic, "--shape", shape,
            *(where or ("--files", f"{self.folder}/app.log*")),
        )  # fmt: skip
        assert done.returncode in (0, 1), f"{done.stdout}\n{done.stderr}"
        return done.returncode, dict(json.loads(done.stdout))


@pytest.fixture
def rsyslog(own_broker: SkidwayBroker, tmp_path: Path) -> Iterator[Rsyslog]:
    made = Rsyslog(tmp_path, own_broker.start())
    with Client(own_broker.address) as client:
        topics = [NewTopic(topic, 1, 1) for topic in (PLACES, TEXTS)]
        assert set(client.create_topics(topics).values()) == {None}
    yield made
    if made.program.running:
        made.program.stop()


@pytest.fixture
def counting(rsyslog: Rsyslog, tmp_path: Path) -> Iterator[CountProcess]:
    """`skidway agent count`, which notes the lines of the file that rsyslog reads. The fixture
    starts the command while the file is empty."""
    made = CountProcess(tmp_path / "notes", str(rsyslog.file))
    rsyslog.file.touch()
    made.start()
    yield made
    if made.program.running:
        made.program.kill()


def told(document: dict[str, Any]) -> list[tuple[str, str, int]]:
    return [(each["what"], Path(each["file"]).name, each["lines"]) for each in document["ranges"]]


def test_losses_and_doublings_of_rsyslog_are_found(rsyslog: Rsyslog) -> None:
    """`skidway audit compare` gives each line one of four results. Lines that a rule of rsyslog
    left out, and lines of a file that was rotated while rsyslog was down, are "missing". Lines that
    rsyslog sent again after an older copy of rsyslog's state was restored are "doubled". Lines that
    rsyslog has not read yet are "not shipped yet". All other lines are "shipped"."""
    rsyslog.write(*(f'line {n} with ünïcode, a "quote" and a \\' for n in range(50)))
    rsyslog.program.start()
    rsyslog.wait_shipped(50)
    for topic, shape in ((PLACES, "rsyslog"), (TEXTS, "text")):
        status, document = rsyslog.compare(topic, shape)
        assert (status, document["ranges"], document["unknown"]) == (0, [], 0), document
    rsyslog.program.stop()
    older = shutil.copytree(rsyslog.state, rsyslog.state.with_name("older"))

    rsyslog.lose_one_and_double_twenty(older)
    rsyslog.program.stop()

    rsyslog.write(*(f"rest {n}" for n in range(5)))
    rsyslog.file.rename(rsyslog.folder / "app.log.1")
    rsyslog.write(*(f"new {n}" for n in range(3)))
    rsyslog.program.start()
    rsyslog.wait_shipped(93)
    rsyslog.program.stop()
    rsyslog.write("late 1", "late 2")

    expected = [
        ("missing", "app.log.1", 1), ("doubled", "app.log.1", 20), ("missing", "app.log.1", 5),
    ]  # fmt: skip
    for topic, shape in ((PLACES, "rsyslog"), (TEXTS, "text")):
        status, document = rsyslog.compare(topic, shape)
        assert (status, told(document)) == (1, expected), document
        first = document["ranges"][0]
        data = (rsyslog.folder / "app.log.1").read_bytes()
        assert data[first["first"] : first["end"]] == b"swallowed 1\n"
        current = document["files"][-1]
        assert (current["shipped"], current["not_yet"]) == (3, 2)
        assert document["unknown"] == document["other_hosts"] == 0, socket.gethostname()


def test_losses_and_doublings_are_found_after_the_file_is_gone(
    rsyslog: Rsyslog, counting: CountProcess
) -> None:
    """A file that was rotated is deleted before `skidway audit compare` runs. With the notes of
    `skidway agent count`, the command still finds the lines of this file that rsyslog left out or
    sent twice. Before the deletion, `agent count` was killed and started again, and noted each line
    once."""
    rsyslog.write(*(f'line {n} with ünïcode, a "quote" and a \\' for n in range(50)))
    rsyslog.program.start()
    rsyslog.wait_shipped(50)
    rsyslog.program.stop()
    older = shutil.copytree(rsyslog.state, rsyslog.state.with_name("older"))
    counting.wait_noted(50)
    counting.program.kill()

    rsyslog.lose_one_and_double_twenty(older)
    counting.start()
    counting.wait_noted(71)

    gone = rsyslog.folder / "app.log.1"
    rsyslog.file.rename(gone)
    rsyslog.write(*(f"new {n}" for n in range(3)))
    rsyslog.wait_shipped(93)
    rsyslog.program.stop()
    rsyslog.write("late 1", "late 2")
    counting.wait_noted(76)
    data = gone.read_bytes()
    gone.unlink()

    for topic, shape in ((PLACES, "rsyslog"), (TEXTS, "text")):
        status, document = rsyslog.compare(topic, shape, "--counted", str(counting.directory))
        first, second = document["ranges"]
        assert (status, document["unknown"], document["not_noted"]) == (1, 0, []), document
        assert (first["what"], data[first["first"] : first["end"]]) == ("missing", b"swallowed 1\n")
        assert (second["what"], second["lines"]) == ("doubled", 20)
        assert data[second["first"] : second["end"]].startswith(b"more 0\n")
        assert {Path(each["file"]).name for each in (first, second)} == {"app.log.1"}
        current = document["files"][-1]
        assert (current["shipped"], current["not_yet"]) == (3, 2)
