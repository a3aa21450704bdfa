"""Brokers and the registry survive if one of three ZooKeeper servers is lost, or if a single
ZooKeeper server is restored from an older copy of its data."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.security import READ_ACL_UNSAFE as READABLE

from skidway.coordination import Coordinator, Versioned
from skidway.schemas.client import RegistryClient
from support import telemetry
from support.batches import sized, stored
from support.brokers import SkidwayBroker
from support.certificates import Authority
from support.processes import (
    Program,
    eventually,
    free_port,
    run_skidway,
    running,
    skidway,
)
from support.raw_client import RawClient
from support.registry import Registry
from support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]


class Member:
    """One of three ZooKeeper servers. The configurations of the three servers differ only in the
    server number, the data directory and the ports."""

    def __init__(
        self, number: int, servers: dict[int, str], folder: Path, more: dict[str, object]
    ) -> None:
        self.number = number
        self.data = folder / f"data-{number}"
        self.port, self.metrics_port = free_port(), free_port()
        self.secure_port = free_port()
        path = folder / f"zookeeper-{number}.yml"
        path.write_text(
            json.dumps(
                {
                    "dataDir": str(self.data),
                    "clientPort": self.port,
                    "metrics.listener": f"127.0.0.1:{self.metrics_port}",
                    "tickTime": 500,
                    "myid": number,
                    "server": servers,
                    **({"secureClientPort": self.secure_port, **more} if more else {}),
                }
            )
        )
        command = skidway("zookeeper", "run", "--config", str(path))
        self.program = Program(command, folder / f"zookeeper-{number}.out")

    def ready(self) -> bool:
        return telemetry.is_healthy(self.metrics_port)

    def mode(self) -> str:
        return str(telemetry.health(self.metrics_port)[1]["mode"])


@contextlib.contextmanager
def three(folder: Path, more: dict[str, object] | None = None) -> Iterator[dict[int, Member]]:
    """Three ZooKeeper servers that form an ensemble and answer clients. more: the settings of TLS,
    for clients too."""
    servers = {n: f"127.0.0.1:{free_port()}:{free_port()}" for n in (1, 2, 3)}
    members = {number: Member(number, servers, folder, more or {}) for number in servers}
    with contextlib.ExitStack() as stack:
        for member in members.values():
            # The first server is not ready before a second server runs. So start all servers first,
            # and then wait for them together.
            stack.enter_context(running(member.program, lambda: True))
        eventually(lambda: all(each.ready() for each in members.values()))
        yield members


def addresses(members: dict[int, Member]) -> str:
    return ",".join(f"127.0.0.1:{member.port}" for member in members.values())


def test_ensemble_serves_on_when_its_leader_is_killed(tmp_path: Path) -> None:
    """When the leader of three servers is killed, another server takes over, and no write is
    lost. ZooKeeper's own nodes are closed."""
    with three(tmp_path) as members:
        with Coordinator(addresses(members)) as anybody:
            acls = anybody.client.get_acls
            eventually(lambda: acls("/zookeeper/quota")[0] == acls("/zookeeper")[0] == READABLE)
        modes = {member.mode(): member for member in members.values()}
        assert set(modes) == {"leader", "follower"}
        with Coordinator(f"{addresses(members)}/dc1", session_timeout_s=20) as session:
            session.create_if_absent("/kept", b"1")
            modes["leader"].program.kill()
            assert session.get("/kept") == Versioned(b"1", 0)
            assert session.set_versioned("/kept", b"2", 0)
        left = [member for member in members.values() if member is not modes["leader"]]
        eventually(lambda: all(member.ready() for member in left))
        assert sorted(member.mode() for member in left) == ["follower", "leader"]


def test_an_ensemble_with_tls_serves_on_when_its_leader_is_killed(tmp_path: Path) -> None:
    """Servers that speak TLS with each other, and with a broker that has a user, elect a new leader
    like others. A server whose certificate is of another authority does not get in."""
    authority = Authority(tmp_path)
    pair, users = authority.sign("zookeeper"), tmp_path / "users"
    users.write_text("brokers:secret\n")
    users.chmod(0o600)
    own: dict[str, object] = {
        "sslQuorum": True,
        "ssl.certificate.location": str(pair.certificate),
        "ssl.key.location": str(pair.key),
        "ssl.ca.location": str(authority.certificate),
        "enforce.auth.enabled": True,
    }
    with three(tmp_path, own) as members:
        secured = ",".join(f"127.0.0.1:{each.secure_port}" for each in members.values())
        broker = SkidwayBroker(
            tmp_path,
            f"{secured}/dc1",
            zookeeper_ssl_client_enable=True,
            zookeeper_ssl_ca_location=authority.certificate,
            zookeeper_auth_location=users,
        )
        with running(broker.program, broker.ready):
            create(broker, "before")
            modes = {member.mode(): member for member in members.values()}
            modes["leader"].program.kill()
            create(broker, "during")
            left = [each for each in members.values() if each is not modes["leader"]]
            eventually(lambda: all(each.ready() for each in left))
            stranger, other = modes["leader"], Authority(tmp_path, "other").sign("stranger")
            config = tmp_path / f"zookeeper-{stranger.number}.yml"
            config.write_text(config.read_text().replace("zookeeper.pem", other.certificate.name))
            config.write_text(config.read_text().replace("zookeeper.key", other.key.name))
            stranger.program.start()
            eventually(lambda: "SSLHandshakeException" in stranger.program.output())
            assert not stranger.ready()
            create(broker, "afterwards")


def create(broker: SkidwayBroker, topic: str) -> None:
    """Creates a topic. While ZooKeeper elects a leader, the broker answers with a retriable error,
    and this function tries again. An attempt that timed out may already have created the topic, so
    the option --if-not-exists makes a further attempt succeed."""
    said = ""

    def there() -> bool:
        nonlocal said
        done = run_skidway(
            "topics", "create", topic, "--if-not-exists", "--bootstrap-server", broker.address
        )
        said = done.stderr
        assert done.returncode == 0 or "try again" in said, said
        return "try again" not in said

    eventually(there, what=f"{topic} is made")


def test_brokers_and_registry_go_on_without_a_member(tmp_path: Path) -> None:
    """If the leading ZooKeeper server and its disk are lost, clients can still create topics and
    register schemas. An empty server that replaces the leader gets all data from the other two
    servers. Afterwards clients can create topics and register schemas even if one of these two
    servers fails."""
    with three(tmp_path) as members:
        broker = SkidwayBroker(tmp_path, f"{addresses(members)}/dc1")
        registry = Registry(addresses(members), tmp_path)
        with (
            running(broker.program, broker.ready),
            running(registry.program, registry.ready),
        ):
            schemas = RegistryClient(registry.url)
            create(broker, "before")
            lost = next(each for each in members.values() if each.mode() == "leader")
            lost.program.kill()
            shutil.rmtree(lost.data)
            create(broker, "during")
            assert schemas.register("logs-value", '"string"') == 1
            lost.program.start()
            eventually(lost.ready)
            assert lost.mode() == "follower"
            other = next(each for each in members.values() if each is not lost)
            other.program.kill()
            create(broker, "after")
            assert schemas.register("logs-key", '"long"') == 2
            with RawClient(broker.port) as client:
                for topic in ("before", "during", "after"):
                    assert client.produce(topic, sized(100)).error_code == 0


def test_an_older_copy_of_zookeeper(tmp_path: Path) -> None:
    """If ZooKeeper is restored from an older copy of its data, the broker renames the directories
    of topics that were created after the copy was made. The broker neither serves nor deletes these
    topics. An operator can load a dump of the registry that is newer than this copy. The dump
    brings back the missing schema ids, so that the registry gives no id to two schemas."""
    server = ZooKeeper(tmp_path)
    data, copy, dump = tmp_path / "data", tmp_path / "copy", tmp_path / "registry.jsonl"
    broker = SkidwayBroker(tmp_path, f"{server.address}/dc1")
    registry = Registry(server.address, tmp_path)
    with (
        running(server.program, server.ready),
        running(broker.program, broker.ready),
        running(registry.program, registry.ready),
    ):
        schemas = RegistryClient(registry.url)
        create(broker, "old")
        schemas.register("old-value", '"string"')
        assert server.program.stop() == 0
        shutil.copytree(data, copy)
        server.program.start().wait_until(server.ready)
        eventually(registry.ready, what="the registry is back")
        create(broker, "late")
        assert schemas.register("late-value", '"long"') == 2
        with RawClient(broker.port) as client:
            assert client.produce("late", sized(100)).base_offset == 0
        before = stored(broker.logs / "late-0")
        done = run_skidway("schemas", "dump", str(dump), "--registry", registry.url)
        assert done.returncode == 0, done.stderr

        for program in (broker.program, registry.program, server.program):
            assert program.stop() == 0
        shutil.rmtree(data)
        shutil.copytree(copy, data)
        server.program.start().wait_until(server.ready)
        registry.program.start().wait_until(registry.ready)
        assert schemas.subjects() == ["old-value"]
        done = run_skidway("schemas", "restore", str(dump), "--registry", registry.url)
        assert done.returncode == 0, done.stderr
        assert schemas.schema(2) == '"long"'
        assert schemas.register("new-value", '"int"') == 3
        broker.program.start().wait_until(broker.ready)
        (aside,) = broker.logs.glob("late-0.*-stray")
        assert stored(aside) == before
        with RawClient(broker.port) as client:
            assert client.produce("old", sized(100)).base_offset == 0
