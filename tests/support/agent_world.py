"""The real agent on a simulated host, cluster and clock, all in memory.

`Files` is a host whose files can be written, renamed, truncated, deleted, and cut off as in a power
loss. `Brokers` keeps a log of records for each partition. The batches of a connection arrive in
order. They may arrive late, even after the agent that sent them was killed. `World` starts and
kills agents. All of them use the same SQLite database, in which only committed data survives a
kill.
"""

from __future__ import annotations

import collections
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from skidway.agent.batches.source_recipes import derived_schema, recipe_of
from skidway.agent.cluster.destinations import Cluster as ClusterName
from skidway.agent.cluster.destinations import Destination
from skidway.agent.commands.state import entry
from skidway.agent.delivery.read_back import Rows
from skidway.agent.delivery.search import Hole
from skidway.agent.files.host import Scan, Status
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.plain_sizes import not_yet
from skidway.agent.loop.loop import Loop
from skidway.agent.loop.parts import Surroundings
from skidway.agent.recipe import Schema, TopicSnapshot
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.agent.state.database import StateDatabase, create_tables
from skidway.agent.values.found import DAMAGED, NOBODY, UNMEASURED, FileKey, Found
from skidway.audit.topic import messages
from skidway.kafka.batch import EncodedBatch, seal
from skidway.kafka.client import BufferFull, Delivery, Drained
from skidway.kafka.columns import decode
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas.single_object import schema_text
from support.clock import ManualClock

LIMIT_BYTES = 1_048_588
DAMAGED_BYTES = b"half a compressed file"


# --- files ------------------------------------------------------------------------------------


@dataclass
class MemoryFile:
    inode: int
    data: bytearray = field(default_factory=bytearray)
    durable: int = 0
    names: set[str] = field(default_factory=set)
    changed_ns: int = 0
    born_ns: int | None = None
    unreadable: bool = False
    owner: int = 0
    # None if the file is not compressed. Otherwise its uncompressed size: -1 if the size is not
    # known yet, and -2 if the file is damaged.
    plain_size: int | None = None


class MemoryHandle:
    def __init__(self, host: Files, file: MemoryFile) -> None:
        self._host, self._file = host, file

    def read(self, count: int, position: int) -> bytes:
        return bytes(self._file.data[position : position + count])

    def status(self) -> Status:
        file = self._file
        return Status(
            FileKey(self._host.device, file.inode), len(file.data), len(file.names),
            file.changed_ns, file.born_ns,
        )  # fmt: skip

    def where(self) -> str:
        return min(self._file.names, default="")

    def close(self) -> None:
        self._host.open_count -= 1


class Files:
    """A simulated host with files in memory. Implements agent.files.host.Host."""

    def __init__(self, clock: ManualClock) -> None:
        self.by_path: dict[str, MemoryFile] = {}
        self.links: dict[str, str] = {}
        self.device = 1
        self.is_mounted = True  # if False, the mount point is an empty directory on another device
        self.may_search = True  # if False, names can be listed but files cannot be examined
        self.knows_births = True
        self.open_count = 0
        self._clock = clock
        self._inode = self._tick = 0
        self._directories: dict[str, int] = {}

    # The following methods change files as programs and operators do.

    def append(self, path: str, data: bytes) -> MemoryFile:
        file = self.by_path.get(path)
        if file is None:
            self._inode += 1
            file = self.by_path[path] = MemoryFile(self._inode, names={path})
            file.born_ns = self._now_ns() if self.knows_births else None
            self._moved(path)
        self.write(file, data)
        return file

    def write(self, file: MemoryFile, data: bytes) -> None:
        """Appends to a file that a program has open, even if the file has no name any more."""
        file.data += data
        self._changed(file)

    def hide(self, path: str) -> None:
        """Links a file into a directory in which nobody looks, and removes its name `path`."""
        self.by_path[path].names.add("/elsewhere/kept")
        self.delete(path)

    def rename(self, old: str, new: str) -> None:
        self.delete(new)
        file = self.by_path.pop(old)
        self.by_path[new] = file
        file.names = {new}
        self._moved(old)
        self._moved(new)

    def delete(self, path: str) -> None:
        file = self.by_path.pop(path, None)
        if file is not None:
            file.names.discard(path)
            self._moved(path)

    def compress(self, path: str, ending: str = ".gz", *, keeps_time: bool = True) -> MemoryFile:
        """Compresses a file. `keeps_time` says whether the compressed file keeps the modification
        time, as with gzip and logrotate, or gets a new one, as with log4j2."""
        plain = self.by_path[path]
        self.delete(path + ending)
        packed = self.append(path + ending, bytes(plain.data))
        packed.plain_size = UNMEASURED
        if keeps_time:
            packed.changed_ns = plain.changed_ns
        self.delete(path)
        return packed

    def link(self, path: str, target: str) -> None:
        """Makes a symbolic link at `path` to `target`."""
        self.links[path] = target
        self._moved(path)

    def reuse_last_inode(self) -> None:
        """Gives the inode of the newest file to the next new file. The newest file must already be
        deleted."""
        self._inode -= 1

    def truncate(self, path: str, size: int = 0) -> None:
        file = self.by_path[path]
        del file.data[size:]
        self._changed(file)

    def overwrite(self, path: str, at: int, data: bytes) -> None:
        file = self.by_path[path]
        file.data[at : at + len(data)] = data
        self._changed(file)

    def sync(self) -> None:
        for file in self.by_path.values():
            file.durable = len(file.data)

    def _changed(self, file: MemoryFile) -> None:
        file.changed_ns = self._now_ns()

    def _moved(self, path: str) -> None:
        self._directories[path.rpartition("/")[0]] = self._now_ns()

    def _now_ns(self) -> int:
        """Returns the time of a change that happens now. No two changes get the same time."""
        self._tick += 1
        return self._clock.time_ms() * 1_000_000 + self._tick

    # The following methods implement the interface agent.files.host.Host.

    def open(self, path: str) -> MemoryHandle:
        file = self.by_path.get(self.links.get(path, path))
        if file is None or not self.is_mounted:
            raise FileNotFoundError(2, "No such file or directory", path)
        if file.unreadable or not self.may_search:
            raise PermissionError(13, "Permission denied", path)
        if file.plain_size == UNMEASURED:
            file.plain_size = len(file.data) if file.data != DAMAGED_BYTES else DAMAGED
            raise not_yet()
        if file.plain_size == DAMAGED:
            raise OSError(5, "it cannot be decompressed")
        self.open_count += 1
        return MemoryHandle(self, file)

    def scan(self, patterns: Sequence[Pattern]) -> Scan:
        meant = [
            path
            for path in sorted([*self.by_path, *self.links])
            if any(pattern.means(path) for pattern in patterns)
        ]
        if not self.is_mounted:
            return Scan()
        if not self.may_search:
            meant += [each.text for each in patterns if "*" not in each.text]
            return Scan([], [(path, "Permission denied") for path in dict.fromkeys(meant)])
        found = [self.look(path) for path in meant]
        dead = [
            (path, "it is a link that leads nowhere")
            for path, target in self.links.items()
            if target not in self.by_path and any(pattern.means(path) for pattern in patterns)
        ]
        return Scan([each for each in found if each], dead, [path for path, _ in dead])

    def look(self, path: str) -> Found | None:
        real_path = self.links.get(path, path)
        file = self.by_path.get(real_path)
        if file is None or not self.is_mounted or not self.may_search:
            return None
        key = FileKey(self.device, file.inode)
        size = len(file.data) if file.plain_size is None else file.plain_size
        whose = file.owner, path in self.links
        return Found(path, key, size, file.changed_ns, file.born_ns, real_path, *whose)

    def lender(self, path: str) -> int | None:
        if path in self.links:
            return 0
        return None if self.look(path) else NOBODY

    def resolve(self, directory: str) -> str:
        return directory

    def device_of(self, directory: str) -> int:
        return self.device if self.is_mounted else 0

    def find(self, directory: str, key: FileKey) -> str | None:
        if not self.is_mounted:
            return None
        if not self.may_search:
            raise PermissionError(13, "Permission denied", directory)
        for path, file in self.by_path.items():
            if path.rpartition("/")[0] != directory:
                continue
            if FileKey(self.device, file.inode) == key:
                return path
        return None

    def list(self, directory: str) -> list[tuple[str, int]]:
        if not self.is_mounted:
            return []
        split = ((path.rpartition("/"), file) for path, file in self.by_path.items())
        files = [(name, file.inode) for (above, _, name), file in split if above == directory]
        prefix = directory.rstrip("/") + "/"
        below = (path[len(prefix) :] for path in self.by_path if path.startswith(prefix))
        names = {path.partition("/")[0] for path in below if "/" in path}
        return files + [(name, 0) for name in sorted(names)]

    def changed(self, directory: str) -> int:
        if not self.is_mounted:
            return 1
        if not self.may_search:
            raise PermissionError(13, "Permission denied", directory)
        if directory not in self._directories:
            raise FileNotFoundError(2, "No such file or directory", directory)
        return self._directories[directory]


# --- a cluster --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Record:
    value: bytes
    key: bytes | None
    timestamp: int
    agent: int
    file: int
    first: int
    length: int

    @property
    def end(self) -> int:
        return self.first + self.length


@dataclass(eq=False)
class Sent:
    """A batch that the agent has sent with one producer id. `base` is the batch's base offset in
    its partition's log, or -1 as long as no attempt to send the batch has arrived."""

    tp: TopicPartition
    encoded: EncodedBatch
    token: object
    attempts: int = 0
    base: int = -1


class Brokers:
    """Simulated brokers: the log of each partition, and the batches that may still arrive late over
    closed connections."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, list[Record]] = collections.defaultdict(list)
        self.partitions: dict[str, int] = {}
        self.late: dict[TopicPartition, list[Sent]] = collections.defaultdict(list)
        self.starts: dict[TopicPartition, int] = {}
        self.away = False  # if True, `MemoryLogs.poll` returns no records
        self.refuses: Callable[[Record], bool] = lambda record: False

    def append(self, sent: Sent) -> int:
        """Appends a batch, unless it has already arrived under the same producer id. Returns the
        batch's base offset."""
        if sent.base < 0:
            log = self.logs[sent.tp]
            sent.base = len(log)
            log += records_of(sent.encoded)
        return sent.base

    def refuse(self, sent: Sent) -> bool:
        """Returns whether the brokers refuse a batch because of one of its records."""
        return any(self.refuses(record) for record in records_of(sent.encoded))

    def arrive_late(self, tp: TopicPartition) -> None:
        """Lets the next batch arrive that was sent to this partition over a closed connection.

        If the brokers refuse this batch, the batches after it are dropped, because they are out of
        sequence.
        """
        sent = self.late[tp].pop(0)
        if self.refuse(sent):
            self.late[tp].clear()
        else:
            self.append(sent)

    def records(self, topic: str) -> list[Record]:
        return [r for tp in sorted(self.logs) if tp.topic == topic for r in self.logs[tp]]


def records_of(encoded: EncodedBatch) -> list[Record]:
    rows = decode(memoryview(seal(encoded)))
    o = rows.origins
    assert o is not None
    columns = zip(
        rows.values.to_pylist(), rows.keys.to_pylist(), rows.timestamps.tolist(), o.agent.tolist(),
        o.file.tolist(), o.first.tolist(), o.length.tolist(), strict=True,
    )  # fmt: skip
    return [Record(*row) for row in columns]


class Producer:
    """Implements agent.delivery.outbound.Sink. Its cluster is `Brokers`. The test decides when
    batches arrive and are answered. `room` limits the number of batches that are not answered yet,
    and `buffer_memory` limits the sum of their sizes in bytes."""

    def __init__(self, brokers: Brokers, room: int = 1_000) -> None:
        self._brokers = brokers
        self._room = room
        self.buffer_memory = 1 << 30
        self.sent: dict[TopicPartition, list[Sent]] = collections.defaultdict(list)
        self.appended: list[tuple[Sent, int]] = []

    @property
    def pending_count(self) -> int:
        return sum(map(len, self.sent.values())) + len(self.appended)

    @property
    def has_room(self) -> bool:
        kept = [sent for batches in self.sent.values() for sent in batches]
        kept += [sent for sent, _ in self.appended]
        size = sum(sent.encoded.size_bytes for sent in kept)
        return len(kept) < self._room and size < self.buffer_memory

    def send(self, tp: TopicPartition, encoded: EncodedBatch, token: object) -> None:
        if not self.has_room:
            raise BufferFull("full")
        self.sent[tp].append(Sent(tp, encoded, token))

    def arrive(self, tp: TopicPartition) -> list[Delivery]:
        """Lets the oldest batch of a partition reach the broker. If the broker appends it, the
        answer waits in `appended`, and this method returns an empty list.

        If the broker refuses the batch, this method returns the acknowledgements of the earlier
        batches, the error of the refused batch, and the later batches. The later batches are
        returned as drained: they were not delivered, and the agent sends them again.
        """
        sent = self.sent[tp].pop(0)
        sent.attempts += 1
        if not self._brokers.refuse(sent):
            self.appended.append((sent, self._brokers.append(sent)))
            return []
        found = [_acknowledged(*each) for each in self._take_appended(tp)]
        error = KafkaError(ErrorCode.INVALID_RECORD)
        found.append(Delivery(sent.token, tp, -1, error, sent.attempts))
        behind = self.sent.pop(tp, [])
        found += [Delivery(each.token, tp, -1, Drained(tp), each.attempts) for each in behind]
        return found

    def interrupt(self, tp: TopicPartition, survivors: int = 0, *, is_known: bool = True) -> None:
        """Breaks the connection over which batches for this partition are sent. Batches without an
        answer are sent again in their order.

        `survivors` is the number of batches of the old connection that may still arrive late.
        `is_known` says whether the batches keep their producer id. If the batches keep this id, and
        a batch that has already arrived is sent again, the broker recognizes the batch as a
        duplicate.
        """
        under_way = self.sent[tp][:survivors]
        for sent in under_way:
            sent.attempts += 1
        self._brokers.late[tp] += under_way
        again = [sent for sent, _ in self._take_appended(tp)] + self.sent[tp]
        if not is_known:
            again = [replace(sent, base=-1) for sent in again]
        self.sent[tp] = again

    def _take_appended(self, tp: TopicPartition) -> list[tuple[Sent, int]]:
        found = [each for each in self.appended if each[0].tp == tp]
        self.appended = [each for each in self.appended if each[0].tp != tp]
        return found

    def answer(self) -> list[Delivery]:
        """Removes and returns the oldest acknowledgement, as a list. The list is empty if there is
        none."""
        if not self.appended:
            return []
        return [_acknowledged(*self.appended.pop(0))]

    def deliver_all(self, away: str = "") -> list[Delivery]:
        """Lets all batches arrive at the brokers, except those of the topic `away`. Returns the
        answers to all batches that have arrived."""
        found: list[Delivery] = []
        while any(self.sent[tp] for tp in self._there(away)) or self.appended:
            for tp in self._there(away):
                while self.sent.get(tp):
                    found += [*self.answer_all(), *self.arrive(tp)]
            found += self.answer_all()
        return found

    def _there(self, away: str) -> list[TopicPartition]:
        return [tp for tp in self.sent if tp.topic != away]

    def answer_all(self) -> list[Delivery]:
        found: list[Delivery] = []
        while self.appended:
            found += self.answer()
        return found

    def die(self, survivors: int) -> None:
        """Kills the producer together with its agent. Up to `survivors` batches for each partition
        may still arrive."""
        for tp, batches in self.sent.items():
            self._brokers.late[tp] += batches[:survivors]


def _acknowledged(sent: Sent, base: int) -> Delivery:
    return Delivery(sent.token, sent.tp, base, None, sent.attempts)


class MemoryLogs:
    """Implements agent.delivery.search.Logs, by which the agent reads partitions to look for its
    records. Its cluster is `Brokers`."""

    def __init__(self, brokers: Brokers, at_once: int = 3) -> None:
        self._brokers = brokers
        self._at_once = at_once
        self._positions: dict[TopicPartition, int] = {}
        self._told: dict[TopicPartition, int] = {}
        self.begun: list[dict[TopicPartition, int]] = []
        self.silent: set[TopicPartition] = set()

    def begin(self, floors: Mapping[TopicPartition, int]) -> None:
        self.begun.append(dict(floors))
        self._positions, self._told = dict(floors), {}

    def poll(self) -> list[Rows | Hole]:
        """Returns the next few records of each partition. Returns nothing while the brokers cannot
        be reached."""
        found: list[Rows | Hole] = []
        if self._brokers.away:
            return found
        for tp, position in self._positions.items():
            if tp in self.silent:
                continue
            log = self._brokers.logs[tp]
            start = self._brokers.starts.get(tp, 0)
            if position < start:
                found.append(Hole(tp, f"offsets below {start} expired", is_over=False))
                position = start
            records = log[position : position + self._at_once]
            self._positions[tp] = position + len(records)
            self._told[tp] = len(log)
            if records:
                names = ("agent", "file", "first", "length", "timestamp")
                columns = [np.array([getattr(r, n) for r in records], np.int64) for n in names]
                found.append(Rows(tp, *columns))
        return found

    def ask_anew(self) -> None:
        self._told = {}

    def read_up(self) -> set[TopicPartition]:
        return {tp for tp, at in self._positions.items() if at >= self._told.get(tp, at + 1)}

    def end(self) -> None:
        self._positions = {}


# --- an agent ---------------------------------------------------------------------------------


def settings(*sources: SourceSettings, **others: Any) -> AgentSettings:
    """Returns settings with short intervals, so that tests need not wait long. A test can override
    single settings."""
    fast: dict[str, Any] = {
        "checkpoint_interval_ms": 1,
        "idle_flush_ms": 1_000,
        "close_rotated_ms": 5_000,
        "linger_ms": 0,
        "reconcile_interval_ms": 100,
        "seal_interval_ms": 100,
        "audit_interval_ms": 10,
        "heartbeat_interval_ms": 3_600_000,
        "audit_bucket_ms": 1_000,
        "read_back_wait_ms": 1_000,
    }
    return AgentSettings(
        bootstrap_servers="nowhere:1",
        schema_registry_url="http://nowhere:1",
        state_dir="/nowhere",
        sources=list(sources),
        **{**fast, **others},
    )


def raw(topic: str = "logs", *paths: str, **others: Any) -> SourceSettings:
    return SourceSettings(topic=topic, paths=list(paths) or ["/log/*.log"], **others)


class World:
    """A simulated host and cluster, an agent's state, and at most one running agent."""

    def __init__(self, configured: AgentSettings, *, partitions: int = 1) -> None:
        self.settings = configured
        self.clock = ManualClock()
        self.files = Files(self.clock)
        self.brokers = Brokers()
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        create_tables(self.connection, "machine")
        self.published: list[messages.Message] = []
        self.loop: Loop | None = None
        self.producer = Producer(self.brokers)
        self.logs = self.refused_logs = MemoryLogs(self.brokers)
        self.limit_bytes = LIMIT_BYTES
        self.cluster_id, self.topic_ids = "cluster-1", "id"
        for source in configured.sources:
            self.brokers.partitions.setdefault(source.topic, partitions)
            self.brokers.partitions.setdefault(source.rejected_topic, 1)

    @property
    def agent(self) -> Loop:
        assert self.loop is not None
        return self.loop

    def destinations(self) -> list[Destination]:
        cluster = ClusterName("main", self.cluster_id)
        found = []
        for source in self.settings.sources:
            topics = [
                TopicSnapshot(name, self.brokers.partitions[name], self.limit_bytes)
                for name in (source.topic, source.rejected_topic)
            ]
            schema = source.schema or derived_schema(source)
            recipe = recipe_of(
                source, *topics, Schema(1, schema), Schema(2, schema_text("Rejected")),
                self.settings.batch_size,
            )  # fmt: skip
            ids = [f"{self.topic_ids}-{topic.name}" for topic in topics]
            sources = [
                Source(cluster.name, cluster.id, topic.name, id_)
                for topic, id_ in zip(topics, ids, strict=True)
            ]
            found.append(Destination(source, recipe, *sources))
        return found

    def start(self) -> Loop:
        self.producer = Producer(self.brokers)
        self.producer.buffer_memory = self.settings.buffer_memory
        self.logs, self.refused_logs = MemoryLogs(self.brokers), MemoryLogs(self.brokers)
        logs = iter((self.logs, self.refused_logs))
        self.loop = Loop(
            self.settings,
            StateDatabase(self.connection),
            Surroundings(
                self.files, "host-1", self.clock, self.producer,
                ClusterName("main", self.cluster_id), lambda: next(logs),
            ),
            self.destinations(),
        )  # fmt: skip
        return self.loop

    def reload(self, configured: AgentSettings) -> None:
        """Reloads the running agent with other settings. As in the real program, each partition of
        a new topic gets its present end as its floor. A floor is the offset from which the agent
        searches for its own records."""
        self.settings = configured
        for source in configured.sources:
            self.brokers.partitions.setdefault(source.topic, 1)
            self.brokers.partitions.setdefault(source.rejected_topic, 1)
        found = self.destinations()
        ends = {
            TopicPartition(topic.name, index): len(
                self.brokers.logs[TopicPartition(topic.name, index)]
            )
            for each in found
            for topic in (each.recipe.data, each.recipe.rejected)
            if topic.name not in self.agent.topics
            for index in range(topic.partitions)
        }
        assert self.agent.refusal(found) is None
        self.agent.reload(configured, found, ends)

    def kill(self, survivors: int = 0) -> None:
        """Kills the agent. Only the database, the files, and up to `survivors` batches in flight
        for each partition are left."""
        self.producer.die(survivors)
        self.loop = None
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def kill_in_flight(
        self,
        *pieces: bytes,
        path: str = "/log/a.log",
        arrives: TopicPartition | None = None,
        survivors: int = 0,
    ) -> None:
        """Appends the pieces to a file one by one. For each piece, the agent stores an intent (in
        its durable state) and then sends the piece. Kills the agent before any answer arrives.

        `arrives` is the partition whose first batch reaches its broker before the kill.
        """
        for piece in pieces:
            self.files.append(path, piece)
            if self.loop is None:
                self.start()
            self.hold()
        assert self.producer.pending_count, "nothing is on its way"
        if arrives is not None:
            self.producer.arrive(arrives)
        self.kill(survivors)

    def publish(self) -> None:
        """Moves the agent's messages to the audit from its outbox to `published`, as if the brokers
        had accepted them."""
        mail = self.agent.mail
        for id_, value in mail.pending(-1, 1_000_000):
            self.published.append(messages.decode(value))
            mail.published(id_)

    def turn(self, deliveries: Iterable[Delivery] = ()) -> None:
        self.agent.turn(list(deliveries))

    def hold(self, rounds: int = 5, seconds: float = 0.1) -> None:
        """Lets time pass and the agent work. The brokers accept its messages to the audit, but its
        batches stay in flight."""
        for _ in range(rounds):
            self.clock.advance(seconds)
            self.publish()
            self.turn()

    def hold_until_sent(self, rounds: int = 30) -> None:
        """Lets time pass as `hold` does, but only until the agent has sent something."""
        for _ in range(rounds):
            self.hold(1)
            if self.producer.pending_count:
                break

    def tick(self, seconds: float = 0.1, away: str = "") -> None:
        """Lets time pass and the agent work. All batches and messages that are in flight arrive,
        except the batches of the topic `away`."""
        self.clock.advance(seconds)
        self.publish()
        self.turn(self.producer.deliver_all(away))

    def settle(self, rounds: int = 40, seconds: float = 0.3) -> None:
        """Calls `tick(seconds)` `rounds` times. With the default arguments, afterwards nothing is
        in flight, and even a last line without a line terminator has arrived."""
        for _ in range(rounds):
            self.tick(seconds)
        self.publish()

    def values(self, topic: str = "logs") -> list[str]:
        """Returns the lines in a topic, in the order of partitions and offsets. The topic's source
        must not parse its lines."""
        return [datum_text(record.value) for record in self.brokers.records(topic)]

    def ledger(self) -> list[dict[str, Any]]:
        state = StateDatabase(self.connection)
        promised = {intent.file: intent.end for intent in state.intents()}
        return [entry(file, promised, self.files, {}) for file in state.files()]

    def only(self, path: str | None = None) -> dict[str, Any]:
        """Returns the entry for a path in the agent's accounts, which say what happened to the
        bytes of each file. If no path is given, returns the only entry."""
        (found,) = (each for each in self.ledger() if path in (None, each["path"]))
        return found

    def deltas(self) -> list[messages.Delta]:
        """Returns the published deltas (messages with counts) without repetitions. Asserts that all
        deltas with the same sender and number are equal."""
        found: dict[tuple[str, int, int], messages.Delta] = {}
        for delta in self.of(messages.Delta):
            key = delta.sender.producer, delta.sender.epoch, delta.number
            assert found.setdefault(key, delta) == delta, "a number stands for two messages"
        return list(found.values())

    def losses(self) -> list[messages.Loss]:
        """Returns all declared losses in the order in which the agent declared them."""
        return [loss for delta in self.deltas() for loss in delta.losses]

    def counted(self) -> list[tuple[str, int, int]]:
        """For each count in the published deltas (messages with counts), returns its topic, number
        of records and number of bytes."""
        counts = [count for delta in self.deltas() for count in delta.counts]
        return [(count.source.topic, count.count, count.bytes) for count in counts]

    def of(self, kind: type[Any]) -> list[Any]:
        """Returns the messages of the class `kind` that the agent has published to the audit."""
        return [message for message in self.published if isinstance(message, kind)]


def datum_text(value: bytes) -> str:
    """Returns the string in the value of a record whose schema has only one field."""
    number = shift = 0
    at = 5
    while True:
        byte = value[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    size = number >> 1
    assert at + size == len(value)
    return value[at:].decode()


def pa_binary(values: list[bytes]) -> Any:
    """Returns the values as an Arrow column of type binary."""
    return pa.array(values, pa.binary())
