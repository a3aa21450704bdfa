"""Our client against a real Apache Kafka with TLS, SASL and an authorizer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skidway import settings
from skidway.errors import ConfigurationRefused, SkidwayError, Unreachable
from skidway.kafka import columns
from skidway.kafka.batch import EncodedBatch
from skidway.kafka.client import Client, Fetcher, NewTopic, Producer
from skidway.kafka.settings import KafkaSettings
from skidway.kafka.types import TopicPartition
from support.certificates import Authority
from support.kafka import topic_name
from support.processes import eventually
from support.secured_cluster import PLAIN_USER
from support.secured_kafka import SecuredKafka

pytestmark = pytest.mark.java

REAUTHENTICATION_MS = 3_000


@dataclass(frozen=True, kw_only=True)
class ClientSettings(KafkaSettings):
    """The settings of a client alone."""


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    folder = tmp_path_factory.mktemp("secured-kafka")
    made = SecuredKafka(folder, reauthentication_ms=REAUTHENTICATION_MS)
    with made.running():
        made.write_password(PLAIN_USER, f"{PLAIN_USER} secret")
        for name, mechanism in (("ada", "SCRAM-SHA-512"), ("eve", "SCRAM-SHA-256")):
            made.add_user(name, mechanism)
        yield made


@pytest.fixture
def topic(kafka: SecuredKafka) -> str:
    name = topic_name("secured")
    with Client(kafka.plain) as client:
        assert client.create_topics([NewTopic(name, 1, 1)]) == {name: None}
    for user in ("ada", "eve", "carl", PLAIN_USER):
        kafka.allow(user, ("READ", "WRITE"), topics=[name])
    return name


def client_of(given: Mapping[str, str], **more: str) -> Client:
    words = [f"{key}={value}" for key, value in {**given, **more}.items()]
    return settings.load(ClientSettings, None, words).kafka.within(5_000).client()


def batch_of(value: bytes) -> EncodedBatch:
    return columns.encode(pa.array([value], pa.binary()), np.zeros(1, np.int64))


def moved(client: Client, topic: str, count: int) -> list[bytes]:
    """Sends `count` records one after the other, and returns what the topic then has."""
    tp = TopicPartition(topic, 0)
    producer = Producer(client)
    for number in range(count):
        producer.send(tp, batch_of(b"%d" % number), number)
        assert producer.flush(10_000)
    assert all(each.error is None for each in producer.poll(0))
    return read(client, topic, count)


def read(client: Client, topic: str, count: int) -> list[bytes]:
    fetcher = Fetcher(client)
    fetcher.seek(TopicPartition(topic, 0), 0)
    found: list[bytes] = []
    while len(found) < count:
        for fetched in fetcher.poll(1_000):
            for raw in fetched.batches:
                found += columns.decode(raw).values.to_pylist()
    return found


@pytest.mark.parametrize("way", ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "certificate"])
def test_a_client_is_let_in(kafka: SecuredKafka, topic: str, way: str) -> None:
    """A client with a password or with a certificate writes and reads what it may."""
    users = {"SCRAM-SHA-512": "ada", "SCRAM-SHA-256": "eve", "PLAIN": PLAIN_USER}
    given = kafka.certified("carl") if way == "certificate" else kafka.login(users[way], way)
    with client_of(given) as client:
        assert moved(client, topic, 20) == [b"%d" % number for number in range(20)]


def test_large_records_pass(kafka: SecuredKafka, topic: str) -> None:
    """Records of many TLS records arrive whole in both directions."""
    values = [bytes([number]) * 700_000 for number in range(12)]
    with client_of(kafka.login("ada")) as client:
        producer = Producer(client)
        for number, value in enumerate(values):
            producer.send(TopicPartition(topic, 0), batch_of(value), number)
        assert producer.flush(30_000)
        assert read(client, topic, len(values)) == values


def test_a_login_is_renewed(kafka: SecuredKafka, topic: str) -> None:
    """If a broker lets logins end, the client logs in again on the same connection, and no record
    is refused or lost."""
    tp = TopicPartition(topic, 0)
    sent = 0
    with client_of(kafka.login("ada")) as client:
        producer = Producer(client)
        began = time.monotonic()
        while time.monotonic() < began + 3 * REAUTHENTICATION_MS / 1000:
            producer.send(tp, batch_of(b"%d" % sent), sent)
            assert producer.flush(10_000)
            sent += 1
        assert all(each.error is None for each in producer.poll(0))
        assert client.session.failure_count == 0
        assert read(client, topic, sent) == [b"%d" % number for number in range(sent)]


def test_a_changed_password_is_read_again(kafka: SecuredKafka, topic: str) -> None:
    """After the password was changed at the broker and in the file, a client that runs goes on."""
    kafka.add_user("turned")
    kafka.allow("turned", ("READ", "WRITE"), topics=[topic])
    with client_of(kafka.login("turned")) as client:
        assert moved(client, topic, 5) == [b"%d" % number for number in range(5)]
        kafka.add_user("turned", password="another secret")
        failures = client.session.failure_count
        eventually(lambda: client.metadata([topic]) and client.session.failure_count >= failures)
        assert len(moved(client, topic, 10)) >= 10


class Mistakes:
    """Makes the mistakes of those who configure a client. Each method returns the settings."""

    def __init__(self, kafka: SecuredKafka, folder: Path) -> None:
        self._kafka, self._folder = kafka, folder

    def wrong_password(self) -> dict[str, str]:
        path = self._folder / "password"
        path.write_text("guessed\n")
        return self._kafka.login("ada") | {"sasl.password.location": str(path)}

    def other_mechanism(self) -> dict[str, str]:
        return self._kafka.login("ada") | {"sasl.mechanism": "SCRAM-SHA-256"}

    def wrong_authority(self) -> dict[str, str]:
        other = Authority(self._folder, "other").certificate
        return self._kafka.login("ada") | {"ssl.ca.location": str(other)}

    def stranger(self) -> dict[str, str]:
        pair = Authority(self._folder, "other").sign("mallory")
        return self._kafka.certified("mallory", pair)

    def no_certificate(self) -> dict[str, str]:
        given = self._kafka.certified("nobody")
        return {key: value for key, value in given.items() if "certificate" not in key}

    def plain_on_tls(self) -> dict[str, str]:
        return {"bootstrap.servers": self._kafka.mutual}

    def tls_on_plain(self) -> dict[str, str]:
        return self._kafka.certified("ada") | {"bootstrap.servers": self._kafka.plain}


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("wrong_password", "the broker refuses the login of ada by SCRAM-SHA-512 (sasl.password.l"),
        ("other_mechanism", "the broker refuses the login of ada by SCRAM-SHA-256"),
        ("wrong_authority", "TLS: the certificate of the other side is not accepted: "),
        ("stranger", "TLS: the other side does not accept this side's certificate (ssl.cert"),
        ("no_certificate", "this side's certificate (ssl.certificate.location: not set)"),
        ("plain_on_tls", "the peer speaks TLS, this side does not"),
        ("tls_on_plain", "the broker closed the connection in the handshake of TLS"),
    ],
)
def test_a_mistake_is_one_sentence(
    kafka: SecuredKafka, tmp_path: Path, mistake: str, words: str
) -> None:
    """A client that is not let in says why, and which file may be wrong. To a command it is an
    unreachable broker."""
    given = getattr(Mistakes(kafka, tmp_path), mistake)()
    with client_of(given) as client, pytest.raises(Unreachable) as caught:
        client.metadata([])
    assert words in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"security.protocol": "TLS"}, "security.protocol: 'TLS' is none of PLAINTEXT, SSL"),
        ({"sasl.mechanism": "GSSAPI"}, "sasl.mechanism: 'GSSAPI' is none of PLAIN, SCRAM-SHA-256"),
        ({"sasl.password.location": "/nowhere"}, "sasl.password.location: /nowhere cannot be read"),
        ({"ssl.ca.location": "/nowhere"}, "ssl.ca.location: /nowhere cannot be used: No such file"),
        ({"ssl.certificate.location": "/nowhere"}, "ssl.certificate.location: /nowhere"),
    ],
)
def test_a_wrong_setting_is_refused(
    kafka: SecuredKafka, change: dict[str, str], words: str
) -> None:
    """A program does not start with settings that cannot be used, and names the one."""
    with pytest.raises(ConfigurationRefused) as caught:
        client_of(kafka.login("ada") | change)
    assert str(caught.value).startswith(words)
    assert isinstance(caught.value, SkidwayError)
