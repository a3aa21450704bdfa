"""Tests what goes offline, and what a client gets, when a system call fails with EIO.

tests/crash/broker/test_device_errors.py tests the same cases with a real file system and a real
broker.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skidway.broker.log import checkpoints, names
from skidway.broker.log.config import LogConfig
from skidway.broker.log.log_manager import LogManager
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.messages import encode
from skidway.kafka.types import TopicPartition
from support.batches import batch
from support.broker_core import BrokerCore, broker_core
from support.clock import ManualClock

LOGS = TopicPartition("logs", 0)


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    """A broker with a topic of three records."""
    with broker_core(tmp_path) as made:
        wanted = CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),))
        assert made.connect().ask(request_frame(wanted.API, 5, 1, "test", encode(wanted, 5)))
        assert [produced(made) for _ in range(3)] == [0, 0, 0]
        yield made


def produced(core: BrokerCore, acks: int = -1) -> int:
    """Produces one batch, and returns the error code that the batch gets."""
    buffers = [produce.TopicBuffers("logs", 0, (bytes(batch(b"x")),))]
    request = produce.write_request(1, "t", 7, acks, 1000, buffers)
    answer = core.connect().ask(b"".join(bytes(each) for each in request))
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.PRODUCE, 7)
    return produce.parse_response(body, 7).results[0].error_code


def fetched(core: BrokerCore, offset: int) -> int | None:
    """Fetches from `offset` on. Returns the error code in the answer, or None if the broker closed
    the connection before the whole answer was sent."""
    wanted = [fetch_request.FetchTarget("logs", 0, offset, 1)]
    request = fetch_request.Fetch(wanted, 0, 1, 1 << 20)
    answer = core.connect().ask(fetch_request.write_request(1, "t", 11, request))
    if answer is None:
        return None
    body = response_body(memoryview(answer), ApiKey.FETCH, 11)
    return fetch_response.parse_response(body, 11).partitions[0].error_code


def fail(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Makes the system call `call` fail with EIO from now on."""

    def failing(*_: object) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, call, failing)


def is_offline(core: BrokerCore) -> bool:
    """Returns whether the broker's log directory is offline and all its partitions refuse reads and
    writes, even after the device works again."""
    codes = {produced(core), produced(core, acks=1), fetched(core, 0)}
    assert codes in ({0}, {ErrorCode.KAFKA_STORAGE_ERROR})
    assert (LOGS in core.broker.logs.stopped) == (0 not in codes)
    return core.broker.logs.directories[0].offline is not None and 0 not in codes


@pytest.mark.parametrize("acks", [1, -1])
def test_a_write_error_takes_the_directory_offline(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, acks: int
) -> None:
    """After an EIO on a write, the batch is refused, the file has none of its bytes, and the
    directory goes offline."""
    path = tmp_path / "logs-0" / names.segment_file(0, names.LOG)
    before = path.read_bytes()
    fail(monkeypatch, "pwritev")
    assert produced(core, acks) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert is_offline(core)
    assert path.read_bytes() == before


def test_a_read_error_before_an_answer_takes_the_directory_offline(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a read fails with EIO while a fetch looks for its first batch, the fetch gets
    KAFKA_STORAGE_ERROR, and the directory goes offline."""
    fail(monkeypatch, "pread")
    assert fetched(core, 1) == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert is_offline(core)


def test_a_read_error_while_an_answer_is_sent_takes_the_directory_offline(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If reading records fails with EIO after the head of the answer has been sent, the broker
    closes the connection, and the directory goes offline."""
    fail(monkeypatch, "sendfile")
    assert fetched(core, 0) is None
    assert core.closed_for("unreadable") == 1
    monkeypatch.undo()
    assert is_offline(core)


def test_a_client_that_is_gone_is_no_error_of_the_device(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An EPIPE from sendfile means that the client has gone, and does not take the directory
    offline."""

    def gone(*_: object) -> Any:
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    monkeypatch.setattr(os, "sendfile", gone)
    assert fetched(core, 0) is None
    monkeypatch.undo()
    assert not is_offline(core)


def test_a_read_error_in_recovery_takes_the_directory_offline(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If a read fails with EIO during recovery, the broker does not truncate the log, and the log's
    directory goes offline."""
    path = tmp_path / "logs-0" / names.segment_file(0, names.LOG)
    before = path.read_bytes()
    core.broker.logs.release()
    logs = LogManager(ManualClock(), core.broker.partitions._worker)
    logs.open_directories([tmp_path])
    ((partition, found),) = logs.discover()
    fail(monkeypatch, "pread")
    logs.load(partition, found, LogConfig())
    monkeypatch.undo()
    assert logs.directories[0].offline is not None
    assert "Input/output error" in logs.stopped[LOGS]
    assert path.read_bytes() == before
    assert checkpoints.read_partition_metadata(path.parent) == found.topic_id
    logs.release()
