"""How much memory the agent needs depends on the number of lines that it handles at a time, and not
only on their bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

TESTS = Path(__file__).parents[2]
MIB = 1 << 20
MOST_KIB = 350 * 1024

OPTIONAL = ".?" + "".join(f"(?P<g{number}>y)?" for number in range(60))

PARSERS = {
    "regex": {"parser": {"type": "regex", "pattern": r"(?P<number>\d+) (?P<rest>.*)"}},
    "logfmt": {"parser": {"type": "logfmt", "columns": ["level"]}},
    "csv": {"parser": {"type": "csv", "columns": ["one", "two"]}},
    "json": {"parser": {"type": "json"}},
    "groups": {"parser": {"type": "regex", "pattern": OPTIONAL}},
    "constant": {"parser": {"type": "raw"}, "fields": {"env": "x" * 16_000}},
    "columns": {"parser": {"type": "logfmt", "columns": [f"c{n}" for n in range(1_000)]}},
}
LINES = (b"\n", b"a\n", b"\r\n", b"\0")

CHILD = """
import sys
from support.agent_world import Brokers, World, settings
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.settings import (SourceSettings)

class Forgetful(Brokers):
    count = 0
    def append(self, sent):
        if sent.base < 0:
            sent.base, self.count = self.count, self.count + sent.encoded.count
        return sent.base
    def refuse(self, sent):
        return False

parser, fields, lines = eval(sys.argv[1])
schema = '{"type": "record", "name": "a", "fields": [{"name": "a", "type": "string"}]}'
schema = schema if parser["type"] == "json" else None
source = SourceSettings(
    topic="logs", paths=["/log/*"], parser=ParserSettings(**parser), schema=schema, fields=fields
)
world = World(settings(source, compression_type="none"))
partitions, world.brokers = world.brokers.partitions, Forgetful()
world.brokers.partitions = partitions
for at, line in enumerate(lines):
    world.files.append(f"/log/{at}", line * (MIB // len(line)))
world.start()
world.tick()
while any(each["pending"] for each in world.ledger()):
    world.tick()
names = ("rejected", "acknowledged", "filtered")
print(sum(each[name] for each in world.ledger() for name in names))
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize("parser", PARSERS)
def test_short_lines_need_no_more_memory_than_the_unit_allows(parser: str) -> None:
    """While the agent reads hundreds of thousands of the shortest lines, accepted, rejected or left
    out, it needs far less memory than its unit allows."""
    asked = PARSERS[parser]
    mib = MIB // (64 if parser in ("constant", "columns") else 4)  # records are large
    task = repr((asked["parser"], asked.get("fields", {}), LINES))
    done = subprocess.run(
        [sys.executable, "-c", CHILD.replace("MIB", str(mib)), task],
        env={**os.environ, "PYTHONPATH": str(TESTS)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    size, peak_kib = map(int, done.stdout.split()[-2:])
    assert size == len(LINES) * mib
    assert peak_kib <= MOST_KIB


TRY = """
import sys
from skidway.cli import main
main(["agent", *sys.argv[1:]])
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


@pytest.mark.parametrize("line", [b"\n", b"x\n"])
def test_trying_short_lines_needs_no_more_memory_than_reading_them(
    line: bytes, tmp_path: Path
) -> None:
    """`agent test` and `agent guess` of a MiB of the shortest lines need no more memory than the
    agent itself, and `test` says that it tried the first lines."""
    log, config = tmp_path / "a.log", tmp_path / "agent.yml"
    log.write_bytes(line * (MIB // len(line)))
    parser = {"type": "regex", "pattern": OPTIONAL}
    settings = {
        "schema.registry.url": "http://127.0.0.1:1",
        "bootstrap.servers": "127.0.0.1:1",
        "state.dir": str(tmp_path),
        "sources": [{"topic": "a", "paths": [str(log)], "parser": parser}],
    }
    config.write_text(yaml.safe_dump(settings))
    for arguments in (["test", str(log), "--config", str(config)], ["guess", str(log)]):
        done = subprocess.run(
            [sys.executable, "-c", TRY, *arguments], capture_output=True, text=True, check=True
        )
        assert int(done.stdout.split()[-1]) <= MOST_KIB
        if arguments[0] == "test":
            assert (
                "Only the first 32,768 lines of the file were tried." in done.stdout + done.stderr
            )
