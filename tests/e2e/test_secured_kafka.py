"""Every program of ours inside an Apache Kafka that requires TLS and a login, and denies what is
not allowed: each has the rights of docs/security.md, and not one more. And the same with a broker
of ours that requires certificates."""

from __future__ import annotations

import contextlib
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.consumer import Consumer
from skidway.demo.site import DATACENTER, OFFLINE
from skidway.kafka.client import Client, NewTopic
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import KafkaSecurity
from skidway.producer import Producer
from support import spark_script
from support.certificates import Authority, Pair
from support.hdfs import Hdfs
from support.pipeline import Oracle, Pipeline, Writer, lines_of, source, watermarks
from support.processes import eventually, free_port, skidway
from support.secured_kafka import SecuredKafka
from support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.java]

TOPIC, OTHER = "shop", "library"
COUNT = 2_000
TIERS = ["agent", "broker", "hdfs"]
DESCRIBED = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")
TELLS = ("WRITE", "READ", "DESCRIBE")
"""The rights of a program that sends messages to the audit."""


def give_rights(kafka: SecuredKafka) -> None:
    """Makes the users, with the rights of docs/security.md."""
    owned = (*DESCRIBED, "WRITE", "CREATE")
    kafka.allow("agent", owned, topics=[TOPIC, f"{TOPIC}.rejected"])
    kafka.allow("counter", DESCRIBED, topics=["*"])
    kafka.allow("mirror", DESCRIBED, topics=[TOPIC])
    for name in ("loader", "recount", "spark"):
        kafka.allow(name, DESCRIBED, topics=[TOPIC])
    for name in ("agent", "counter", "loader", "recount"):
        kafka.allow(name, TELLS, topics=[AUDIT])
    kafka.allow("collector", ("READ", "DESCRIBE"), topics=[AUDIT])
    kafka.allow("collector", ("READ", "DESCRIBE"), prefixes=[TOPIC])
    kafka.allow("application", ("WRITE", "READ", "DESCRIBE", "CREATE"), topics=[OTHER, "letters"])


USERS = (
    "agent", "counter", "mirror", "loader", "recount", "spark", "collector", "application",
)  # fmt: skip


WAYS = ["password", pytest.param("certificate", marks=pytest.mark.foreign), "our broker"]


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class OurBroker:
    """A broker of ours that requires certificates, beside its listener on loopback for tests."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self._folder, self._pair = folder, self.authority.sign("broker")
        self._crl = self.authority.revoke()
        self._ports = free_port(), free_port()
        self.plain, self._mutual = (f"127.0.0.1:{port}" for port in self._ports)

    def settings(self) -> dict[str, Any]:
        """Returns the broker's settings."""
        return {
            "listeners": [f"PLAINTEXT://{self.plain}", f"SSL://{self._mutual}"],
            "ssl.certificate.location": str(self._pair.certificate),
            "ssl.key.location": str(self._pair.key),
            "ssl.ca.location": str(self.authority.certificate),
            "ssl.crl.location": str(self._crl),
            "ssl.client.auth": "required",
        }

    def create_topic(self, name: str) -> None:
        with Client(self.plain) as client:
            assert client.create_topics([NewTopic(name, 2, 1)]) == {name: None}

    def certified(self, name: str) -> dict[str, str]:
        """See SecuredKafka."""
        return self.authority.client(self._mutual, self.authority.sign(name))

    def renew(self, names: Sequence[str]) -> Iterator[None]:
        """Gives everybody certificates of another authority; then revokes the old ones, and takes
        the old authority back. Yields after each of these steps."""
        (self._folder / "next").mkdir()
        old, new = self.authority, Authority(self._folder / "next", "next")
        trusted, crl = old.certificate, self._crl
        kept = [self._copy(name) for name in names]
        trusted.write_bytes(trusted.read_bytes() + new.certificate.read_bytes())
        crl.write_bytes(old.revoke().read_bytes() + new.revoke().read_bytes())
        for name in ("broker", *names):
            put(new.sign(name), self._folder)
        yield
        crl.write_bytes(old.revoke(*kept).read_bytes() + new.revoke().read_bytes())
        trusted.write_bytes(new.certificate.read_bytes())
        yield

    def _copy(self, name: str) -> Pair:
        path = self._folder / f"{name}.old.pem"
        path.write_bytes((self._folder / f"{name}.pem").read_bytes())
        return Pair(path, path)


def put(pair: Pair, folder: Path) -> None:
    """Puts a certificate and its key in the place of those with the same names in a folder."""
    pair.key.replace(folder / pair.key.name)
    pair.certificate.replace(folder / pair.certificate.name)


class Secured:
    """A pipeline whose datacenter lets in nobody unknown. The mirror copies from there to a broker
    of ours, which lets in everybody; loader and audit stay with the datacenter."""

    def __init__(self, folder: Path, kafka: SecuredKafka | OurBroker, way: str) -> None:
        self.kafka, self._way = kafka, way
        self.oracle = Oracle(folder / "logs")
        self._given = {name: self._made(name) for name in USERS}
        mirror = {"cluster": DATACENTER, "topics": [TOPIC], **self.of("mirror")}
        self.pipeline = Pipeline(
            folder,
            [source(TOPIC, self.oracle.folder)],
            elsewhere={"broker-dc1": kafka.kafka.port} if isinstance(kafka, SecuredKafka) else {},
            settings={
                "broker-dc1": kafka.settings() if isinstance(kafka, OurBroker) else {},
                "agent": {"cluster.name": DATACENTER, **self.of("agent")},
                "count-dc1": {"topics": [TOPIC], **self.of("counter")},
                "broker-offline": {"mirror.sources": [mirror]},
                "loader": {
                    "cluster.name": DATACENTER, "topics": [TOPIC], **self.of("loader"),
                },
                "audit": {"tiers": TIERS, **self.of("collector")},
            },
        )  # fmt: skip
        if isinstance(kafka, OurBroker):
            advertised = {"advertised.listeners": f"PLAINTEXT://{kafka.plain}"}
            self.pipeline.settings["broker-dc1"] |= advertised
            self.pipeline.rewrite([source(TOPIC, self.oracle.folder)])

    def _made(self, name: str) -> dict[str, str]:
        if self._way == "password":
            assert isinstance(self.kafka, SecuredKafka)
            self.kafka.add_user(name)
            return self.kafka.login(name)
        return self.kafka.certified(name)

    def of(self, name: str) -> dict[str, str]:
        """Returns the settings of a client that is this user."""
        return self._given[name]

    def renew(self) -> Iterator[None]:
        """Replaces the keys of all programs, and yields after each step."""
        if isinstance(self.kafka, OurBroker):
            yield from self.kafka.renew(USERS)
        elif self._way == "password":
            for name in USERS:
                self.kafka.add_user(name, password=f"{name} renewed")
            yield
        else:
            for name in USERS:
                self.kafka.certified(name)  # writes the files anew
            yield

    def wrong(self, file: Path) -> bytes:
        """Returns the content of a file with which the agent is not let in."""
        if self._way == "password":
            return b"guessed\n"
        key = serialization.load_pem_private_key(file.with_suffix(".key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return Authority(file.parent, "other").sign("stranger", key=key).certificate.read_bytes()

    def security(self, name: str) -> KafkaSecurity:
        return KafkaSecurity.of({k: v for k, v in self.of(name).items() if "bootstrap" not in k})

    def command(
        self, user: str, *words: str, within_s: float = 120, given: str | None = None
    ) -> str:
        """Runs a command of ours with this user's profile, and returns its output."""
        profile = self.pipeline.site.folder / f"{user}.profile.yml"
        settings = {**self.of(user), "schema.registry.url": self.pipeline.site.url("registry")}
        profile.write_text(yaml.safe_dump(settings))
        done = subprocess.run(
            skidway(*words), env={**spark_script.environment(), "SKIDWAY_PROFILE": str(profile)},
            input=given or "", capture_output=True, text=True, timeout=within_s, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def load(self, *words: str) -> dict[str, Any]:
        config = str(self.pipeline.site.config("loader"))
        program = self.command("loader", "load", "run", "--json", "--config", config, *words,
                               within_s=300)  # fmt: skip
        return dict(json.loads(program))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, way: str) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp(f"secured-by-{way.replace(' ', '-')}")
    (folder / "kafka").mkdir()
    with contextlib.ExitStack() as stack:
        kafka: SecuredKafka | OurBroker
        if way == "our broker":
            kafka = OurBroker(folder / "kafka")
        else:
            kafka = stack.enter_context(SecuredKafka(folder / "kafka").running())
            kafka.create_topic(AUDIT)
            give_rights(kafka)
        made = Secured(folder, kafka, way)
        stack.callback(made.pipeline.stop)
        made.pipeline.start()
        made.oracle.write("app.log", COUNT)
        eventually(lambda: made.pipeline.settled_bytes(made.oracle.folder) == made.oracle.bytes)
        yield made


def test_lines_become_rows_and_are_complete(site: Secured) -> None:
    """Lines go from the agent through the secured Kafka into rows, each once, while the agent is
    killed, and the audit says that each tier has them all."""
    site.oracle.write("app.log", COUNT)
    site.pipeline.restart("agent")
    pipeline = site.pipeline
    eventually(lambda: pipeline.settled_bytes(site.oracle.folder) == site.oracle.bytes)
    loaded = eventually(lambda: site.load()["topics"][0]["rows"] and rows(site) == 2 * COUNT)
    assert loaded
    site.oracle.expect_exactly(list(lines_of(pipeline.rows_of(TOPIC))))
    eventually(lambda: complete(site), every_s=1, what="complete")
    recounted = json.loads(
        site.command("recount", "audit", "recount", "--output", pipeline.site.output, "--json")
    )
    (topic,) = recounted["topics"]
    assert (topic["rows"], topic["faults"]) == (2 * COUNT, [])


def rows(site: Secured) -> int:
    return site.pipeline.rows_of(TOPIC).num_rows


def complete(site: Secured) -> bool:
    found = site.pipeline.audit("report")["buckets"]
    return bool(found) and all(each["verdict"] == "complete" for each in found)


def test_the_mirror_copies(site: Secured) -> None:
    """A mirror copies the topic of the secured Kafka into a cluster of ours, offset by offset."""
    mirrored = f"{DATACENTER}.{TOPIC}"
    address = site.pipeline.site.address(f"broker-{OFFLINE}")
    eventually(lambda: ends(address, mirrored) == ends(site.kafka.plain, TOPIC) != [])


def ends(address: str, topic: str) -> list[int]:
    found = watermarks(KafkaConnection(address), [topic])
    return [found[each] for each in sorted(found)]


def test_commands(site: Secured) -> None:
    """The commands for people reach the cluster with the security of the user's profile."""
    assert TOPIC in site.command("spark", "topics", "list").split()
    assert TOPIC in site.command("spark", "topics", "describe", TOPIC)
    words = ("consume", "--topic", TOPIC, "--from-beginning", "--max", "5", "--timeout-s", "60")
    assert len(site.command("spark", *words).splitlines()) == 5
    site.kafka.create_topic("letters")
    produced = ("produce", "--topic", "letters")
    site.command("application", *produced, given="one\ntwo\n")
    words = ("consume", "--topic", "letters", "--from-beginning", "--max", "2", "--raw")
    assert sorted(site.command("application", *words).split()) == ["one", "two"]


def test_the_library(site: Secured) -> None:
    """An application produces and consumes with the Python library."""
    address = site.of("application")["bootstrap.servers"]
    security = site.security("application")
    site.kafka.create_topic(OTHER)
    with Producer(address, security=security) as producer:
        for number in range(100):
            producer.send(OTHER, b"%d" % number)
    with Consumer(
        address, "readers", OTHER, security=security, auto_offset_reset="earliest",
        zookeeper_connect=site.pipeline.site.address("zookeeper"),
    ) as consumer:  # fmt: skip
        found: list[bytes | None] = []
        eventually(lambda: found.extend(x.value for x in consumer.poll(200)) or len(found) >= 100)
    assert sorted(found, key=lambda x: int(x or b"-1")) == [b"%d" % each for each in range(100)]


def test_keys_are_replaced_under_load(site: Secured, way: str) -> None:
    """While lines are written, all programs get new passwords or certificates, and are killed. Our
    broker also gets another authority and list of revoked certificates, and is killed. Rows are
    lines, and the audit says that each tier has them all."""
    pipeline = site.pipeline
    killed = ["agent", "count-dc1", f"broker-{OFFLINE}", "audit"]
    with Writer(site.oracle, "rotated.log", every_s=0.02):
        for _ in site.renew():
            for name in ["broker-dc1", *killed] if way == "our broker" else killed:
                pipeline.restart(name)
            written = site.oracle.bytes
            eventually(lambda: pipeline.settled_bytes(site.oracle.folder) >= written)  # noqa: B023
    eventually(lambda: pipeline.settled_bytes(site.oracle.folder) == site.oracle.bytes)
    eventually(lambda: site.load() and rows(site) == len(site.oracle.lines))
    site.oracle.expect_exactly(list(lines_of(pipeline.rows_of(TOPIC))))
    eventually(lambda: complete(site), every_s=1, what="complete")
    address = pipeline.site.address(f"broker-{OFFLINE}")
    mirrored = f"{DATACENTER}.{TOPIC}"
    eventually(lambda: ends(address, mirrored) == ends(site.kafka.plain, TOPIC) != [])


QUERY = """
import json, sys
import skidway
from pyspark.sql import SparkSession
spark = SparkSession.builder.config(map=json.loads(sys.argv[1])).getOrCreate()
skidway.register(spark)
options = json.loads(sys.argv[2])
print(spark.read.format("skidway").options(**options).load().select("line").distinct().count())
"""


@pytest.mark.foreign
def test_spark_reads(site: Secured, tmp_path: Path) -> None:
    """Spark reads the topic through `format("skidway")`, with paths of files as options."""
    options = {f"kafka.{key}": value for key, value in site.of("spark").items()}
    options |= {"subscribe": TOPIC, "schema.registry.url": site.pipeline.site.url("registry")}
    found = spark_script.answer(QUERY, json.dumps(options), folder=tmp_path)
    assert found == len(site.oracle.lines)


@pytest.mark.foreign
def test_tasks_on_a_spark_cluster(site: Secured, hdfs: Hdfs, tmp_path: Path, way: str) -> None:
    """Tasks on the workers of a Spark cluster log in by the files of the workers' hosts."""
    output = f"{hdfs.url}/secured-by-{way.replace(' ', '-')}"
    with SparkCluster(tmp_path).running() as workers:
        properties = {
            "output": output, "spark.master": workers.url, "spark.above.offsets": "0",
            "spark.conf.spark.driver.host": "127.0.0.1",
            "spark.conf.spark.driver.bindAddress": "127.0.0.1",
            "spark.conf.spark.executor.memory": "512m",
        }  # fmt: skip
        site.load(*(word for k, v in properties.items() for word in ("--set", f"{k}={v}")))
    site.oracle.expect_exactly(list(lines_of(site.pipeline.rows_of(TOPIC, output))))


def test_an_agent_whose_login_is_refused_keeps_its_lines(site: Secured) -> None:
    """An agent with a wrong password or certificate says so in /health and in its metrics, with the
    file; when the file is mended, its lines arrive, each once."""
    agent = site.of("agent")
    file = Path(agent.get("sasl.password.location") or agent["ssl.certificate.location"])
    good = file.read_bytes()
    site.pipeline.kill("agent")
    file.write_bytes(site.wrong(file))
    site.oracle.write("later.log", COUNT)
    program = site.pipeline.programs["agent"].start()
    health = site.pipeline.site.health("agent")
    eventually(lambda: str(file) in answer_of(health) or not program.running)
    refused = answer_of(health.replace("/health", "/metrics"))
    assert 'skidway_kafka_refused_connections_total{setting="' in refused
    file.write_bytes(good)
    eventually(lambda: site.pipeline.settled_bytes(site.oracle.folder) == site.oracle.bytes)
    site.load()
    site.oracle.expect_exactly(list(lines_of(site.pipeline.rows_of(TOPIC))))


def answer_of(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""
