"""A real broker loses no acknowledged record while the files for TLS are replaced under load, and
the broker is killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from skidway.kafka.client import Client, NewTopic
from support.brokers import TlsBroker
from support.certificates import Authority
from support.processes import eventually

TOPIC = "logs"
IN_FLIGHT_MAX = 1_000


@pytest.fixture
def broker(tmp_path: Path, zookeeper: str) -> Iterator[TlsBroker]:
    made = TlsBroker(tmp_path, zookeeper, "required")
    yield made.start()
    made.end()


class Load:
    """Producers with certificates that write until `end`, each with its own numbers. Knows what was
    acknowledged."""

    def __init__(self, broker: TlsBroker, authorities: Path) -> None:
        self._broker, self._authorities = broker, authorities
        self.acknowledged: list[bytes] = []
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, name: str, certificate: Path, key: Path) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._broker.tls_address, "security.protocol": "SSL",
                "ssl.ca.location": str(self._authorities),
                "ssl.certificate.location": str(certificate), "ssl.key.location": str(key),
                "enable.idempotence": True, "linger.ms": 5, "reconnect.backoff.max.ms": 500,
                "message.timeout.ms": 300_000,
            }
        )  # fmt: skip
        self._threads.append(threading.Thread(target=self._write, args=(producer, name)))
        self._threads[-1].start()

    def more(self, count: int = 500) -> None:
        """Waits until so many further records are acknowledged."""
        wanted = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= wanted)

    def end(self) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()

    def _write(self, producer: Producer, name: str) -> None:
        number = 0

        def delivered(error: object, message: object) -> None:
            if error is None:
                self.acknowledged.append(message.value())  # type: ignore[attr-defined]

        while not self._ended.is_set():
            for _ in range(20 if len(producer) < IN_FLIGHT_MAX else 0):
                producer.produce(TOPIC, b"%s-%d" % (name.encode(), number), on_delivery=delivered)
                number += 1
            producer.poll(0.02)
        producer.purge()  # a revoked client can deliver nothing more
        producer.flush(60)


def test_files_are_replaced_under_load(broker: TlsBroker, tmp_path: Path) -> None:
    """The certificate, the authorities and the revocation lists of a broker are replaced while
    producers write, and the broker is killed after each change. Each record that was acknowledged
    is there; only the client whose certificate was revoked is kept out."""
    with Client(broker.address) as plain:
        assert plain.create_topics([NewTopic(TOPIC, 1, 1)]) == {TOPIC: None}
    (tmp_path / "next").mkdir()
    old, new = broker.authority, Authority(tmp_path / "next", "next")
    both = tmp_path / "both.pem"
    both.write_bytes(old.certificate.read_bytes() + new.certificate.read_bytes())
    load = Load(broker, both)
    good, thief = broker.pair, old.sign("thief")
    load.begin("good", good.certificate, good.key)
    load.begin("thief", thief.certificate, thief.key)
    load.more()
    replaced = old.certificate, broker.crl, tmp_path / "broker.pem", tmp_path / "broker.key"
    authorities, crl, certificate, key = replaced

    # 1. a certificate of another authority, whose clients are accepted, too
    of_new = new.sign("broker")
    crl.write_bytes(old.revoke().read_bytes() + new.revoke().read_bytes())
    authorities.write_bytes(both.read_bytes())
    key.write_bytes(of_new.key.read_bytes())
    certificate.write_bytes(of_new.certificate.read_bytes())
    newcomer = new.sign("newcomer")
    load.begin("newcomer", newcomer.certificate, newcomer.key)
    load.more()
    broker.crash()
    load.more()

    # 2. a revoked client
    crl.write_bytes(old.revoke(thief).read_bytes() + new.revoke().read_bytes())
    eventually(lambda: broker.metric('skidway_broker_connections_closed_total{reason="revoked"}'))
    load.more()
    broker.crash()
    refused = 'skidway_broker_handshakes_failed_total{reason="revoked"}'
    eventually(lambda: broker.metric(refused))
    load.more()
    load.end()

    assert {each.partition(b"-")[0] for each in load.acknowledged} == {
        b"good",
        b"thief",
        b"newcomer",
    }
    with_plain = Consumer({"bootstrap.servers": broker.address, "group.id": "unused"})
    with_plain.assign([TopicPartition(TOPIC, 0, 0)])
    left = set(load.acknowledged)
    deadline = time.monotonic() + 300
    while left and time.monotonic() < deadline:
        left -= {each.value() for each in with_plain.consume(5000, 1.0)}
    with_plain.close()
    assert not left
