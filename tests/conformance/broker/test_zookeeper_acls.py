"""What brokers and registry have in ZooKeeper belongs to them, and to nobody else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer as StockConsumer
from confluent_kafka import TopicPartition as StockPartition
from kazoo.security import OPEN_ACL_UNSAFE

from skidway.consumer import Consumer
from skidway.coordination import AccessRefused, Coordinator
from skidway.coordination.acls import give
from skidway.producer import Producer
from skidway.schemas.client import RegistryClient
from skidway.settings import load
from skidway.zookeeper_settings import ZooKeeperSettings
from support.brokers import SkidwayBroker
from support.processes import eventually, free_port, run_skidway, running
from support.registry import Registry
from support.secured_broker import SecuredBroker
from support.secured_zookeeper import SecuredZooKeeper, allowed, tree, words
from support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]

PAGE = (Path(__file__).parents[3] / "docs/security.md").read_text()
PATHS = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
SHELL = r"```sh\n(.*?)```"
YAML = r"    # \w+\.yml.*\n((?:    .+\n)+)"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[SecuredZooKeeper]:
    folder = tmp_path / "zookeeper"
    folder.mkdir()
    with SecuredZooKeeper(folder).running() as made:
        yield made


def broker(
    folder: Path, server: SecuredZooKeeper, chroot: str, users: Path | None, **more: object
) -> SecuredBroker:
    own = {} if users is None else server.settings(users)
    return SecuredBroker(folder, f"{server.secured}{chroot}", **{**own, **more})


def use(made: SecuredBroker) -> None:
    """Makes nodes of every kind: of topics, users, rules, and of groups of both kinds."""
    made.create_topic("lines")
    made.add_user("ada")
    made.allow("ada", ["READ"], topics=["lines"], prefixes=["li"], groups=["reports"])
    produce(made)
    stock = StockConsumer({"bootstrap.servers": made.plain, "group.id": "reports"})
    stock.commit(offsets=[StockPartition("lines", 0, 1)], asynchronous=False)
    stock.close()


def produce(made: SecuredBroker) -> None:
    with Producer(made.plain) as producer:
        producer.send("lines", b"line", partition=0).result()


def secure(
    program: str, server: SecuredZooKeeper, chroot: str, users: Path, *more: str
) -> dict[str, object]:
    settings = {"zookeeper.connect": f"{server.secured}{chroot}", **server.settings(users)}
    sets = [word for each in words(settings) for word in ("--set", each)]
    done = run_skidway("zookeeper", "secure", program, *sets, "--json", *more)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def is_closed(server: SecuredZooKeeper, *owners: str) -> bool:
    """Returns whether no stranger, with a user or without, can do anything with any node. owners:
    the users who together see all nodes."""
    with server.session(server.users("all", *owners)) as all_users:
        paths = [path for path in tree(all_users) if path != "/"]
    for users in (None, server.users("stranger")):
        with server.session(users) as stranger:
            found = {path: done for path in paths if (done := allowed(stranger, path))}
            assert found == {}, found
    return len(paths) > 30


@pytest.mark.parametrize("chroot", ["/dc1", ""])
def test_a_stranger_can_do_nothing(server: SecuredZooKeeper, tmp_path: Path, chroot: str) -> None:
    """A stranger can neither read nor change nor delete any node of brokers and registry, also
    after a broker was killed. Without a chroot, `secure` is needed once, because the nodes are
    below ZooKeeper's root; strangers may then still add nodes of their own there."""
    brokers, registries = server.users("brokers"), server.users("registry")
    made = broker(tmp_path, server, chroot, brokers)
    registry = Registry(server.secured, tmp_path, *words(server.settings(registries)))
    with made.running(), running(registry.program, registry.ready):
        RegistryClient(registry.url).register("lines-value", '"string"')
        use(made)
        security = server.security(brokers)
        with Consumer(
            made.plain, "own", "lines", zookeeper_security=security, auto_offset_reset="earliest"
        ) as consumer:
            assert next(consumer).value == b"line"
            consumer.commit()
            if not chroot:
                secure("broker", server, chroot, brokers)
            owners = ("brokers:brokers-secret", "registry:registry-secret")
            assert is_closed(server, *owners)
        made.broker.crash()
        produce(made)
        assert is_closed(server, *owners)
    with server.session(server.users("stranger")) as stranger:
        stranger.client.create("/added")
        if not chroot:
            with pytest.raises(AccessRefused):
                stranger.client.delete("/added")


def test_an_open_tree_is_secured_while_a_broker_uses_it(
    server: SecuredZooKeeper, tmp_path: Path
) -> None:
    """`secure` closes the nodes of an open tree while a broker goes on writing, but not those of
    the registry. A second run finds nothing to do. `--open` opens them again."""
    tls = {k: v for k, v in server.settings(tmp_path).items() if "auth" not in k}
    made = broker(tmp_path, server, "/dc1", None, **tls)
    with made.running():
        use(made)
    users = server.users("brokers")
    made.broker.settings |= server.settings(users)
    with made.running(), Coordinator(server.address) as everybody:
        everybody.create_if_absent("/dc1/skidway/schemas/log")
        assert secure("registry", server, "/dc1", server.users("registry"))["changed"] == 3
        made.create_topic("meanwhile")
        report = secure("broker", server, "/dc1", users)
        made.create_topic("afterwards")
        produce(made)
        assert int(str(report["changed"])) > 30
        again = secure("broker", server, "/dc1", users)
        assert (again["changed"], again["foreign"]) == (0, [])
        assert is_closed(server, "brokers:brokers-secret", "registry:registry-secret")
        secure("broker", server, "/dc1", users, "--open")
        assert everybody.client.get_acls("/dc1/brokers/topics/lines")[0] == OPEN_ACL_UNSAFE


def test_a_running_broker_that_is_refused_says_so(server: SecuredZooKeeper, tmp_path: Path) -> None:
    """If the nodes belong to another user when the broker connects again, /health and the log say
    so, with the file, until they are the broker's again. Meanwhile it serves what it has."""
    mine = server.users("brokers")
    both = server.users("both", "brokers:brokers-secret", "other:secret")
    made = broker(tmp_path, server, "/dc1", mine)
    with made.running():
        use(made)
        with server.session(both, "/dc1") as session:
            session._access.acl = session.acl[1:]
            give(session, ["/"])
        server.restart()
        said = f"belongs to other users than those of zookeeper.auth.location: {mine}"
        eventually(lambda: said in made.broker.health().get("zookeeper_refuses", ""))
        eventually(lambda: said in made.broker.program.output())
        produce(made)
        with server.session(both, "/dc1") as session:
            give(session, ["/"])
        eventually(lambda: "zookeeper_refuses" not in made.broker.health())
        made.create_topic("afterwards")


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    """With the files, settings and commands of docs/security.md, a broker and a registry that ran
    openly have their nodes for themselves, and the broker gets a new password."""
    files, section = (
        PAGE.partition(f"## {title}")[2].partition("\n## ")[0]
        for title in ("Encrypted listeners", "ZooKeeper with TLS")
    )
    make_users, secure_all, add_line, leave_line, take = re.findall(SHELL, section, re.DOTALL)
    shell = partial(subprocess.run, cwd=tmp_path, check=True, env=os.environ | {"PATH": PATHS})
    shell(["bash", "-e", "-c", re.findall(SHELL, files, re.DOTALL)[0] + make_users])
    server, broker = (yaml.safe_load(each) for each in re.findall(YAML, section))
    port, names = free_port(), {"zookeeper": "broker", "broker1": "web1", "zookeeper-ca": "ca"}
    for given in (server, broker):
        for key in [key for key in given if ".ssl." in f".{key}" and ".location" in key]:
            path = Path(given[key])
            given[key] = str(tmp_path / f"{names[path.stem]}{path.suffix}")
    server |= {"secureClientPort": port, "secureClientPortAddress": "127.0.0.1"}
    broker |= {
        "zookeeper.connect": f"localhost:{port}/dc1",
        "zookeeper.auth.location": str(tmp_path / "brokers.users"),
    }
    registry = broker | {
        "zookeeper.connect": f"localhost:{port}",
        "zookeeper.auth.location": str(tmp_path / "registry.users"),
    }
    for name, given in (("broker", broker), ("registry", registry)):
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(given))
    del server["dataDir"]
    zookeeper = ZooKeeper(tmp_path, *words(server))
    with running(zookeeper.program, zookeeper.ready):
        made = SkidwayBroker(tmp_path, broker["zookeeper.connect"])
        made.settings |= broker
        program = Registry(registry["zookeeper.connect"], tmp_path, *words(registry)).program
        with load(ZooKeeperSettings, tmp_path / "broker.yml").zookeeper.open() as session:
            give(session, ["/"], to_everybody=True)
        made.start()
        program.start()
        shell(["bash", "-e", "-c", secure_all])
        (tmp_path / "old").write_bytes((tmp_path / "brokers.users").read_bytes())
        (tmp_path / "old").chmod(0o600)
        for step in (add_line, leave_line, take):
            shell(["bash", "-e", "-c", step])
            made.restart()
        made.end()
        program.kill()
        old = ["zookeeper.auth.location=" + str(tmp_path / "old")]
        with pytest.raises(AccessRefused):
            load(ZooKeeperSettings, tmp_path / "broker.yml", old).zookeeper.open()


def test_a_persons_commands_use_the_profile(server: SecuredZooKeeper, tmp_path: Path) -> None:
    """`skidway groups` and `skidway consume --group` reach a secured ZooKeeper by the profile.
    Without a user there, they say so with status 3."""
    users = server.users("brokers")
    made, profile = broker(tmp_path, server, "/dc1", users), tmp_path / "profile.yml"
    with made.running():
        use(made)

        def run(*arguments: str, **settings: str) -> tuple[int, str, str]:
            profile.write_text(json.dumps({"bootstrap.servers": made.plain, **settings}))
            done = run_skidway(*arguments, env={"SKIDWAY_PROFILE": str(profile)})
            return done.returncode, done.stdout, done.stderr

        reading = ("consume", "--topic", "lines", "--group", "own", "--max", "1", "--raw")
        settings = server.settings(users)
        assert run(*reading, "--from-beginning", **settings) == (0, "line\n", "")
        status, said, _ = run("groups", "list", "--json", **settings)
        assert (status, [each["group"] for each in json.loads(said)]) == (0, ["own", "reports"])
        del settings["zookeeper.auth.location"]
        for command in (reading, ("groups", "list")):
            status, _, error = run(*command, **settings)
            assert (status, error.count("\n")) == (3, 1), error
            assert "than those of zookeeper.auth.location: not set" in error
