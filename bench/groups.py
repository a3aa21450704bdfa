"""Measures the latency of commits when 1,000 groups commit once a second, and the work of brokers
and ZooKeeper.

Each group has one client with a connection of its own. The client commits an offset for every
partition of a topic without joining the group (a simple consumer). The commits are due at planned
times, spread evenly over each second, and are sent even if earlier ones were not answered yet (an
open loop). A latency counts from the planned time. The number of ZooKeeper's transactions is the
difference between its last transaction ids (zxid) before and after the run. Apache Kafka uses no
ZooKeeper: it stores offsets in a topic.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kazoo.client import KazooClient

from bench.machine import cpu_seconds, family_cpu_seconds, resident_mb
from bench.measure import KAFKA, SidesRow, SidesTable
from bench.produce import create
from bench.scale import scaled
from bench.sites import Brokers, ZooKeeper
from skidway.kafka.client import Client
from support.group_press import CommittingGroups
from support.processes import eventually

GROUPS = scaled(1_000, 50)
PARTITIONS = (1, 10)
WARM_UP, SECONDS = scaled((5, 30), (1, 2))
ROUNDS = 1
SETTLED_WITHIN_S = 120.0
NAMES = {"skidway": "Skidway", "kafka": KAFKA}
QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
PROBE = "/bench-probe"

Figures = dict[str, float]


def run(brokers: Brokers) -> SidesTable:
    """Measures Skidway's broker and Apache Kafka in turn, with few and with many partitions per
    group."""
    table = SidesTable(
        f"groups: {GROUPS:,} groups that commit once a second, over {SECONDS} s",
        tuple(NAMES.values()),
    )
    for partitions in PARTITIONS:
        found: dict[str, list[Figures]] = {name: [] for name in brokers.addresses}
        for _ in range(ROUNDS):
            for name in brokers.addresses:
                found[name].append(measured(brokers, name, partitions))
        for what, unit in _units(found):
            sides = {
                NAMES[name]: tuple(each[what] for each in rounds)
                for name, rounds in found.items()
                if what in rounds[0]
            }
            table.add(SidesRow(f"partitions of each: {partitions}; {what}", unit, sides))
    return table


def _units(found: dict[str, list[Figures]]) -> Iterator[tuple[str, str]]:
    for what in found["skidway"][0]:
        if what in QUANTILES:
            yield what, "ms"
        elif what.startswith("CPU"):
            yield what, "% of a core"
        else:
            yield what, "MB" if what.startswith("memory") else "a second"


def measured(brokers: Brokers, name: str, partitions: int) -> Figures:
    """Makes one run against one broker, and returns its figures."""
    address, pid = brokers.addresses[name], brokers.programs[name].pid
    topic = f"groups-{time.time_ns()}"
    create(address, topic, partitions)
    port = coordinator_port(address, topic)
    groups = CommittingGroups(port, topic, partitions, GROUPS)
    try:
        settle(groups)
        commits(groups, WARM_UP, {})
        if name != "skidway":
            return commits(
                groups, SECONDS, {"CPU of the broker": lambda: cpu_seconds(pid) * 100}
            ) | {"memory of the broker": resident_mb(pid)}
        with Zxid(brokers.zookeeper) as zxid:
            server = brokers.zookeeper.program.pid
            found = commits(
                groups,
                SECONDS,
                {
                    "CPU of the broker": lambda: cpu_seconds(pid) * 100,
                    "CPU of ZooKeeper": lambda: family_cpu_seconds(server) * 100,
                    "transactions of ZooKeeper": zxid.last,
                },
            )
        return found | {"memory of the broker": resident_mb(pid)}
    finally:
        groups.close()


def coordinator_port(address: str, topic: str) -> int:
    """Returns the loopback port of the cluster's only broker, which coordinates all groups. A
    client has to ask for a coordinator first, because Apache Kafka creates its offsets topic only
    after this request.
    """
    consumer = Consumer({"bootstrap.servers": address, "group.id": "groups"})

    def known() -> bool:
        with contextlib.suppress(KafkaException):
            return bool(consumer.committed([TopicPartition(topic, 0)], timeout=10))
        return False

    eventually(known, within_s=SETTLED_WITHIN_S, what="groups have a coordinator")
    consumer.close()
    with Client(address) as client:
        (broker,) = client.metadata(()).brokers.values()
        return broker.port


def settle(groups: CommittingGroups) -> None:
    """Repeats each group's first commit until the coordinator is running and accepts the commit."""
    waiting, until = set(range(GROUPS)), time.monotonic() + SETTLED_WITHIN_S
    why: set[int] = set()
    while waiting:
        if time.monotonic() > until:
            raise RuntimeError(f"first commits of {len(waiting)} groups were refused with {why}")
        asked = set(waiting)
        for number in asked:
            groups.send(number, 0)
        while asked:
            for number, codes in groups.answered(10):
                asked.discard(number)
                why |= codes - {0}
                if codes == {0}:
                    waiting.discard(number)


def commits(
    groups: CommittingGroups, seconds: int, counters: dict[str, Callable[[], float]]
) -> Figures:
    """Sends each commit at its planned time, even if earlier commits were not answered yet. Returns
    the commits per second, quantiles of their latencies in ms, and how much the value of each of
    the `counters` (such as CPU time) grew per second."""
    total = GROUPS * seconds
    due: list[deque[float]] = [deque() for _ in range(GROUPS)]
    latencies: list[float] = []
    before = {what: count() for what, count in counters.items()}
    begin, sent = time.perf_counter(), 0
    while len(latencies) < total:
        now = time.perf_counter() - begin
        if now > seconds + SETTLED_WITHIN_S:
            raise RuntimeError(f"{total - len(latencies)} of {total} commits have no answer")
        while sent < total and sent / GROUPS <= now:
            due[sent % GROUPS].append(sent / GROUPS)
            groups.send(sent % GROUPS, 1 + sent // GROUPS)
            sent += 1
        wait = max(sent / GROUPS - now, 0) if sent < total else 0.1
        for number, codes in groups.answered(wait):
            if codes != {0}:
                raise RuntimeError(f"a commit was refused with {codes}")
            latencies.append(time.perf_counter() - begin - due[number].popleft())
    took = time.perf_counter() - begin
    found = np.quantile(np.array(latencies) * 1000, list(QUANTILES.values()))
    return {
        "commits": total / took,
        **dict(zip(QUANTILES, map(float, found), strict=True)),
        **{what: (count() - before[what]) / took for what, count in counters.items()},
    }


class Zxid:
    """A connection to ZooKeeper; `last` returns the id of ZooKeeper's last transaction. To get this
    id, `last` makes a transaction itself."""

    def __init__(self, zookeeper: ZooKeeper) -> None:
        self._client = KazooClient(hosts=zookeeper.address)

    def __enter__(self) -> Zxid:
        self._client.start(timeout=30)
        self._client.ensure_path(PROBE)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.stop()
        self._client.close()

    def last(self) -> float:
        return float(self._client.set(PROBE, b"").mzxid)
