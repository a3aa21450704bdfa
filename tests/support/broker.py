"""Our broker as a real program, for tests that talk to it over sockets."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from skidway.errors import Unreachable
from skidway.kafka.client import Client
from skidway.kafka.errors import KafkaError
from support.processes import Program, free_port, skidway


class OurBroker:
    """`skidway broker run` with its files in a folder; kept across restarts."""

    def __init__(
        self, folder: Path, zookeeper: str, settings: Mapping[str, object] | None = None
    ) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.logs = folder / "logs"
        chosen = {
            "listeners": f"PLAINTEXT://{self.address}",
            "log.dirs": self.logs,
            "zookeeper.connect": zookeeper,
            "metrics.listener": f"127.0.0.1:{free_port()}",
            **(settings or {}),
        }
        sets = [word for key, value in chosen.items() for word in ("--set", f"{key}={value}")]
        self.program = Program(skidway("broker", "run", *sets), folder / "broker.out")

    def ready(self) -> bool:
        """Whether it answers."""
        with (
            contextlib.suppress(Unreachable, KafkaError),
            Client(self.address, request_timeout_ms=1_000) as client,
        ):
            return bool(client.metadata(()).brokers)
        return False

    def start(self) -> None:
        self.program.start().wait_until(self.ready)

    def restart(self) -> None:
        """kill -9, and again on the same files."""
        self.program.kill()
        self.start()

    def segments(self, topic: str, partition: int = 0, suffix: str = ".log") -> list[Path]:
        """The files of a partition, oldest first."""
        return sorted((self.logs / f"{topic}-{partition}").glob(f"*{suffix}"))
