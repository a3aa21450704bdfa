"""Starts Skidway's broker and Apache Kafka for a benchmark, and stops both afterwards."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.kafka import ApacheKafka
from support.processes import Program, accepts, answers, free_port, running, skidway
from support.zookeeper import ZooKeeper

__all__ = [
    "ApacheKafka",
    "Brokers",
    "Program",
    "ZooKeeper",
    "accepts",
    "answers",
    "both",
    "free_port",
    "ours",
    "running",
    "skidway",
    "skidway_broker",
]


@dataclass(frozen=True, slots=True)
class Brokers:
    """Skidway's broker and Apache Kafka, which run at the same time on one machine. Only one of
    them is under load at a time."""

    addresses: dict[str, str]
    programs: dict[str, Program]
    zookeeper: ZooKeeper

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the running brokers, by name."""
        return {name: program.pid for name, program in self.programs.items()}


def skidway_broker(
    folder: Path, zookeeper: ZooKeeper, *, cluster: str = "bench", number: int = 1
) -> tuple[Program, str, Callable[[], bool]]:
    """Prepares a Skidway broker of a cluster, but does not start it. Returns the program, its
    address, and a function that says whether the broker is ready.
    """
    port, metrics = free_port(), free_port()
    program = Program(
        skidway(
            "broker",
            "run",
            "--set",
            f"listeners=PLAINTEXT://127.0.0.1:{port}",
            "--set",
            f"log.dirs={folder / f'{cluster}-{number}'}",
            "--set",
            f"broker.id={number}",
            "--set",
            f"cluster.name={cluster}",
            "--set",
            f"zookeeper.connect={zookeeper.address}/{cluster}",
            "--set",
            f"metrics.listener=127.0.0.1:{metrics}",
        ),
        folder / f"{cluster}-{number}.out",
    )
    return program, f"127.0.0.1:{port}", lambda: answers(f"http://127.0.0.1:{metrics}/health")


@contextlib.contextmanager
def ours(folder: Path) -> Iterator[tuple[str, Program, ZooKeeper]]:
    """Runs ZooKeeper and one Skidway broker. Yields the broker's address, the broker's program, and
    ZooKeeper."""
    zookeeper = ZooKeeper(folder)
    broker, address, ready = skidway_broker(folder, zookeeper)
    with running(zookeeper.program, zookeeper.ready), running(broker, ready):
        yield address, broker, zookeeper


@contextlib.contextmanager
def both() -> Iterator[Brokers]:
    """Runs Skidway's broker and Apache Kafka. Apache Kafka gets 1 GB of heap, as in published
    reference runs."""
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        (folder / "kafka").mkdir()
        kafka = ApacheKafka(folder / "kafka", heap_mb=1024)
        kafka.format()
        with (
            ours(folder) as (address, broker, zookeeper),
            running(kafka.program, kafka.ready, within_s=120),
        ):
            yield Brokers(
                {"skidway": address, "kafka": kafka.address},
                {"skidway": broker, "kafka": kafka.program},
                zookeeper,
            )
