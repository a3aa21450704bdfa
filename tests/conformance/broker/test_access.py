"""Users and rules of a real broker live in ZooKeeper, and count from the moment of the answer."""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from skidway.kafka.acls.acl import (
    ANY_NAME,
    Acl,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.client import Client
from skidway.kafka.client.acls import create_acls, delete_acls, describe_acls
from skidway.kafka.client.scram_credentials import delete_credentials
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from skidway.kafka.protocol.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from skidway.kafka.protocol.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from skidway.kafka.security import KafkaSecurity
from skidway.kafka.source import CLUSTER_NAME
from skidway.producer import Producer
from skidway.security.contexts import TlsFiles
from support.batches import batch
from support.processes import eventually, run_skidway
from support.raw_client import RawClient, TlsClient
from support.secured_broker import SecuredBroker

TOPIC, USER = "shop", "ada"
WRITE = Acl(
    ResourcePattern(ResourceType.TOPIC, TOPIC),
    f"User:{USER}",
    ANY_NAME,
    Operation.WRITE,
    Permission.ALLOW,
)
REQUESTS = 10_000


@pytest.fixture
def cluster(tmp_path: Path, zookeeper: str) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path, zookeeper).running() as made:
        made.create_topic(TOPIC)
        made.add_user(USER)
        yield made


@pytest.fixture
def nodes(zookeeper: str) -> Iterator[KazooClient]:
    client = KazooClient(zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


class SecuredClient(TlsClient):
    """A raw client that has logged in."""

    def __init__(self, cluster: SecuredBroker, user: str) -> None:
        port = int(cluster.address.rpartition(":")[2])
        super().__init__(port, TlsFiles(ca=cluster.authority.certificate))
        self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1, SaslHandshakeResponse)
        message = f"\0{user}\0{user} secret".encode()
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer = self.ask(request, 2, SaslAuthenticateResponse)
        assert isinstance(answer, SaslAuthenticateResponse)
        self.login_error = answer.error_code


def security(cluster: SecuredBroker) -> KafkaSecurity:
    settings = cluster.login(USER)
    return KafkaSecurity.of({k: v for k, v in settings.items() if k != "bootstrap.servers"})


def logs_in(cluster: SecuredBroker, user: str = USER) -> bool:
    with SecuredClient(cluster, user) as client:
        return client.login_error == 0


def may_write(cluster: SecuredBroker, user: str = USER) -> bool:
    with SecuredClient(cluster, user) as client:
        assert client.login_error == 0
        code = client.produce(TOPIC, batch(), acks=1).error_code
    assert code in (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return code == 0


def test_a_removed_rule_counts_from_its_answer(cluster: SecuredBroker) -> None:
    """In a run of 10,000 requests, none that is sent after the removal of the rule was answered is
    accepted, and what was accepted is in the log, no more and no less."""
    with Client(cluster.plain) as admin:
        create_acls(admin, [WRITE])
        answered_at: list[float] = []

        is_under_way = threading.Event()

        def remove() -> None:
            assert is_under_way.wait(60)
            assert delete_acls(admin, [WRITE]) == {WRITE: None}
            answered_at.append(time.monotonic())

        remover = threading.Thread(target=remove)
        sent, codes = [], []
        with SecuredClient(cluster, USER) as client:
            client.produce(TOPIC, batch(), acks=1)
            remover.start()
            for number in range(REQUESTS):
                if number == REQUESTS // 10:
                    is_under_way.set()
                sent.append(time.monotonic())
                codes.append(client.produce(TOPIC, batch(), acks=1).error_code)
        remover.join()
        accepted = codes.count(0)
        assert 0 < accepted < REQUESTS
        assert codes == [0] * accepted + [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * (
            REQUESTS - accepted
        )
        assert sent[accepted - 1] <= answered_at[0]
    with RawClient(cluster.broker.port) as reader:
        assert reader.produce(TOPIC, batch(), acks=1).base_offset == accepted + 1


@pytest.mark.parametrize("mode", ["enforce", "warn"])
def test_a_producer_id_is_its_principals(tmp_path: Path, zookeeper: str, mode: str) -> None:
    """Whoever may write to a topic cannot end the epoch of another's producer there, nor take its
    sequence or an id that will be given; if the rules are not enforced, it is only logged."""
    with SecuredBroker(tmp_path, zookeeper, authorizer_mode=mode).running() as cluster:
        cluster.create_topic(TOPIC)
        for user in (USER, "eve"):
            cluster.add_user(user)
        acls = [dataclasses.replace(WRITE, principal=f"User:{x}") for x in (USER, "eve")]
        with Client(cluster.plain) as admin:
            create_acls(admin, acls)
        with SecuredClient(cluster, USER) as ada, SecuredClient(cluster, "eve") as eve:
            id_, other = new_id(ada), new_id(eve)
            assert (sent(ada, id_, 0), sent(eve, other, 0)) == (ErrorCode.NONE, ErrorCode.NONE)
            tries = [(id_, 1), (id_, 0), (id_ + 1, 0), (1 << 62, 0), (7, 0)]
            answers = {sent(eve, *each, epoch=each[1] ^ 1) for each in tries}
            if mode == "enforce":
                assert answers == {ErrorCode.INVALID_PRODUCER_ID_MAPPING}
                assert [sent(ada, id_, each) for each in (1, 2)] == [ErrorCode.NONE] * 2
            else:
                assert ErrorCode.NONE in answers
    told = cluster.broker.program.output()
    assert '"operation": "IDEMPOTENT_WRITE"' in told


def new_id(client: SecuredClient) -> int:
    """Asks for a producer id."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    answer = client.ask(request, 4, InitProducerIdResponse)
    assert isinstance(answer, InitProducerIdResponse)
    assert answer.error_code == 0
    return answer.producer_id


def sent(client: SecuredClient, id_: int, sequence: int, epoch: int = 0) -> ErrorCode:
    """Sends a batch of a producer. Returns the error of the answer."""
    data = batch(b"x", producer_id=id_, epoch=epoch, sequence=sequence)
    return ErrorCode(client.produce(TOPIC, data).error_code)


def test_whoever_is_let_in_learns_the_name_of_the_cluster(cluster: SecuredBroker) -> None:
    """The messages of the audit name the cluster. So a client without any right learns its name,
    and nothing else of the brokers."""
    with Client(cluster.address, security=security(cluster)) as client:
        assert client.broker_configs(CLUSTER_NAME) == {CLUSTER_NAME: "main"}
        assert client.broker_configs(CLUSTER_NAME, "log.dirs") == client.broker_configs() == {}


def test_a_removed_user_is_put_out(cluster: SecuredBroker) -> None:
    """When a user is removed, its open connections are closed and it cannot log in again; another
    user's connection stays."""
    cluster.add_user("bob")
    cluster.allow("bob", ["WRITE"], topics=[TOPIC])
    with SecuredClient(cluster, USER) as ada, SecuredClient(cluster, "bob") as bob:
        with Client(cluster.plain) as admin:
            delete_credentials(admin, USER, ["SCRAM-SHA-512"])
        assert ada.receive() == b""
        assert bob.produce(TOPIC, batch(), acks=1).error_code == 0
    assert not logs_in(cluster)


def test_rules_of_kafkas_tools_are_followed(cluster: SecuredBroker, nodes: KazooClient) -> None:
    """A rule that a tool of Apache Kafka 3.9 has written into ZooKeeper counts without a restart,
    and goes with its node."""
    assert not may_write(cluster)
    rule = {
        "principal": f"User:{USER}",
        "permissionType": "Allow",
        "operation": "Write",
        "host": "*",
    }
    content = json.dumps({"version": 1, "acls": [rule]}).encode()
    nodes.create("/kafka-acl-extended/prefixed/Topic/sh", content, makepath=True)
    eventually(lambda: may_write(cluster))
    nodes.delete("/kafka-acl-extended/prefixed/Topic/sh")
    eventually(lambda: not may_write(cluster))


def test_our_rules_are_those_of_kafkas_tools(cluster: SecuredBroker, nodes: KazooClient) -> None:
    """Rules and users have Kafka's form in ZooKeeper, and go without a trace."""
    with Client(cluster.plain) as admin:
        create_acls(admin, [WRITE])
        content = json.loads(nodes.get(f"/kafka-acl/Topic/{TOPIC}")[0])
        assert content == {
            "version": 1,
            "acls": [
                {
                    "principal": f"User:{USER}",
                    "permissionType": "Allow",
                    "operation": "Write",
                    "host": "*",
                }
            ],
        }
        delete_acls(admin, [WRITE])
        assert nodes.get_children("/kafka-acl/Topic") == []
        config = json.loads(nodes.get(f"/config/users/{USER}")[0])["config"]
        assert config["SCRAM-SHA-512"].startswith("salt=")
        delete_credentials(admin, USER, ["SCRAM-SHA-512"])
        assert nodes.get_children("/config/users") == []


def test_a_damaged_node_opens_nothing(cluster: SecuredBroker, nodes: KazooClient) -> None:
    """Rules that cannot be read close their resource, a credential that cannot be read lets nobody
    in, and the log names the node. When it is mended, everything is as before."""
    with Client(cluster.plain) as admin:
        create_acls(admin, [WRITE])
    assert may_write(cluster)
    path = f"/kafka-acl/Topic/{TOPIC}"
    good = nodes.get(path)[0]
    nodes.set(path, b"{")
    eventually(lambda: not may_write(cluster))
    assert path in cluster.broker.program.output()
    for bad in (b"[" * 200_000, good.replace(b'"Allow"', b'"Any"')):
        nodes.set(path, bad)
        eventually(lambda: not may_write(cluster))
        with Client(cluster.plain) as admin:
            [closed] = describe_acls(admin, WRITE.resource)
            assert closed.permission is Permission.DENY
            assert delete_acls(admin, [closed]) == {closed: None}
            assert nodes.exists(path) is None
        nodes.create(path, good)
        eventually(lambda: may_write(cluster))
    user = nodes.get(f"/config/users/{USER}")[0]
    nodes.set(f"/config/users/{USER}", user.replace(b"salt=", b"salt=!"))
    eventually(lambda: not logs_in(cluster))
    assert '"user_refused"' in cluster.broker.program.output()
    nodes.set(f"/config/users/{USER}", user)
    eventually(lambda: logs_in(cluster))


def test_rules_and_users_survive_a_kill(cluster: SecuredBroker) -> None:
    """After kill -9 the broker knows the users and rules, before it serves anybody."""
    with Client(cluster.plain) as admin:
        create_acls(admin, [WRITE])
    cluster.broker.crash()
    assert may_write(cluster)
    cluster.add_user("bob")
    assert not may_write(cluster, "bob")


def test_re_authentication_under_load(tmp_path: Path, zookeeper: str) -> None:
    """A producer of ours whose logins last 2 s logs in again on its connection, for as long as it
    runs: each record is stored once."""
    with SecuredBroker(tmp_path, zookeeper, reauthentication_ms=2_000).running() as cluster:
        cluster.create_topic(TOPIC)
        cluster.add_user(USER)
        cluster.allow(USER, ["WRITE", "CREATE"], topics=[TOPIC])
        deadline, sent = time.monotonic() + 7, 0
        with Producer(cluster.address, security=security(cluster)) as producer:
            while time.monotonic() < deadline:
                producer.send(TOPIC, b"x", partition=0).result(10)
                sent += 1
        logins = cluster.broker.metric("skidway_broker_authentications_total")
        assert logins >= 4
        with RawClient(cluster.broker.port) as reader:
            assert reader.produce(TOPIC, batch(), acks=1).base_offset == sent
        assert "login_failed" not in cluster.broker.program.output()


def test_the_first_user_is_written_into_zookeeper(
    cluster: SecuredBroker, zookeeper: str, tmp_path: Path
) -> None:
    """`skidway users add --zookeeper` gives a cluster its first user, whom a running broker lets in
    at once."""
    path = tmp_path / "first.password"
    path.write_text("first secret\n")
    words = ("users", "add", "first", "--password-file", str(path), "--zookeeper")
    found = run_skidway(*words, "--set", f"zookeeper.connect={zookeeper}")
    assert (found.returncode, found.stdout) == (0, "first can log in by SCRAM-SHA-512\n")
    eventually(lambda: logs_in(cluster, "first"))


def test_two_brokers_change_the_same_rules(
    cluster: SecuredBroker, zookeeper: str, tmp_path: Path
) -> None:
    """A rule that one broker has just added can be deleted at another one, which has not read it
    yet; and rules that do not fit are refused without those that do."""
    (tmp_path / "other").mkdir()
    with (
        SecuredBroker(tmp_path / "other", zookeeper, broker_id=2).running() as other,
        Client(cluster.plain) as here,
        Client(other.plain) as there,
    ):
        for _ in range(30):
            assert create_acls(here, [WRITE]) == {WRITE: None}
            assert delete_acls(there, [WRITE]) == {WRITE: None}
        eventually(lambda: describe_acls(here) == describe_acls(there) == [])
    name = "x" * 240
    long = ResourcePattern(ResourceType.GROUP, name)
    many = [
        Acl(long, f"User:{number:05}{name}", ANY_NAME, Operation.READ, Permission.ALLOW)
        for number in range(4_000)
    ]
    with Client(cluster.plain) as admin:
        results = [create_acls(admin, [WRITE, *many[at : at + 900]]) for at in range(0, 4_000, 900)]
    assert all(each[WRITE] is None for each in results)
    refused = [error for each in results for error in each.values() if error is not None]
    assert {error.code for error in refused} == {ErrorCode.POLICY_VIOLATION}
