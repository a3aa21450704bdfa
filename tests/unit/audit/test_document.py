"""Tests the files and examples in docs/audit.md. The tests read the settings files that the page
shows, and run the page's examples with a clock that shows the time given in the page."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest

from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Heartbeat, Message, Range, Seal, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.cli.commands import main
from skidway.kafka.source import Source
from support.clock import ManualClock
from support.ledgers import take

PAGE = (Path(__file__).parents[3] / "docs/audit.md").read_text()
FILES = re.findall(r"```yaml\n# /etc/skidway/(\S+)\n(.*?)```", PAGE, re.DOTALL)
CONSOLES = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
NGINX, AUTH = (Source("dc1", "c", topic, topic) for topic in ("nginx", "auth"))


def ms(time: str) -> int:
    return int(datetime.fromisoformat(f"2026-01-31T{time}").replace(tzinfo=UTC).timestamp()) * 1000


def said() -> list[Message]:
    """Returns the messages of a site with three hosts. The host app1 has no problem. The host app2
    has sealed the topic auth only up to 10:01:30, and the broker's counter has counted too few
    records of this host. The host app4 stopped sending earlier."""
    counts = {
        "app1": {"10:00:00": (520, 520), "10:01:00": (498, 498)},
        "app2": {"10:00:00": (77, 77), "10:01:00": (80, 77)},
        "app4": {"10:00:00": (12, 12)},
    }
    found: list[Message] = []
    by_broker: list[Count] = []
    for agent, (host, buckets) in enumerate(counts.items(), start=1):
        sender = Sender(Tier.AGENT, "dc1", str(agent), host, 1)
        own = []
        for time, (mine, brokers) in buckets.items():
            own.append(Count(NGINX, agent, ms(time), 60_000, mine, mine * 100, mine))
            by_broker.append(Count(NGINX, agent, ms(time), 60_000, brokers, brokers * 100, brokers))
        found.append(Delta(sender, 1, ms("10:02:00"), counts=tuple(own)))
        until = ms("10:04:50") if host != "app4" else ms("10:01:10")
        sealed = [SealedTopic(NGINX, until, 1)]
        if host == "app2":
            sealed.append(SealedTopic(AUTH, ms("10:01:30"), 1))
        found.append(Seal(sender, 2, until + 1_000, tuple(sealed)))
    broker = Sender(Tier.BROKER, "dc1", "broker-dc1", "b1", 1)
    ranges = (Range(NGINX, 0, 0, 2_000),)
    counted = Delta(broker, 1, ms("10:04:59"), ranges=ranges, counts=tuple(by_broker))
    return [*found, counted, Heartbeat(broker, 1, ms("10:04:59"))]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a directory with the page's two settings files and a store, and makes it the current
    directory. The audit's clock shows five past ten."""
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    (tmp_path / "store").mkdir()
    ledger = Ledger(tmp_path / "store" / DATABASE)
    take(ledger, map(messages.encode, said()), now_ms=ms("10:05:00"))
    ledger.close()
    monkeypatch.chdir(tmp_path)
    for module in ("report", "why", "hosts", "complete"):
        name = f"skidway.audit.commands.{module}.SystemClock"
        monkeypatch.setattr(name, lambda: ManualClock(ms("10:05:00")))
    return tmp_path


def test_the_page_has_its_files() -> None:
    """The page contains the two files that its examples use (audit.yml and roster.yml), and five
    examples."""
    assert [name for name, _ in FILES] == ["audit.yml", "roster.yml"]
    assert len(CONSOLES) == 5


@pytest.mark.parametrize("console", CONSOLES)
def test_examples_print_what_the_page_says(
    site: Path, console: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each example prints exactly the output that the page shows. If the page shows an exit status,
    the example ends with this status."""
    shown, status = "", 0
    for line in console.splitlines():
        if line == "$ echo $?":
            shown += f"{line}\n{status}\n"
        elif line.startswith("$ skidway "):
            status = main(shlex.split(line)[2:])
            captured = capsys.readouterr()
            shown += f"{line}\n{captured.out}"
    assert shown == console


def test_the_files_are_good(site: Path) -> None:
    """`audit validate` reports that the page's files are good."""
    assert main(["audit", "validate", "--config", "audit.yml"]) == 0
