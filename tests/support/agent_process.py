"""Runs `skidway agent run` as a process, and reads the records that agents have sent."""

from __future__ import annotations

import collections
import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skidway.agent.commands import state as ledger
from skidway.audit.counts import marks
from skidway.audit.topic import topic
from skidway.clock import SystemClock
from skidway.errors import StateRefused
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.columns import decode
from skidway.settings.document import yaml_text
from support import telemetry
from support.agent_world import datum_text
from support.processes import Program, call_skidway, free_port, skidway


class AgentProcess:
    """One agent with its own state directory. By default, the agent's intervals are short, so that
    tests need not wait long."""

    def __init__(
        self, folder: Path, broker: str, registry: str, sources: Sequence[Mapping[str, Any]]
    ) -> None:
        self.folder = folder
        self.metrics_port = free_port()
        self.config = folder / "agent.yml"
        self.state = folder / "state"
        self.settings: dict[str, Any] = {
            "bootstrap.servers": broker,
            "schema.registry.url": registry,
            "state.dir": str(self.state),
            "metrics.listener": f"127.0.0.1:{self.metrics_port}",
            "idle.flush.ms": 200,
            "reconcile.interval.ms": 500,
            "seal.interval.ms": 500,
            "close.rotated.ms": 1000,
            "sources": [dict(source) for source in sources],
        }
        self.program = Program(self.command(), folder / "agent.out")
        self.tree: Path | None = None  # the agent's source tree; None: this source tree

    def command(self) -> list[str]:
        self.config.write_text(yaml_text(self.settings))
        return skidway("agent", "run", "--config", str(self.config))

    def start(self, *, ready: bool = True) -> AgentProcess:
        env = None if self.tree is None else {"PYTHONPATH": str(self.tree)}
        self.program = Program(self.command(), self.folder / "agent.out", env=env, cwd=self.tree)
        self.program.start()
        if ready:
            self.program.wait_until(self.healthy)
        return self

    def healthy(self) -> bool:
        return telemetry.is_healthy(self.metrics_port)

    def health(self) -> dict[str, Any]:
        """Returns the JSON document that the agent's /health answers, even if the HTTP status is
        503. Returns an empty dict if the agent does not answer."""
        return telemetry.health(self.metrics_port)[1]

    def ledger(self) -> list[dict[str, Any]]:
        done = call_skidway("agent", "state", "show", "--json", "--config", str(self.config))
        if done.returncode:
            return []
        return list(json.loads(done.stdout)["files"])

    def settled(self, sizes: Mapping[Path, int]) -> bool:
        """Returns whether each file has at least the number of settled bytes that `sizes` gives for
        it. A byte is settled if it is acknowledged, rejected, left out by a rule, lost or
        uncertain.

        This method reads the state database directly, because tests call it often, and the command
        `skidway agent state show` takes a second.
        """
        done: collections.Counter[str] = collections.Counter()
        for file in self._files_in_state():
            done[file["path"]] += file["bytes"] - file["pending"]
        return all(done[str(path)] >= size for path, size in sizes.items())

    def has_pending(self) -> bool:
        """Returns whether, according to the agent's state, a file has bytes that are not settled
        yet (see `settled`), or whether the state has no file."""
        files = self._files_in_state()
        return not files or any(file["pending"] for file in files)

    def _files_in_state(self) -> list[dict[str, Any]]:
        try:
            return list(ledger.show(self.state)["files"])
        except (StateRefused, sqlite3.Error):
            return []  # the agent has not run yet, or was killed before its state was complete


def rows(broker: str, name: str) -> Iterator[tuple[str, int, int]]:
    """Yields the line, the file id and the position of the first byte of each record in the topic
    `name`. In this topic, each record must contain a whole line as its only field. Leaves out
    repeated records, as a loader does."""
    for _, keep, line, file, first in records(broker, name):
        if keep:
            yield line, file, first


def records(broker: str, name: str) -> Iterator[tuple[int, bool, str, int, int]]:
    """Yields a tuple for every record of the topic `name`. The tuple contains the partition, a
    flag, the line, the file id, and the position of the first byte. The flag is True if a loader
    would keep the record, and False if the record is a repeat."""
    with Client(broker) as client, contextlib.closing(_Reader(client, name)) as reader:
        yield from reader.read()


def values(broker: str, name: str) -> Iterator[bytes]:
    """Yields the value of each record in the topic `name`. Leaves out repeated records, as a loader
    does."""
    with Client(broker) as client:
        ends = {tp: end for tp, (_, end) in topic.bounds(client, [name]).items() if end}
        fetcher = Fetcher(client)
        known: dict[Any, dict[tuple[int, int], int]] = {tp: {} for tp in ends}
        for tp in ends:
            fetcher.seek(tp, 0)
        while any(fetcher.positions[tp] < end for tp, end in ends.items()):
            for part in fetcher.poll(500):
                for raw in part.batches:
                    batch = decode(raw)
                    o = batch.origins
                    assert o is not None
                    walked = marks.walk(o.agent, o.file, o.first, o.length, known[part.tp])
                    marks.advance(known[part.tp], walked.highest)
                    assert not walked.straddle.any()
                    for keep, value in zip(walked.keep, batch.values.to_pylist(), strict=True):
                        if keep:
                            yield value


class _Reader:
    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name = client, name

    def read(self) -> Iterator[tuple[int, bool, str, int, int]]:
        ends = {tp: end for tp, (_, end) in topic.bounds(self._client, [self._name]).items()}
        fetcher = Fetcher(self._client)
        known: dict[Any, dict[tuple[int, int], int]] = {tp: {} for tp in ends}
        todo = {tp for tp, end in ends.items() if end}
        for tp in todo:
            fetcher.seek(tp, 0)
        clock = SystemClock()
        deadline = clock.monotonic() + 60
        while todo and clock.monotonic() < deadline:
            for part in fetcher.poll(500):
                for raw in part.batches:
                    yield from self._batch(part.tp.partition, raw, known[part.tp])
                if fetcher.positions[part.tp] >= ends[part.tp]:
                    todo.discard(part.tp)
        assert not todo, f"{sorted(todo)} did not come"

    def _batch(
        self, partition: int, raw: memoryview, known: dict[tuple[int, int], int]
    ) -> Iterator[tuple[int, bool, str, int, int]]:
        batch = decode(raw)
        o = batch.origins
        assert o is not None
        walked = marks.walk(o.agent, o.file, o.first, o.length, known)
        marks.advance(known, walked.highest)
        assert not np.any(walked.straddle)
        keep = walked.keep.tolist()
        files, firsts = o.file.tolist(), o.first.tolist()
        for index, value in enumerate(batch.values.to_pylist()):
            yield partition, keep[index], datum_text(value), files[index], firsts[index]

    def close(self) -> None:
        """Does nothing. `contextlib.closing` in `records` needs this method."""
