"""Runs Debian's ActiveMQ on loopback, under the load of ActiveMQ's own producer and consumer
threads.

ActiveMQ's commands `activemq producer` and `activemq consumer` run these threads. This benchmark
runs the threads in a separate JVM and reads their progress through Py4J. The set-up is the same as
in the paper: persistent messages in KahaDB, which are sent and flushed asynchronously; automatic
acknowledgement; a prefetch of 1,000 messages.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway

from bench import debian
from bench.paper.series import Series, Stopwatch
from bench.produce import MESSAGE
from bench.sites import Program, accepts, free_port, running
from skidway.java import find

NAME = "ActiveMQ 5.17"
PACKAGES = ("activemq",)
LIB = Path("/usr/share/activemq/lib")
CLASS_PATH = f"{LIB}/*:{LIB}/optional/*"
PREFETCH = 1_000
HEAP_MB = 1024
AUTO_ACKNOWLEDGE = 1
ASKED_EVERY_S = 0.1
PRINTED_PORT = re.compile(r"^(\d+)$", re.MULTILINE)
LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.SimpleLayout
"""
BROKER = """<beans xmlns="http://www.springframework.org/schema/beans"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
    http://www.springframework.org/schema/beans/spring-beans.xsd
    http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" brokerName="paper" useJmx="false"
          dataDirectory="{folder}/data">
    <persistenceAdapter>
      <kahaDB directory="{folder}/data/kahadb" journalDiskSyncStrategy="periodic"/>
    </persistenceAdapter>
    <transportConnectors>
      <transportConnector name="openwire" uri="tcp://127.0.0.1:{port}"/>
    </transportConnectors>
  </broker>
</beans>
"""


def provide() -> None:
    """Installs ActiveMQ if it is missing. Raises SkidwayError if it cannot be installed."""
    debian.provide("activemq", PACKAGES, "ActiveMQ is a peer")


class ActiveMQ:
    """An ActiveMQ server that writes only to `folder`."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self._folder = folder
        (folder / "log4j.properties").write_text(LOG4J)
        broker = folder / "broker.xml"
        broker.write_text(BROKER.format(folder=folder, port=self.port))
        start = ["org.apache.activemq.console.Main", "start", f"xbean:file:{broker}"]
        self.program = Program(
            [*self._java(HEAP_MB, CLASS_PATH), *start], folder / "activemq.out", cwd=folder
        )

    @contextlib.contextmanager
    def run(self) -> Iterator[None]:
        """Runs the server inside the block, and stops it afterwards."""
        with running(self.program, lambda: accepts(self.port), within_s=120):
            yield

    def produce(self, count: int, seconds_max: float) -> Series:
        """Sends `count` messages of 200 bytes, but ends early after `seconds_max` seconds."""
        with self._session() as (threads, session, queue):
            thread = threads.ProducerThread(session, queue)
            thread.setMessageCount(count)
            thread.setMessageSize(len(MESSAGE))
            thread.setPersistent(True)
            return _watched(thread, thread.getSentCount, seconds_max)

    def consume(self, count: int, seconds_max: float) -> Series:
        """Reads `count` messages, but ends early after `seconds_max` seconds."""
        with self._session() as (threads, session, queue):
            thread = threads.ConsumerThread(session, queue)
            thread.setMessageCount(count)
            return _watched(thread, thread.getReceived, seconds_max)

    @contextlib.contextmanager
    def _session(self) -> Iterator[tuple[Any, Any, Any]]:
        """Runs the JVM of a client inside the block. Yields the Java package that has the producer
        and consumer threads, a JMS session, and the queue."""
        said = self._folder / f"client-{time.time_ns()}.out"
        command = self._java(HEAP_MB // 2, f"{CLASS_PATH}:{_py4j_jar()}")
        client = Program([*command, "py4j.GatewayServer", "0"], said)
        options = f"jms.useAsyncSend=true&jms.prefetchPolicy.queuePrefetch={PREFETCH}"
        with running(client, lambda: PRINTED_PORT.search(client.output())):
            printed = PRINTED_PORT.search(client.output())
            assert printed is not None
            where = GatewayParameters(port=int(printed[1]), enable_memory_management=False)
            gateway = JavaGateway(gateway_parameters=where)
            activemq = gateway.jvm.org.apache.activemq
            factory = activemq.ActiveMQConnectionFactory(f"tcp://127.0.0.1:{self.port}?{options}")
            connection = factory.createConnection()
            connection.start()
            session = connection.createSession(False, AUTO_ACKNOWLEDGE)
            yield activemq.util, session, session.createQueue("paper")
            connection.close()
            gateway.close()

    def _java(self, heap_mb: int, class_path: str) -> list[str]:
        heap = [f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m"]
        log = f"-Dlog4j.configuration=file:{self._folder}/log4j.properties"
        return [str(find().command), *heap, log, "-cp", class_path]


def _watched(thread: Any, count: Callable[[], int], seconds_max: float) -> Series:
    watch = Stopwatch(seconds_max)
    thread.start()
    while thread.isAlive() and not watch.is_over:
        time.sleep(ASKED_EVERY_S)
        watch.tell(count())
    thread.setRunning(False)
    series = watch.finish(count())
    while thread.isAlive():
        time.sleep(ASKED_EVERY_S)
    return series


def _py4j_jar() -> Path:
    spec = util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return next((Path(spec.origin).parent / "jars").glob("py4j-*.jar"))
