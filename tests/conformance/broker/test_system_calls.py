"""The kernel sends fetched batches from the file to the socket. Of these batches, the broker itself
reads at most some headers. The tests trace the broker's system calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.kafka.client import Client, NewTopic
from support.batches import sized
from support.brokers import SkidwayBroker
from support.peers import provide
from support.processes import Program, eventually
from support.raw_client import RawClient

pytestmark = pytest.mark.foreign
BATCH_BYTES = 100_000
BATCHES = 200
READING = "read,readv,pread64,preadv,preadv2,mmap,splice,copy_file_range"
CALL = re.compile(r"(?P<call>\w+)\(.*?<(?P<file>/[^>]*\.log)>.* = (?P<result>\d+)$")


@pytest.fixture
def broker(own_broker: SkidwayBroker) -> SkidwayBroker:
    return own_broker.start()


@pytest.fixture
def calls(broker: SkidwayBroker, tmp_path: Path) -> Iterator[Path]:
    """Yields a trace file that lists every system call by which the broker reads or sends a file
    during the test."""
    path = tmp_path / "calls"
    strace = provide("strace", ["strace"], "strace sees what the broker reads")
    command = [strace, "-f", "-y", "-s", "0", "-o", str(path), "-e", f"trace=sendfile,{READING}"]
    program = Program([*command, "-p", str(broker.program.pid)], tmp_path / "strace.out")
    program.start().wait_until(lambda: "attached" in program.output())
    yield path
    program.stop()


def test_fetched_batches_are_never_read(broker: SkidwayBroker, calls: Path) -> None:
    """The broker sends all fetched bytes with sendfile. It reads only some batch headers in the
    log, to find the position where a batch begins."""
    with Client(broker.address) as client:
        assert client.create_topics([NewTopic("logs", 1, 1)]) == {"logs": None}
    with RawClient(broker.port) as raw:
        for _ in range(BATCHES):
            assert raw.produce("logs", sized(BATCH_BYTES)).error_code == 0
        produced = len(calls.read_text())
        offset = fetched = 0
        while offset < BATCHES:
            answer = raw.fetch("logs", offset, max_bytes=1 << 20)
            assert answer.error_code == 0
            fetched += len(answer.records)
            offset += len(answer.records) // BATCH_BYTES
    assert fetched == BATCHES * BATCH_BYTES
    sent = read = 0

    def seen() -> bool:
        nonlocal sent, read
        found = [CALL.match(line.partition(" ")[2].strip()) for line in
                 calls.read_text()[produced:].splitlines()]  # fmt: skip
        sent = sum(int(each["result"]) for each in found if each and each["call"] == "sendfile")
        others = [each for each in found if each and each["call"] != "sendfile"]
        assert {each["call"] for each in others} <= {"pread64"}
        assert all(int(each["result"]) <= 8192 for each in others)
        read = sum(int(each["result"]) for each in others)
        return sent >= fetched

    eventually(seen)
    assert sent == fetched
    assert read < fetched / 100
