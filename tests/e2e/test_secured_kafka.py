"""Every program of ours inside a cluster that requires TLS and a login or a certificate, and denies
what is not allowed: an Apache Kafka, and a broker of ours. Each program has the rights of
docs/security.md, and not one more."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.cli import acl_file
from skidway.consumer import Consumer
from skidway.demo.site import DATACENTER, OFFLINE
from skidway.kafka.acls.acl import Acl, ResourceType
from skidway.kafka.acls.patterns import is_about
from skidway.kafka.client import Client
from skidway.kafka.client.acls import create_acls
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.security import KafkaSecurity
from skidway.producer import Producer
from support import spark_script
from support.certificates import Authority, Pair
from support.hdfs import Hdfs
from support.pipeline import Oracle, Pipeline, Writer, lines_of, source, watermarks
from support.processes import eventually, free_port, skidway
from support.secured_broker import broker_settings
from support.secured_cluster import SecuredCluster
from support.secured_kafka import SecuredKafka
from support.spark_cluster import SparkCluster

pytestmark = [pytest.mark.java]

TOPIC, OTHER = "shop", "library"
COUNT = 2_000
TIERS = ["agent", "broker", "hdfs"]
USERS = (
    "agent", "counter", "mirror", "loader", "recount", "spark", "collector", "application",
)  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs/security.md"

WAYS = [
    "kafka by password",
    pytest.param("kafka by certificate", marks=pytest.mark.foreign),
    "ours by password",
    "ours by certificate",
]
"""Which cluster, and how programs are let in."""
WARNED = "ours by password, without rules"


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rules(folder: Path) -> frozenset[Acl]:
    """Returns the rules of docs/security.md."""
    (text,) = re.findall(r"```yaml\n(acls:\n.*?)```", PAGE.read_text(), re.DOTALL)
    file = folder / "rules.yml"
    file.write_text(text)
    return acl_file.read(file)


class OurBroker(SecuredCluster):
    """A broker of ours, which is a program of the pipeline."""

    def __init__(self, folder: Path, mode: str) -> None:
        super().__init__(folder)
        self._mode, self._crl = mode, self.authority.revoke()
        self.plain = f"127.0.0.1:{free_port()}"

    def settings(self) -> dict[str, str]:
        """Returns the broker's settings."""
        more = {"authorizer.mode": self._mode, "ssl.crl.location": str(self._crl)}
        return {**broker_settings(self), **more}

    def renew(self, names: Sequence[str]) -> Iterator[None]:
        """Gives everybody certificates of another authority; then revokes the old ones, and takes
        the old authority back. Yields after each of these steps."""
        (self._folder / "next").mkdir()
        old, new = self.authority, Authority(self._folder / "next", "next")
        trusted, crl = old.certificate, self._crl
        kept = [self._copy(name) for name in names]
        trusted.write_bytes(trusted.read_bytes() + new.certificate.read_bytes())
        crl.write_bytes(old.revoke().read_bytes() + new.revoke().read_bytes())
        for name in (self.server.key.stem, *names):
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
        self.kafka, self._by_password = kafka, "password" in way
        self.oracle = Oracle(folder / "logs")
        self._given = {name: self._made(name) for name in USERS}
        mirror = {"cluster": DATACENTER, "topics": [TOPIC], **self.of("mirror")}
        named = {"cluster.name": DATACENTER} if isinstance(kafka, SecuredKafka) else {}
        self.pipeline = Pipeline(
            folder,
            [source(TOPIC, self.oracle.folder)],
            elsewhere={"broker-dc1": kafka.kafka.port} if isinstance(kafka, SecuredKafka) else {},
            settings={
                "broker-dc1": kafka.settings() if isinstance(kafka, OurBroker) else {},
                "agent": {**named, **self.of("agent")},
                "count-dc1": {"topics": [TOPIC], **self.of("counter")},
                "broker-offline": {"mirror.sources": [mirror]},
                "loader": {
                    "cluster.name": DATACENTER, "topics": [TOPIC], **self.of("loader"),
                },
                "audit": {"tiers": TIERS, **self.of("collector")},
            },
        )  # fmt: skip
        if isinstance(kafka, OurBroker):
            advertised = kafka.settings()["advertised.listeners"]
            self.pipeline.settings["broker-dc1"]["advertised.listeners"] = advertised
            self.pipeline.rewrite([source(TOPIC, self.oracle.folder)])

    def start(self, acls: Collection[Acl]) -> None:
        """Starts all programs. Before the clients, makes users, rules and topics."""
        if isinstance(self.kafka, OurBroker):
            self.pipeline.start("zookeeper", "broker-dc1")
        with Client(self.kafka.plain) as client:
            assert not any(create_acls(client, sorted(acls, key=acl_file.order)).values())
        for name in USERS if self._by_password else ():
            self.kafka.add_user(name)
        self.kafka.create_topic(AUDIT)
        self.pipeline.proxy.start()
        self.pipeline.revive()

    def _made(self, name: str) -> dict[str, str]:
        return self.kafka.login(name) if self._by_password else self.kafka.certified(name)

    def of(self, name: str) -> dict[str, str]:
        """Returns the settings of a client that is this user."""
        return self._given[name]

    def renew(self) -> Iterator[None]:
        """Replaces the keys of all programs, and yields after each step."""
        if self._by_password:
            for name in USERS:
                self.kafka.add_user(name, password=f"{name} renewed")
            yield
        elif isinstance(self.kafka, OurBroker):
            yield from self.kafka.renew(USERS)
        else:
            for name in USERS:
                self.kafka.certified(name)  # writes the files anew
            yield

    def wrong(self, file: Path) -> bytes:
        """Returns the content of a file with which the agent is not let in."""
        if self._by_password:
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
    folder = tmp_path_factory.mktemp(re.sub("[, ]+", "-", f"secured {way}"))
    (folder / "kafka").mkdir()
    with contextlib.ExitStack() as stack:
        kafka: SecuredKafka | OurBroker
        if way.startswith("ours"):
            kafka = OurBroker(folder / "kafka", "warn" if way == WARNED else "enforce")
        else:
            kafka = stack.enter_context(SecuredKafka(folder / "kafka").running())
        made = Secured(folder, kafka, way)
        stack.callback(made.pipeline.stop)
        made.start(() if way == WARNED else rules(folder))
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
        site.command(
            "recount", "audit", "recount", "--output", pipeline.site.output, "--json", "--tell"
        )
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


@pytest.fixture(scope="module")
def library(site: Secured) -> str:
    """The topic of an application, which creates it."""
    site.command("application", "topics", "create", OTHER)
    return OTHER


def test_commands(site: Secured, library: str) -> None:
    """The commands for people reach the cluster with the security of the user's profile."""
    assert TOPIC in site.command("spark", "topics", "list").split()
    assert TOPIC in site.command("spark", "topics", "describe", TOPIC)
    words = ("consume", "--topic", TOPIC, "--from-beginning", "--max", "5", "--timeout-s", "60")
    assert len(site.command("spark", *words).splitlines()) == 5
    site.command("application", "produce", "--topic", library, given="one\ntwo\n")
    words = ("consume", "--topic", library, "--from-beginning", "--max", "2", "--raw")
    assert sorted(site.command("application", *words).split()) == ["one", "two"]


def test_the_library(site: Secured, library: str) -> None:
    """An application produces and consumes with the Python library."""
    address = site.of("application")["bootstrap.servers"]
    security = site.security("application")
    sent = {b"%d" % number for number in range(100)}
    with Producer(address, security=security) as producer:
        for each in sent:
            producer.send(library, each)
    with Consumer(
        address, "readers", library, security=security, auto_offset_reset="earliest",
        zookeeper_connect=site.pipeline.site.address("zookeeper"),
    ) as consumer:  # fmt: skip
        found: list[bytes | None] = []
        eventually(lambda: found.extend(x.value for x in consumer.poll(200)) or sent <= set(found))
    assert len(set(found)) == len(found)


def test_keys_are_replaced_under_load(site: Secured, way: str) -> None:
    """While lines are written, all programs get new passwords or certificates, and are killed. Our
    broker also gets another authority and list of revoked certificates, and is killed, as is
    ZooKeeper. Rows are lines, and the audit says that each tier has them all."""
    pipeline = site.pipeline
    killed = ["agent", "count-dc1", f"broker-{OFFLINE}", "audit"]
    if way.startswith("ours"):
        killed = ["zookeeper", "broker-dc1", *killed]
    with Writer(site.oracle, "rotated.log", every_s=0.02):
        for _ in site.renew():
            for name in killed:
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
    output = f"{hdfs.url}/secured-{way.replace(' ', '-')}"
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


OPTIONAL = {
    ("IDEMPOTENT_WRITE", "CLUSTER"),
    ("DESCRIBE_CONFIGS", "CLUSTER"),
    ("DESCRIBE", "CLUSTER"),
    ("DESCRIBE", "GROUP"),
    ("READ", "GROUP"),
}
"""What programs ask for and do without (see docs/security.md, below the rules); and a client that
may write some topic does not need IDEMPOTENT_WRITE."""
SEEN = {("User:loader", f"{TOPIC}.rejected"), ("User:mirror", AUDIT)}
"""The topics that go with the chosen ones, and that these programs take if they may see them."""
ASKED = {("User:application", "DESCRIBE_CONFIGS")}
"""A producer asks how long records may be."""
UNTRIED = {
    f"ALLOW User:agent READ TOPIC {TOPIC} from *",  # after a crash in the middle of a request
    f"ALLOW User:agent READ TOPIC {TOPIC}.rejected from *",  # no line is rejected here
    f"ALLOW User:agent WRITE TOPIC {TOPIC}.rejected from *",
    f"ALLOW User:collector READ TOPIC {TOPIC}... from *",
    f"ALLOW User:collector DESCRIBE TOPIC {TOPIC}... from *",
}


@pytest.mark.foreign
@pytest.mark.parametrize("way", [WARNED], indirect=True)
def test_the_rules_are_exactly_those_that_are_needed(
    site: Secured, library: str, tmp_path: Path
) -> None:
    """A broker without rules that only warns names exactly what the rules of docs/security.md
    allow: each of its lines needs one of them, and each of them allows what a line names."""
    test_lines_become_rows_and_are_complete(site)
    test_the_mirror_copies(site)
    test_commands(site, library)
    test_the_library(site, library)
    test_spark_reads(site, tmp_path)
    site.pipeline.restart("count-dc1")
    found = warned(site.pipeline.site.logs / "broker-dc1.json")
    wanted = rules(tmp_path)
    lacking = {each for each in found if not any(allows(rule, each) for rule in wanted)}
    needless = {str(rule) for rule in wanted if not any(allows(rule, each) for each in found)}
    assert {each for each in lacking if not each.is_optional} == set()
    assert needless - UNTRIED == set()


class Denial(NamedTuple):
    """What a line of the security log names."""

    principal: str
    operation: str
    resource: str
    name: str

    @property
    def is_optional(self) -> bool:
        is_seen = (self.principal, self.name) in SEEN
        is_asked = (self.principal, self.operation) in ASKED
        return is_seen or is_asked or (self.operation, self.resource) in OPTIONAL


def warned(log: Path) -> set[Denial]:
    lines = [json.loads(each) for each in log.read_text().splitlines() if '"would_deny"' in each]
    return {Denial(*(each[field] for field in Denial._fields)) for each in lines}


def allows(rule: Acl, denial: Denial) -> bool:
    """Returns whether the rule is about just this operation on this resource."""
    same = (rule.principal, rule.operation.name) == (denial.principal, denial.operation)
    return same and is_about(rule.resource, ResourceType[denial.resource], denial.name)
