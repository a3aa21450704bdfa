from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skidway.cli import acls, main
from skidway.cli.acl_file import CLUSTER
from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from support.memory_rights import MemoryRights

TOPIC = ResourcePattern(ResourceType.TOPIC, "shop")
PREFIX = ResourcePattern(ResourceType.TOPIC, "sh", PatternType.PREFIXED)
TOKEN = ResourcePattern(ResourceType.DELEGATION_TOKEN, "t")


def rule(
    principal: str = "User:ada", operation: Operation = Operation.READ, *,
    on: ResourcePattern = TOPIC, host: str = "*", permission: Permission = Permission.ALLOW,
) -> Acl:  # fmt: skip
    return Acl(on, principal, host, operation, permission)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryRights:
    """The cluster to which the commands connect."""
    found = MemoryRights()
    monkeypatch.setattr(acls, "connect", lambda _: found)
    return found


def shown(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_rules_are_listed(cluster: MemoryRights, capsys: pytest.CaptureFixture[str]) -> None:
    """`skidway acls list` shows all rules, those of one principal, or those that apply to one
    resource, among them rules for prefixes. The output has Kafka's words."""
    cluster.rules = [
        rule("User:eve", Operation.ALTER, on=CLUSTER),
        rule(on=PREFIX, host="10.0.0.1", permission=Permission.DENY),
        rule(),
    ]
    assert main(["acls", "list"]) == 0
    assert capsys.readouterr().out == (
        "PRINCIPAL  PERMISSION  OPERATION  RESOURCE TYPE  RESOURCE NAME  PATTERN TYPE  HOST\n"
        "User:ada   DENY        READ       TOPIC          sh             PREFIXED      10.0.0.1\n"
        "User:ada   ALLOW       READ       TOPIC          shop           LITERAL       *\n"
        "User:eve   ALLOW       ALTER      CLUSTER        kafka-cluster  LITERAL       *\n"
    )
    for options, count in (
        (["--principal", "User:eve"], 1), (["--topic", "shop"], 2), (["--topic", "shirt"], 1),
        (["--cluster"], 1), (["--group", "shop"], 0),
    ):  # fmt: skip
        assert main(["acls", "list", "--json", *options]) == 0
        assert len(shown(capsys)) == count
    assert cluster.requests == [ApiKey.DESCRIBE_ACLS] * 6


def test_rules_are_added_and_removed(
    cluster: MemoryRights, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway acls add` adds a rule for each operation and shows them. `remove` removes exactly
    the rules to which all its options apply, and shows them."""
    add = ["acls", "add", "--principal", "User:ada", "--operation", "read", "--operation", "WRITE"]
    assert main([*add, "--topic", "shop", "--json"]) == 0
    assert [row["operation"] for row in shown(capsys)] == ["READ", "WRITE"]
    assert main([*add, "--topic-prefix", "sh", "--deny", "--host", "10.0.0.1"]) == 0
    denied = [
        rule(operation=operation, on=PREFIX, host="10.0.0.1", permission=Permission.DENY)
        for operation in (Operation.READ, Operation.WRITE)
    ]
    allowed = [rule(), rule(operation=Operation.WRITE)]
    assert cluster.rules == allowed + denied
    remove = ["acls", "remove", "--principal", "User:ada"]
    for options in (["--host", "::1"], ["--operation", "ALTER"], ["--topic", "sh"]):
        assert main([*remove, *options]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert main([*remove, "--deny", "--operation", "WRITE"]) == 0
    assert cluster.rules == [*allowed, denied[0]]
    assert main(["acls", "remove", "--topic", "shop", "--operation", "WRITE"]) == 0
    assert cluster.rules == [rule(), denied[0]]
    capsys.readouterr()
    assert main([*remove, "--json"]) == 0
    assert [row["pattern_type"] for row in shown(capsys)] == ["PREFIXED", "LITERAL"]
    assert cluster.rules == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("add --principal ada --topic a --operation READ", "'ada' is not User:NAME"),
        ("add --principal User:ada --operation READ", "one of the arguments --topic"),
        ("add --principal User:ada --topic a --group b --operation READ", "not allowed with"),
        ("add --principal User:ada --topic a", "required: --operation"),
        ("add --principal User:ada --topic a --operation FLY", "invalid choice: 'FLY'"),
        ("add --principal User:ada --topic dc1.* --operation READ", "as a prefix"),
        ("add --principal User:ada --topic a --operation READ --host web1", "the host 'web1'"),
        ("add --principal User:ada --cluster --operation READ", "READ does not exist for a CLUS"),
        ("remove --operation READ", "say which rules"),
        ("list --principal ada", "'ada' is not User:NAME"),
    ],
)
def test_a_mistake_on_the_command_line_is_a_usage_error(
    cluster: MemoryRights, capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    """A command with a mistake ends with status 2, and asks the cluster for nothing."""
    assert main(["acls", *words.split()]) == 2
    assert said in capsys.readouterr().err
    assert not cluster.requests


FILE = """
acls:
- principal: User:ada
  allow: [READ, WRITE]
  topics: [shop]
"""


def test_a_file_is_applied(
    cluster: MemoryRights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway acls apply` adds what the cluster lacks, then removes what the file does not have,
    and shows both. With --dry-run it only shows them. Rules that a file cannot have stay, and the
    command says so. Applied again, a file changes nothing."""
    token = rule(on=TOKEN)
    cluster.rules = [rule(), rule("User:eve"), token]
    path = tmp_path / "rules.yml"
    path.write_text(FILE)
    for options in (["--dry-run"], []):
        before, cluster.requests = list(cluster.rules), []
        assert main(["acls", "apply", str(path), "--json", *options]) == 0
        said = capsys.readouterr()
        assert [(row["change"], row["principal"]) for row in json.loads(said.out)] == [
            ("add", "User:ada"),
            ("remove", "User:eve"),
        ]
        assert said.err == "skidway acls: 1 rules stay, as no file can have them\n"
        assert (cluster.rules == before) == bool(options)
    assert cluster.requests == [ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS]
    assert cluster.rules == [rule(), token, rule(operation=Operation.WRITE)]
    cluster.requests = []
    assert main(["acls", "apply", str(path)]) == 0
    assert capsys.readouterr().out == "there is nothing to change\n"
    assert cluster.requests == [ApiKey.DESCRIBE_ACLS]


def test_nothing_is_removed_if_something_could_not_be_added(
    cluster: MemoryRights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the cluster refuses a rule of the file, no rule is removed, because the refused one may be
    in place of it. The error is told once, with a rule."""
    cluster.rules, cluster.refused_principals = [rule("User:eve")], {"User:ada"}
    path = tmp_path / "rules.yml"
    path.write_text(FILE + "- {principal: User:bob, deny: ALL, groups: g}\n")
    assert main(["acls", "apply", str(path), "--json"]) == 1
    said = capsys.readouterr()
    assert [row["principal"] for row in json.loads(said.out)] == ["User:bob"]
    assert said.err.startswith("skidway acls: User:ada ALLOW READ TOPIC shop: INVALID_REQUEST (42)")
    assert said.err.count("\n") == 1
    assert rule("User:eve") in cluster.rules


def test_a_bad_file_is_refused_before_the_cluster_is_asked(
    cluster: MemoryRights, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file with a mistake ends the command with status 78 and one sentence."""
    path = tmp_path / "rules.yml"
    path.write_text("acls: []")
    assert main(["acls", "apply", str(path)]) == 78
    assert capsys.readouterr().err.count("\n") == 1
    assert not cluster.requests


@pytest.mark.parametrize(
    "words",
    [
        "list",
        "add --principal User:ada --topic shop --operation READ --operation WRITE",
        "remove --principal User:ada",
    ],
)
def test_who_may_not_administer_rules_gets_one_sentence(
    cluster: MemoryRights, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """If the cluster refuses a command, it ends with status 1 and one sentence with the reason."""
    cluster.refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert main(["acls", *words.split()]) == 1
    said = capsys.readouterr()
    assert "CLUSTER_AUTHORIZATION_FAILED (31)" in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_who_may_do_something_is_told_with_the_rule(
    cluster: MemoryRights, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway acls test` says whether the rules allow an operation, as brokers decide it, and by
    which rule. The exit status is 1 if it is denied."""
    cluster.rules = [
        rule(on=PREFIX),
        rule(on=PREFIX, host="10.0.0.1", permission=Permission.DENY),
    ]
    asked = ["acls", "test", "--topic", "shop", "--json"]
    ada = ["--principal", "User:ada", "--operation"]
    assert main([*asked, *ada, "READ"]) == 0
    [row] = shown(capsys)
    assert (row["allowed"], row["resource_name"], row["permission"]) == (True, "sh", "ALLOW")
    assert main([*asked, *ada, "DESCRIBE"]) == 0
    capsys.readouterr()
    assert main([*asked, *ada, "WRITE"]) == 1
    assert shown(capsys) == [{"allowed": False, "reason": "DEFAULT_DENY"}]
    assert main([*asked, *ada, "READ", "--host", "10.0.0.1"]) == 1
    [row] = shown(capsys)
    assert (row["allowed"], row["permission"], row["host"]) == (False, "DENY", "10.0.0.1")
    assert main([*asked, "--principal", "User:eve", "--operation", "READ"]) == 1
