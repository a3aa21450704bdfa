"""The stock Kafka clients that tests run. Each client is controlled through a driver program in
tests/clients.

The table CLIENTS gives the version and the compression codecs of each client, and what the client
cannot do.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support import foreign
from support.fork_server import die_with_parent
from support.processes import NotReady, record

TWO_NONCES = (
    "librdkafka before 2.6.1 sends its nonce twice (librdkafka#4895), which Apache Kafka 4 refuses,"
    " too"
)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ANSWER_WITHIN_S = 660.0
TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class StockClient:
    """One unmodified client."""

    name: str
    version: str
    command: Callable[[], list[str]]
    """The command of the client's driver, without the broker's address. Raises PeerMissing if the
    driver is missing."""
    foreign: bool = False
    """Whether the client needs more than Python and Java: Node, Go or the program kcat."""
    codecs: tuple[str, ...] = CODECS
    lacks: Mapping[str, str] = field(default_factory=dict)
    """The commands and features that the client does not have, each with the reason."""


class ClientFailed(AssertionError):
    """Raised if a client could not do a step, or if its driver has ended. The error's message
    contains the client's own message."""


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"clients.{module}"]


CLIENTS = {
    client.name: client
    for client in (
        StockClient("confluent-kafka", "2.16.0", _python("confluent_driver")),
        StockClient("kafka-python", "3.0.12", _python("kafka_python_driver")),
        StockClient("aiokafka", "0.14.0", _python("aiokafka_driver")),
        StockClient(
            "java-tools",
            "4.4.0",
            _python("java_tools_driver"),
            lacks={
                "timestamps": "ConsoleProducer cannot set a record's timestamp",
                "commit": "ConsoleConsumer commits by itself, last when it ends",
                "assigned": "ConsoleConsumer does not tell which partitions it has",
                "partition": "ConsoleProducer cannot choose the partition",
            },
        ),
        StockClient(
            "kafkajs",
            "2.2.4",
            lambda: foreign.node_driver("kafkajs"),
            foreign=True,
            lacks={
                "none later": "kafkajs gives the end where no record is as late",
                "assign": "every consumer is in a group; it seeks there",
            },
        ),
        StockClient(
            "platformatic",
            "2.12.1",
            lambda: foreign.node_driver("platformatic"),
            foreign=True,
            lacks={"assign": "every consumer is in a group; it is told the offsets to begin at"},
        ),
        StockClient("franz-go", "v1.22.2", foreign.go_driver, foreign=True),
        StockClient(
            "kcat",
            "1.7.1",
            _python("kcat_driver"),
            foreign=True,
            lacks={
                "create": "kcat has no admin client; its producer has the broker create the topic",
                "delete": "kcat has no admin client",
                "timestamps": "kcat cannot set a record's timestamp",
                "commit": "kcat commits by itself, last when it ends",
                **dict.fromkeys(("SCRAM-SHA-256", "SCRAM-SHA-512"), TWO_NONCES),
            },
        ),
    )
}


class Driver:
    """A running driver program of one client."""

    def __init__(
        self, client: StockClient, address: str, folder: Path, tls: Sequence[Path | str] = ()
    ) -> None:
        """tls: the files of authorities, of a certificate and of its key; without the last two,
        the client shows none; without any, it connects without TLS. In place of the last two: a
        mechanism, a user and a password, with which it logs in."""
        self.client = client
        self._log = folder / f"{client.name}.err"
        with self._log.open("ab") as errors:
            self._process = subprocess.Popen(
                [*client.command(), address, *map(str, tls)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": _python_path()},
                preexec_fn=die_with_parent,
            )
        self._noted = record(client.command(), self._log, self._process)
        self._received = b""

    def ask(self, do: str, **arguments: object) -> dict[str, Any]:
        """Lets the client do the step `do`, and returns its answer. If the client reports an error,
        raises ClientFailed with the client's message."""
        self.begin(do, **arguments)
        return self.finish(do)

    def begin(self, do: str, **arguments: object) -> None:
        """Tells the client to do one step, and does not wait for the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        self._process.stdin.flush()

    def finish(self, do: str = "") -> dict[str, Any]:
        """Waits for the end of the step that `begin` has begun, and returns the client's answer. If
        the client reports an error, raises ClientFailed, whose message contains the word `do`. If
        the driver ends, raises ClientFailed, too; if no answer comes in time, raises NotReady."""
        answer = json.loads(self._line())
        if "error" in answer:
            raise ClientFailed(f"{self.client.name} {do}: {answer['error']}\n{self.complaints()}")
        ok: dict[str, Any] = answer["ok"]
        return ok

    def complaints(self) -> str:
        """The end of what the driver printed to standard error."""
        return self._log.read_text(errors="replace")[-3000:]

    def close(self) -> None:
        self._noted.is_awaited = True
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not selector.select(ANSWER_WITHIN_S):
                    raise NotReady(f"{self.client.name} does not answer\n{self.complaints()}")
                read = os.read(self._process.stdout.fileno(), 1 << 20)
                if not read:
                    raise ClientFailed(f"{self.client.name} ended\n{self.complaints()}")
                self._received += read
        line, _, self._received = self._received.partition(b"\n")
        return line


def _python_path() -> str:
    roots = [str(TESTS), str(TESTS.parent)]
    return os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])
