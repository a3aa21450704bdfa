"""Calls Kafka's unmodified Java clients from Python. Py4J gives access to the objects of one JVM.

Py4J is part of pyspark. The tests do not compile Java code, so they need only a Java runtime. A
test uses the same classes as a Java program, that is, `KafkaProducer`, `KafkaConsumer` and `Admin`.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors.exceptions import captured

from support import jvm, peers
from support.processes import WITHIN_S, Program

PRINTED_PORT = re.compile(r"^(\d+)$", re.MULTILINE)
BYTES = "org.apache.kafka.common.serialization.ByteArray"
_converted_by_spark = captured.convert_exception


class JavaFailed(Exception):
    """Raised if a Java call threw an exception. `name` is the name of the exception's class,
    without its package. If a Java future failed, `name` and the message are those of the exception
    that made the future fail."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


@dataclass(frozen=True)
class Consumed:
    """One record that the Java consumer returned."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class JavaClients:
    """One JVM with the jars of one of the peers (foreign programs) that support.peers fetches. By
    default these are the jars of Kafka."""

    def __init__(self, folder: Path, peer: str = "kafka") -> None:
        jars = f"{peers.jars(peer)}/*:{_py4j_jar()}"
        command = [jvm.command(), "-Xmx384m", *jvm.BRIEF, "-cp", jars, "py4j.GatewayServer", "0"]
        self.program = Program(command, folder / "java-clients.out")
        self._gateway: JavaGateway | None = None

    def start(self) -> None:
        self.program.start().wait_until(lambda: PRINTED_PORT.search(self.program.output()))
        printed = PRINTED_PORT.search(self.program.output())
        assert printed is not None
        # Py4J's memory management is off. If it were on, Python's garbage collector would send a
        # command to the JVM for each collected object.
        where = GatewayParameters(
            port=int(printed[1]), auto_convert=True, enable_memory_management=False
        )
        self._gateway = JavaGateway(gateway_parameters=where)
        captured.convert_exception = _converted

    def stop(self) -> None:
        if self._gateway is not None:
            self._gateway.close()
        self.program.kill()

    @property
    def jvm(self) -> Any:
        """Returns Py4J's view of the JVM, through which Java classes are called, as in
        `jvm.java.util.ArrayList()`."""
        assert self._gateway is not None
        return self._gateway.jvm

    @property
    def kafka(self) -> Any:
        """The Java package org.apache.kafka."""
        return self.jvm.org.apache.kafka

    def tp(self, topic: str, partition: int = 0) -> Any:
        return self.kafka.common.TopicPartition(topic, partition)

    @contextmanager
    def admin(self, bootstrap: str) -> Iterator[Any]:
        """Yields a Java Admin client, which is closed after the `with` block."""
        with _closing(self.kafka.clients.admin.Admin.create(self._map(bootstrap, {}))) as made:
            yield made

    @contextmanager
    def producer(self, bootstrap: str, **settings: object) -> Iterator[Any]:
        """Yields a KafkaProducer of bytes. In the names of settings, _ replaces the dots."""
        serializers = dict.fromkeys(("key.serializer", "value.serializer"), f"{BYTES}Serializer")
        given = self._map(bootstrap, {**serializers, **_dotted(settings)})
        with _closing(self.kafka.clients.producer.KafkaProducer(given)) as made:
            yield made

    @contextmanager
    def consumer(self, bootstrap: str, **settings: object) -> Iterator[Any]:
        """Yields a KafkaConsumer of bytes without a group. In the names of settings, _ replaces the
        dots."""
        deserializers = dict.fromkeys(
            ("key.deserializer", "value.deserializer"), f"{BYTES}Deserializer"
        )
        given = self._map(bootstrap, {**deserializers, **_dotted(settings)})
        made = self.kafka.clients.consumer.KafkaConsumer(given)
        try:
            yield made
        finally:  # do not wait for the current fetch before closing
            made.close(self.jvm.java.time.Duration.ZERO)

    def record(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int = 0,
        timestamp: int | None = None,
        key: bytes | None = None,
        headers: Mapping[str, bytes] | None = None,
    ) -> Any:
        """Returns a Java object of the class ProducerRecord with these values."""
        made = [
            self.kafka.common.header.internals.RecordHeader(name, content)
            for name, content in (headers or {}).items()
        ]
        kind = self.kafka.clients.producer.ProducerRecord
        return kind(topic, partition, timestamp, key, value, made)

    def poll(self, consumer: Any, count: int) -> list[Consumed]:
        """Polls until `count` records have arrived. Fails after WITHIN_S seconds."""
        found: list[Consumed] = []
        system = self.jvm.java.lang.System
        deadline = system.currentTimeMillis() + int(WITHIN_S) * 1000
        while len(found) < count:
            assert system.currentTimeMillis() < deadline, f"{len(found)} of {count} records"
            found += self.poll_once(consumer)
        return found

    def poll_once(self, consumer: Any, wait_ms: int = 500) -> list[Consumed]:
        """Returns the records of one poll."""
        try:
            records = consumer.poll(self.jvm.java.time.Duration.ofMillis(wait_ms))
        except Py4JJavaError as error:
            raise _failed(error) from error
        return [_consumed(each) for tp in records.partitions() for each in records.records(tp)]

    def create(self, admin: Any, topic: str, partitions: int = 1, **configs: object) -> None:
        """Creates a topic and waits until the topic exists. Raises JavaFailed if this fails."""
        new = self.kafka.clients.admin.NewTopic(topic, partitions, 1).configs(_dotted(configs))
        self.wait(admin.createTopics([new]).all())

    def wait(self, future: Any) -> Any:
        """Waits at most WITHIN_S seconds for a future and returns its result. If the future failed,
        raises JavaFailed with the name and message of the exception that made it fail."""
        try:
            return future.get(int(WITHIN_S), self.jvm.java.util.concurrent.TimeUnit.SECONDS)
        except Py4JJavaError as error:
            raise _failed(error) from error

    def call(self, method: Any, *arguments: object) -> Any:
        """Calls a Java method and returns its result. If the method throws an exception, raises
        JavaFailed with the exception's name and message."""
        try:
            return method(*arguments)
        except Py4JJavaError as error:
            raise _failed(error) from error

    def _map(self, bootstrap: str, settings: Mapping[str, object]) -> Any:
        made = self.jvm.java.util.HashMap()
        client_id = f"java-{uuid.uuid4().hex[:8]}"
        for key, value in {"client.id": client_id, **settings}.items():
            made.put(key, str(value))
        made.put("bootstrap.servers", bootstrap)
        return made


def values_of(records: Iterable[Consumed]) -> list[bytes | None]:
    return [each.value for each in records]


def _py4j_jar() -> Path:
    spec = util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return next((Path(spec.origin).parent / "jars").glob("py4j-*.jar"))


def _dotted(settings: Mapping[str, object]) -> dict[str, str]:
    return {key.replace("_", "."): _text(value) for key, value in settings.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _consumed(record: Any) -> Consumed:
    headers = tuple((each.key(), bytes(each.value())) for each in record.headers().toArray())
    key, value = record.key(), record.value()
    return Consumed(
        partition=record.partition(),
        offset=record.offset(),
        timestamp=record.timestamp(),
        key=None if key is None else bytes(key),
        value=None if value is None else bytes(value),
        headers=headers,
    )


def _failed(error: Py4JJavaError) -> JavaFailed:
    thrown = error.java_exception
    name = thrown.getClass().getSimpleName()
    if name == "ExecutionException" and thrown.getCause() is not None:
        thrown = thrown.getCause()
    return JavaFailed(thrown.getClass().getSimpleName(), str(thrown.getMessage()))


@contextmanager
def _closing(made: Any) -> Iterator[Any]:
    try:
        yield made
    finally:
        made.close()


def _converted(error: Any) -> captured.CapturedException:
    """A Spark in this process makes Py4J convert every Java exception, with classes of Spark's own
    JVM. Exceptions of other JVMs stay as they are."""
    gateway = SparkContext._gateway
    if gateway is not None and error._gateway_client is gateway._gateway_client:
        return _converted_by_spark(error)
    return captured.UnknownException(desc="", stackTrace="")
