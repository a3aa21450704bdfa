"""A real schema registry for tests: `skidway registry run` on a real ZooKeeper."""

from __future__ import annotations

from pathlib import Path

from support.places import LOOPBACK, Place
from support.processes import Program, free_port, skidway


class Registry:
    """The running registry and its address."""

    def __init__(
        self,
        zookeeper: str,
        folder: Path,
        *settings: str,
        scheme: str = "http",
        place: Place = LOOPBACK,
    ) -> None:
        self._place = place
        self.port, self.metrics_port = free_port(), free_port()
        self.url = f"{scheme}://{place.host}:{self.port}"
        given = (
            f"listeners={self.url}",
            f"insecure.listeners={str(place is not LOOPBACK).lower()}",
            f"zookeeper.connect={zookeeper}",
            f"metrics.listener=127.0.0.1:{self.metrics_port}",
            *settings,
        )
        options = [option for each in given for option in ("--set", each)]
        self.program = Program(
            place.command(skidway("registry", "run", *options)),
            folder / f"registry-{self.port}.out",
        )

    def ready(self) -> bool:
        """Whether the registry answers, and can reach ZooKeeper."""
        return self._place.read(f"http://127.0.0.1:{self.metrics_port}/health") is not None
