"""A real Apache Kafka 4.4 (KRaft, one node), for tests and benchmarks."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from support import jvm, peers
from support.places import LOOPBACK, Place
from support.processes import Program, free_port, running


def java(*, heap_mb: int = 512, options: Sequence[str] = jvm.BRIEF) -> list[str]:
    """Returns the beginning of a Java command line with Kafka's jars. The caller adds the main
    class."""
    return [
        jvm.command(),
        f"-Xms{heap_mb}m",
        f"-Xmx{heap_mb}m",
        *options,
        "-cp",
        f"{peers.jars('kafka')}/*",
    ]


class ApacheKafka:
    """An Apache Kafka node that is both broker and controller and has its own folder.

    If a client bootstraps from `proxied_port`, Kafka tells this client to use `proxy_port` for all
    further connections. A test may run a proxy on `proxy_port`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        heap_mb: int = 512,
        options: Sequence[str] = jvm.FAST,
        place: Place = LOOPBACK,
    ) -> None:
        self._place = place
        self.port, self.controller_port = free_port(), free_port()
        self.proxied_port, self.proxy_port = free_port(), free_port()
        self.address = f"{place.host}:{self.port}"
        self._folder = folder
        self._config = folder / "kafka.properties"
        self.program = Program(
            place.command(
                [*java(heap_mb=heap_mb, options=options), "kafka.Kafka", str(self._config)]
            ),
            folder / "kafka.out",
        )

    def format(
        self, behind: Mapping[str, str] | None = None, more: Mapping[str, str] | None = None
    ) -> None:
        """Writes the configuration and formats the storage directory, as Kafka requires before the
        first start. behind: what is added to the values of settings, behind a comma. more: further
        settings."""
        internal = (
            "offsets.topic.replication.factor",
            "transaction.state.log.replication.factor",
            "transaction.state.log.min.isr",
            "share.coordinator.state.topic.replication.factor",
            "share.coordinator.state.topic.min.isr",
        )
        host = self._place.host
        controller = f"{host}:{self.controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller},"
            f"PROXIED://{host}:{self.proxied_port}",
            "advertised.listeners": f"PLAINTEXT://{self.address},"
            f"PROXIED://{host}:{self.proxy_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "CONTROLLER", "PROXIED")
            ),
            "log.dirs": str(self._folder / "logs"),
            "group.initial.rebalance.delay.ms": "0",
            **dict.fromkeys(internal, "1"),
            **(more or {}),
        }
        for key, value in (behind or {}).items():
            settings[key] += f",{value}"
        self._config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        format_storage(self._config, cluster_id())

    def ready(self) -> bool:
        # Kafka writes no log here (its jars contain no backend for slf4j), so no log says when
        # Kafka is ready. But Kafka opens its port last, so it is ready as soon as the port is open.
        return self._place.accepts(self.port)


def cluster_id() -> str:
    """Returns a new id of a cluster, as Kafka writes it."""
    return base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).rstrip(b"=").decode()


def format_storage(config: Path, cluster: str) -> None:
    """Formats the storage directory of the node with this configuration."""
    command = [*java(heap_mb=128), "kafka.tools.StorageTool"]
    command += ["format", "-t", cluster, "-c", str(config)]
    subprocess.run(command, check=True, capture_output=True)


def tool(
    name: str,
    arguments: Sequence[str],
    *,
    input_text: str | None = None,
    within_s: float = 300.0,
    options: Sequence[str] = jvm.BRIEF,
) -> str:
    """Runs one of Kafka's Java tools, for example org.apache.kafka.tools.TopicCommand, and returns
    its output."""
    done = subprocess.run(
        [*java(heap_mb=256, options=options), name, *arguments],
        input=input_text,
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
        stdin=None if input_text is not None else subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{name} {' '.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """One Apache Kafka 4.4 for the whole test run."""
    kafka = ApacheKafka(tmp_path_factory.mktemp("kafka"), options=jvm.BRIEF)
    kafka.format()
    with running(kafka.program, kafka.ready):
        yield kafka


def topic_name(prefix: str) -> str:
    """Returns a topic name that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"
