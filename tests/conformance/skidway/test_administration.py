"""The commands `skidway acls` and `skidway users` administer a real Apache Kafka that requires TLS
and a login, and denies what is not allowed."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from skidway import settings
from skidway.cli.connection import for_a_person
from skidway.errors import Unreachable
from skidway.kafka.settings import KafkaSettings
from skidway.settings.document import yaml_text
from support.kafka import tool
from support.processes import eventually, run_skidway
from support.secured_kafka import SecuredKafka

pytestmark = [pytest.mark.java, pytest.mark.slow]


@dataclass(frozen=True, kw_only=True)
class ClientSettings(KafkaSettings):
    """The settings of a client alone."""


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    with SecuredKafka(tmp_path_factory.mktemp("administered")).running() as made:
        made.add_user("admin")
        made.allow("admin", ["ALTER"], on_cluster=True)
        made.create_topic("shop")
        yield made


@pytest.fixture
def run(kafka: SecuredKafka, tmp_path: Path) -> Command:
    """Runs a command as a user, who logs in as the profile says; as `admin` if none is named."""

    def runs(*words: str, user: str = "admin", given: str = "") -> subprocess.CompletedProcess[str]:
        profile = tmp_path / f"{user}.yml"
        profile.write_text(yaml_text(kafka.login(user)))
        return run_skidway(*words, input_text=given, env={"SKIDWAY_PROFILE": str(profile)})

    return runs


def shown(done: subprocess.CompletedProcess[str]) -> Any:
    """Returns what a command has printed as JSON."""
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def topics(given: dict[str, str]) -> set[str]:
    """Returns the topics that a user may describe. Raises Unreachable if the user is not let in."""
    words = [f"{key}={value}" for key, value in given.items()]
    with for_a_person(settings.load(ClientSettings, None, words).kafka).client() as client:
        return set(client.metadata().topics)


def is_let_in(given: dict[str, str]) -> bool:
    with contextlib.suppress(Unreachable):
        topics(given)
        return True
    return False


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_can_log_in_until_removed(kafka: SecuredKafka, run: Command, mechanism: str) -> None:
    """A user whom `skidway users add` has made can log in with the password, and after a second
    `add` only with the new one. Other clients see the user. After `remove` the user cannot log in.
    """
    name = f"made-{mechanism[-3:]}"
    password = kafka.write_password(name, "first, =secret")
    login = kafka.login(name, mechanism)
    options = ("--mechanism", mechanism, "--iterations", "5000")
    done = run("users", "add", name, *options, "--password-file", str(password))
    assert (done.stdout, done.stderr) == (f"{name} can log in by {mechanism}\n", "")
    eventually(lambda: is_let_in(login))
    done = run("users", "add", name, *options, given="second secret\n")
    assert done.stdout == f"replaced the password of {name} for {mechanism}\n"
    eventually(lambda: not is_let_in(login))
    kafka.write_password(name, "second secret")
    eventually(lambda: is_let_in(login))
    assert credentials_of(kafka, name) == [(mechanism.replace("-", "_"), 5000)]
    row = {"user": name, "mechanism": mechanism, "iterations": 5000}
    assert row in shown(run("users", "list", "--json"))
    assert run("users", "remove", name).returncode == 0
    eventually(lambda: not is_let_in(login))
    assert run("users", "remove", name).returncode == 1


def credentials_of(kafka: SecuredKafka, user: str) -> list[tuple[str, int]]:
    """Returns the mechanisms and iterations of a user, as librdkafka's admin client sees them."""
    admin = AdminClient({"bootstrap.servers": kafka.plain})
    found = admin.describe_user_scram_credentials([user])[user].result()
    return [(each.mechanism.name, each.iterations) for each in found.scram_credential_infos]


def test_rules_are_those_of_kafkas_own_tools(kafka: SecuredKafka, run: Command) -> None:
    """`kafka-acls` shows the rules that `skidway acls add` has made, and `skidway acls list` shows
    those of other clients. `skidway acls remove` removes both."""
    ada = ("--principal", "User:ada")
    add = ("acls", "add", *ada, "--json")
    shown(run(*add, "--topic-prefix", "sh", "--operation", "READ", "--operation", "WRITE"))
    shown(run(*add, "--group", "*", "--operation", "READ", "--host", "10.0.0.1", "--deny"))
    shown(run(*add, "--cluster", "--operation", "CREATE"))
    shown(run(*add, "--transactional-id", "t", "--operation", "WRITE"))
    listed = tool(
        "org.apache.kafka.tools.AclCommand", ["--bootstrap-server", kafka.plain, "--list"]
    )
    for words in (
        "(principal=User:ada, host=*, operation=READ, permissionType=ALLOW)",
        "(principal=User:ada, host=10.0.0.1, operation=READ, permissionType=DENY)",
        "ResourcePattern(resourceType=TOPIC, name=sh, patternType=PREFIXED)",
        "ResourcePattern(resourceType=CLUSTER, name=kafka-cluster, patternType=LITERAL)",
        "ResourcePattern(resourceType=TRANSACTIONAL_ID, name=t, patternType=LITERAL)",
    ):
        assert words in listed
    kafka.allow("ada", ["DESCRIBE"], topics=["shop"])
    listing = ("acls", "list", *ada, "--json")
    eventually(lambda: len(shown(run(*listing))) == 6)
    on_topic = shown(run(*listing, "--topic", "shop"))
    assert [(x["operation"], x["pattern_type"]) for x in on_topic] == [
        ("READ", "PREFIXED"), ("WRITE", "PREFIXED"), ("DESCRIBE", "LITERAL"),
    ]  # fmt: skip
    removed = shown(run("acls", "remove", *ada, "--json"))
    assert len(removed) == 6
    eventually(lambda: shown(run(*listing)) == [])


FILE = {
    "acls": [
        {"principal": "User:admin", "allow": ["ALTER"], "cluster": True},
        {"principal": "User:eve", "allow": ["READ", "DESCRIBE"], "topic.prefixes": ["sh"]},
        {"principal": "User:eve", "deny": ["ALL"], "topics": ["shop"], "hosts": ["10.0.0.0/8"]},
    ]
}


def test_a_file_becomes_the_rules_of_the_cluster(
    kafka: SecuredKafka, run: Command, tmp_path: Path
) -> None:
    """After `skidway acls apply` the cluster has exactly the rules of the file, and users the
    rights that it gives. The user who applies it keeps the right to do so. --dry-run changes
    nothing, and a second run finds nothing to change."""
    kafka.add_user("eve")
    kafka.allow("eve", ["WRITE"], groups=["old"])
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump(FILE))
    apply = ("acls", "apply", str(path), "--json")
    eventually(lambda: len(shown(run("acls", "list", "--json"))) == 2)
    planned = shown(run(*apply, "--dry-run"))
    assert [row["change"] for row in planned] == ["add", "add", "add", "remove"]
    assert topics(kafka.login("eve")) == set()
    assert shown(run(*apply)) == planned
    eventually(lambda: topics(kafka.login("eve")) == {"shop"})
    eventually(lambda: len(shown(run("acls", "list", "--json"))) == 4)
    assert shown(run(*apply)) == []


@pytest.mark.parametrize(
    "words",
    [
        "acls list",
        "acls add --principal User:ada --topic shop --operation READ --operation WRITE",
        "acls remove --principal User:ada",
        "users list",
        "users add ada",
        "users remove ada",
    ],
)
def test_who_lacks_rights_gets_one_sentence(kafka: SecuredKafka, run: Command, words: str) -> None:
    """A user without rights on the cluster changes nothing and sees nothing. Each command ends with
    status 1 and one sentence."""
    kafka.add_user("nobody")
    eventually(lambda: is_let_in(kafka.login("nobody")))
    done = run(*words.split(), user="nobody", given="secret\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert "CLUSTER_AUTHORIZATION_FAILED (31)" in done.stderr
    assert done.stderr.count("\n") == 1


def test_who_is_not_let_in_gets_one_sentence(kafka: SecuredKafka, run: Command) -> None:
    """With a wrong password the cluster counts as unreachable: status 3."""
    kafka.write_password("stranger", "guessed")
    done = run("acls", "list", user="stranger")
    assert done.returncode == 3
    assert "the broker refuses the login of stranger" in done.stderr
