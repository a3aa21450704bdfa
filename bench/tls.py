"""Compares Skidway's broker over mutual TLS with Apache Kafka over mutual TLS, and with itself
without TLS.

librdkafka seals and sends each message of an uncompressed batch by itself. This is most of what a
batch of small messages costs, for clients and brokers. It seals a message of 10 KB, or a compressed
batch, with few records of TLS.

All certificates are of ECDSA P-256, made for the run; librdkafka and both brokers agree on TLS 1.3
with AES-256-GCM. Nothing else differs between the sides.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from bench import agent, librdkafka
from bench.machine import cpu_seconds, resident_mb, warm_memory
from bench.measure import KAFKA, Row, Table, in_turn, with_cost
from bench.produce import arrived, create
from bench.scale import scaled
from bench.sites import ApacheKafka, Program, ZooKeeper, answers, free_port, running, skidway
from skidway.kafka.protocol.api_versions import ApiVersionsRequest
from skidway.kafka.protocol.frames import request_frame
from skidway.kafka.protocol.messages import encode
from support.certificates import Authority, Pair

PLAIN: Final = "Skidway without TLS"
ROUNDS: Final = scaled(5, 1)
MANY: Final = scaled(2_000_000, 20_000)
WHOLE: Final = scaled(50_000, 1_000)
LARGE: Final = scaled(400, 20)
"""Batches of LARGE_BYTES."""
LARGE_BYTES: Final = 900_000
HANDSHAKES: Final = scaled(3_000, 100)
IDLE: Final = scaled(1_000, 50)
ASKED: Final = scaled(3_000, 100)
BACK: Final = scaled(10_000, 200)
THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class Side:
    """A broker, with and without TLS."""

    program: Program
    plain: str
    sealed: str


@dataclass(frozen=True, slots=True)
class Site:
    """Both brokers, what a client needs for TLS, and where files are kept."""

    skidway: Side
    kafka: Side
    authority: Path
    client: Pair
    folder: Path
    zookeeper: str

    @property
    def settings(self) -> dict[str, str | int]:
        """Settings of librdkafka for TLS."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.authority),
            "ssl.certificate.location": str(self.client.certificate),
            "ssl.key.location": str(self.client.key),
        }

    @property
    def context(self) -> ssl.SSLContext:
        """The same for Python."""
        context = ssl.create_default_context(cafile=self.authority)
        context.load_cert_chain(self.client.certificate, self.client.key)
        return context


def run() -> Table:
    """Measures both brokers in turn."""
    table = Table("tls: both brokers with mutual TLS, and Skidway without")
    with site() as found:
        for name, count, size, batch in (
            ("produce 200 bytes, batch 50, acks 1", MANY, 200, 50),
            ("produce 10 KB, batch 1, acks 1", WHOLE, 10_000, 1),
            ("produce batches of 900 KB, acks 1", LARGE, LARGE_BYTES, 1),
        ):
            measured = partial(produce, count=count, size=size, batch=batch)
            compare(table, found, name, measured, count * size / 1e9)
        topic = f"fetch-{time.time_ns()}"
        for each in (found.skidway, found.kafka):
            create(each.plain, topic)
            send(each.plain, {}, topic, MANY, 200, 4000)
        compare(table, found, "fetch, kcat", partial(fetch, topic=topic), MANY * 200 / 1e9)
        _handshakes(table, found)
        _idle(table, found)
        _storm(table, found)
        _back(table, found)
        _agent(table, found)
    return table


Measured = Callable[[str, dict[str, str | int]], float]
"""Takes an address and further settings of librdkafka. Returns bytes per second."""


def compare(table: Table, found: Site, name: str, measured: Measured, gigabytes: float) -> None:
    """Adds rows for the rate, and for what it costs the broker."""
    pid = found.skidway.program.pid
    rates, costs = with_cost(
        {
            "skidway": partial(measured, found.skidway.sealed, found.settings),
            "kafka": partial(measured, found.kafka.sealed, found.settings),
            "plain": partial(measured, found.skidway.plain, {}),
        },
        {"skidway": pid, "plain": pid, "kafka": found.kafka.program.pid},
        ROUNDS,
        gigabytes,
        warm_up=1,
    )
    cost = f"{name}: cost (less is better)"
    for side, peer in (("kafka", KAFKA), ("plain", PLAIN)):
        table.add(Row(name, "MB/s", rates["skidway"], rates[side], peer))
        table.add(Row(cost, "broker CPU s/GB", costs["skidway"], costs[side], peer))


def produce(
    address: str, more: dict[str, str | int], *, count: int, size: int, batch: int
) -> float:
    """Sends to a new topic. Returns MB/s."""
    topic = f"tls-{time.time_ns()}"
    create_at = {"retention.bytes": 1 << 30}
    create(_plain(address), topic, **create_at)
    return count * size / 1e6 / send(address, more, topic, count, size, batch)


def send(
    address: str, more: dict[str, str | int], topic: str, count: int, size: int, batch: int
) -> float:
    """Sends messages. Returns the seconds until all are acknowledged."""
    settings: dict[str, str | int] = {
        "bootstrap.servers": address, "acks": 1, "batch.num.messages": batch, "linger.ms": 5,
        "message.max.bytes": 1_000_000, "queue.buffering.max.kbytes": 1_000_000,
        "queue.buffering.max.messages": 500_000, **more,
    }  # fmt: skip
    message = b"x" * size
    with librdkafka.Producer(settings, topic) as producer:
        producer.send(message, 1)
        producer.flush(30)
        warm_memory(4 * min(count * size, 1 << 30))
        begin = time.perf_counter()
        producer.send(message, count)
        left = producer.flush(300)
        took = time.perf_counter() - begin
    if left:
        raise RuntimeError(f"{left} of {count} messages were not delivered")
    arrived(_plain(address), topic, count + 1)
    return took


def fetch(address: str, more: dict[str, str | int], *, topic: str) -> float:
    """Reads a topic with kcat. Returns MB/s."""
    command = f"kcat -C -q -b {address} -t {topic} -p 0 -o beginning -c {MANY}"
    ahead = "-X queued.min.messages=10000000 -X queued.max.messages.kbytes=2097151"
    sealed = [word for key, value in more.items() for word in ("-X", f"{key}={value}")]
    begin = time.perf_counter()
    subprocess.run(
        [*command.split(), "-f", "", *ahead.split(), *sealed],
        check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return MANY * 200 / 1e6 / (time.perf_counter() - begin)


def connect(found: Site, address: str, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Connects, and waits for the first answer: then the broker has done its handshake."""
    host, _, port = address.partition(":")
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sealed = context.wrap_socket(sock, server_hostname="localhost")
    ask(sealed)
    return sealed


def ask(sealed: ssl.SSLSocket) -> None:
    """Asks for ApiVersions."""
    request = ApiVersionsRequest()
    sealed.sendall(request_frame(request.API, 0, 1, "bench", encode(request, 0)))
    length = int.from_bytes(sealed.recv(4), "big")
    while length:
        length -= len(sealed.recv(length))


def _handshakes(table: Table, found: Site) -> None:
    """Full mutual handshakes, each with one request, for a second of the broker's CPU."""
    rates: dict[str, list[float]] = {"skidway": [], "kafka": []}
    context = found.context

    def one(address: str) -> None:
        connect(found, address, context).close()

    for number in range(ROUNDS + 1):
        for name, side in (("skidway", found.skidway), ("kafka", found.kafka)):
            before = cpu_seconds(side.program.pid)
            with ThreadPoolExecutor(THREADS) as threads:
                list(threads.map(one, [side.sealed] * HANDSHAKES))
            if number:  # the first round is a warm-up
                rates[name].append(HANDSHAKES / (cpu_seconds(side.program.pid) - before))
    mine, theirs = tuple(rates["skidway"]), tuple(rates["kafka"])
    table.add(Row("mutual handshakes, with a request", "a broker CPU s", mine, theirs, KAFKA))


def _idle(table: Table, found: Site) -> None:
    """What the broker needs for a connection that has sent one request."""
    context, side, kib = found.context, found.skidway, []
    with contextlib.ExitStack() as open_ends:
        for sealed in (False, True):
            before = resident_mb(side.program.pid)
            for _ in range(IDLE):
                if sealed:
                    open_ends.enter_context(connect(found, side.sealed, context))
                else:
                    host, _, port = side.plain.partition(":")
                    sock = open_ends.enter_context(socket.create_connection((host, int(port))))
                    ask(sock)  # type: ignore[arg-type]
            kib.append((resident_mb(side.program.pid) - before) * 1024 / IDLE)
    plain, own = kib
    table.add(Row("memory of an idle connection (less is better)", "KiB", (own,), (plain,), PLAIN))


def _storm(table: Table, found: Site) -> None:
    """How long a good client waits for an answer, while others make handshakes without pause."""
    slow: dict[str, list[float]] = {"calm": [], "storm": []}
    context, address = found.context, found.skidway.sealed
    for _ in range(ROUNDS):
        with connect(found, address, context) as good:
            slow["calm"].append(_p99_ms(good))
            ended = threading.Event()
            threads = [
                threading.Thread(target=_without_pause, args=(found, address, context, ended))
                for _ in range(THREADS)
            ]
            for each in threads:
                each.start()
            slow["storm"].append(_p99_ms(good))
            ended.set()
            for each in threads:
                each.join()
    storm, calm = tuple(slow["storm"]), tuple(slow["calm"])
    name = "p99 of a good client in a storm of handshakes (less is better)"
    table.add(Row(name, "ms", storm, calm, "without the storm"))


def _without_pause(
    found: Site, address: str, context: ssl.SSLContext, ended: threading.Event
) -> None:
    while not ended.is_set():
        connect(found, address, context).close()


def _back(table: Table, found: Site) -> None:
    """All clients connect as fast as they can, as after a restart of the broker. They are on the
    same machine."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    pid, context = found.skidway.program.pid, found.context
    cpu, wall, slow, calm = [], [], [], []
    for _ in range(ROUNDS):
        with contextlib.ExitStack() as open_ends:
            good = open_ends.enter_context(connect(found, found.skidway.sealed, context))
            calm.append(_p99_ms(good))
            ended, took = threading.Event(), list[float]()
            asking = threading.Thread(target=_until, args=(good, ended, took))
            asking.start()
            before, begin = cpu_seconds(pid), time.perf_counter()
            with ThreadPoolExecutor(THREADS) as threads:
                for each in threads.map(
                    lambda _: connect(found, found.skidway.sealed, context), range(BACK)
                ):
                    open_ends.enter_context(each)
            wall.append(time.perf_counter() - begin)
            cpu.append(cpu_seconds(pid) - before)
            ended.set()
            asking.join()
            slow.append(_p99(took))
    name = f"{BACK:,} clients back"
    cost = f"{name}: CPU of the broker (less is better)"
    table.add(Row(cost, "s", tuple(cpu), tuple(wall), "wall time"))
    name += ": p99 of a good client (less is better)"
    table.add(Row(name, "ms", tuple(slow), tuple(calm), "without them"))


def _until(good: ssl.SSLSocket, ended: threading.Event, took: list[float]) -> None:
    while not ended.is_set():
        took.append(_asked_ms(good))


def _agent(table: Table, found: Site) -> None:
    """Raw lines that an agent sends with and without TLS."""
    with agent.registry(found.folder, found.zookeeper) as schemas:
        case = agent.CASES["raw"]
        sealed = {"bootstrap.servers": found.skidway.sealed, **found.settings}
        address = found.skidway.plain
        sides = {
            "skidway": agent.Site(found.folder, address, schemas, case, sealed),
            "plain": agent.Site(found.folder, address, schemas, case),
        }
        sides["skidway"].prepare()
        runs = in_turn({name: each.agent for name, each in sides.items()}, ROUNDS)
    sealed_rates, rates = (tuple(x.rate for x in runs[side]) for side in ("skidway", "plain"))
    table.add(Row("agent, raw lines", "records a CPU s", sealed_rates, rates, PLAIN))


def _p99_ms(good: ssl.SSLSocket) -> float:
    return _p99([_asked_ms(good) for _ in range(ASKED)])


def _p99(took: list[float]) -> float:
    return statistics.quantiles(took, n=100)[98]


def _asked_ms(good: ssl.SSLSocket) -> float:
    begin = time.perf_counter()
    ask(good)
    return 1000 * (time.perf_counter() - begin)


_plain_of: dict[str, str] = {}


def _plain(address: str) -> str:
    return _plain_of.get(address, address)


@contextlib.contextmanager
def site() -> Iterator[Site]:
    """Runs both brokers, each with a listener without TLS and one with mutual TLS."""
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        authority = Authority(folder)
        broker, client = authority.sign("broker"), authority.sign("client")
        zookeeper = ZooKeeper(folder)
        kafka, ready = _kafka(folder, authority.certificate, broker)
        with running(zookeeper.program, zookeeper.ready):
            own, own_ready = _own(folder, zookeeper, authority.certificate, broker)
            with (
                running(own.program, own_ready),
                running(kafka.program, ready, within_s=120),
            ):
                for each in (own, kafka):
                    _plain_of[each.sealed] = each.plain
                yield Site(
                    own, kafka, authority.certificate, client, folder, f"{zookeeper.address}/agent"
                )


def _own(
    folder: Path, zookeeper: ZooKeeper, authority: Path, broker: Pair
) -> tuple[Side, Callable[[], bool]]:
    plain, sealed = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    metrics = f"127.0.0.1:{free_port()}"
    settings = {
        "listeners": f"PLAINTEXT://{plain},SSL://{sealed}",
        "ssl.certificate.location": broker.certificate,
        "ssl.key.location": broker.key,
        "ssl.ca.location": authority,
        "ssl.client.auth": "required",
        "max.connections.per.ip": 2 * BACK,
        "log.dirs": folder / "own",
        "zookeeper.connect": f"{zookeeper.address}/bench",
        "metrics.listener": metrics,
    }
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    program = Program(skidway("broker", "run", *sets), folder / "own.out")
    return Side(program, plain, sealed), lambda: answers(f"http://{metrics}/health")


def _kafka(folder: Path, authority: Path, broker: Pair) -> tuple[Side, Callable[[], bool]]:
    (folder / "kafka").mkdir()
    both = folder / "kafka" / "both.pem"
    both.write_bytes(broker.key.read_bytes() + broker.certificate.read_bytes())
    sealed = f"127.0.0.1:{free_port()}"
    kafka = ApacheKafka(folder / "kafka", heap_mb=1024)
    kafka.format(
        {
            "listeners": f"SSL://{sealed}",
            "advertised.listeners": f"SSL://{sealed}",
            "listener.security.protocol.map": "SSL:SSL",
        },
        {
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM", "ssl.keystore.location": str(both),
            "ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority),
        },
    )  # fmt: skip
    return Side(kafka.program, kafka.address, sealed), kafka.ready
