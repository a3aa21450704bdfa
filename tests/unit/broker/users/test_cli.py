from __future__ import annotations

import getpass
import io
import json
import sys
from pathlib import Path

import pytest

from skidway.broker.users import cli as users
from skidway.cli import main
from skidway.kafka.errors import ErrorCode
from support.memory_rights import MemoryRights


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryRights:
    """The cluster to which the commands connect."""
    found = MemoryRights()
    monkeypatch.setattr(users, "connect", lambda _: found)
    return found


@pytest.fixture
def password(tmp_path: Path) -> str:
    """A file with a password."""
    path = tmp_path / "password"
    path.write_text("secret\nnot this\n")
    return str(path)


def test_users_are_added_listed_and_removed(
    cluster: MemoryRights, password: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway users add` gives a user a password for one mechanism, and says whether it replaces
    an earlier one, and by which mechanism an earlier one still counts. `list` shows all users.
    `remove` takes one mechanism or all away."""
    add = ["users", "add", "ada", "--password-file", password]
    assert main(add) == 0
    assert capsys.readouterr().out == "ada can log in by SCRAM-SHA-512\n"
    assert main([*add, "--iterations", "8192"]) == 0
    assert capsys.readouterr().out == "replaced the password of ada for SCRAM-SHA-512\n"
    assert main([*add, "--mechanism", "SCRAM-SHA-256"]) == 0
    assert capsys.readouterr().out == (
        "ada can log in by SCRAM-SHA-256\n"
        "ada can still log in by SCRAM-SHA-512 with the password of before\n"
    )
    assert main(["users", "list"]) == 0
    assert capsys.readouterr().out == (
        "USER  MECHANISM      ITERATIONS\n"
        "ada   SCRAM-SHA-256       4,096\n"
        "ada   SCRAM-SHA-512       8,192\n"
    )
    assert main(["users", "remove", "ada", "--mechanism", "SCRAM-SHA-512"]) == 0
    assert capsys.readouterr().out == (
        "ada can no longer log in by SCRAM-SHA-512\nada can still log in by SCRAM-SHA-256\n"
    )
    assert main(["users", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"user": "ada", "mechanism": "SCRAM-SHA-256", "iterations": 4096}
    ]
    assert main(["users", "remove", "ada"]) == 0
    assert not cluster.passwords


@pytest.mark.parametrize("options", [[], ["--mechanism", "SCRAM-SHA-256"]])
def test_a_user_who_is_not_there_is_not_removed(
    cluster: MemoryRights, password: str, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Removing a user who cannot log in, or not by this mechanism, ends with status 1 and one
    sentence."""
    if options:
        assert main(["users", "add", "ada", "--password-file", password]) == 0
    assert main(["users", "remove", "ada", *options]) == 1
    said = capsys.readouterr().err
    assert said.startswith("skidway users: there is no user ada who can log in")
    assert len(cluster.passwords) == len(options) // 2


def salted(cluster: MemoryRights) -> bytes:
    (row,) = cluster.passwords.values()
    return row.salted_password


def test_a_password_is_read_from_where_nobody_else_sees_it(
    cluster: MemoryRights, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password is the first line of a file or of standard input. On a terminal it is asked for
    twice. In each case it is the same password."""
    monkeypatch.setattr("skidway.kafka.client.scram_credentials.secrets.token_bytes", bytes)
    assert main(["users", "add", "ada", "--password-file", password]) == 0
    from_file = salted(cluster)
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\r\nnot this\n"))
    assert main(["users", "add", "ada"]) == 0
    assert salted(cluster) == from_file
    monkeypatch.setattr(sys, "stdin", Terminal())
    typed = iter(["secret", "secret"])
    monkeypatch.setattr(getpass, "getpass", lambda *_: next(typed))
    assert main(["users", "add", "ada"]) == 0
    assert salted(cluster) == from_file
    assert not list(typed)


def test_two_passwords_that_differ_are_refused(
    cluster: MemoryRights, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a person types two passwords, nothing is changed."""
    typed = iter(["secret", "sceret"])
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(getpass, "getpass", lambda *_: next(typed))
    assert main(["users", "add", "ada"]) == 2
    assert "differ" in capsys.readouterr().err
    assert not cluster.requests


@pytest.mark.parametrize(
    ("user", "secret", "options", "status", "said"),
    [
        ("ada", "", [], 2, "the password is empty"),
        ("", "secret", [], 2, "the name is empty"),
        ("ada", "se\u00adcret", [], 2, "the password has characters"),
        ("ada", "\ufb01ve", [], 2, "the password has characters"),
        ("a\u0301da", "secret", [], 2, "the name has characters"),
        ("ada", "secret", ["--iterations", "4095"], 2, "4095 is not between 4096 and 16384"),
        ("ada", "secret", ["--iterations", "9" * 5000], 2, "is not between"),
        ("ada", "secret", ["--mechanism", "PLAIN"], 2, "invalid choice: 'PLAIN'"),
        ("ada", "secret", ["--password", "x"], 2, "unknown arguments: --password"),
        ("ada", "secret", ["--password-file", "/nowhere"], 78, "--password-file: /nowhere cannot"),
    ],
)
def test_what_cannot_become_a_login_is_refused(
    cluster: MemoryRights, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    user: str, secret: str, options: list[str], status: int, said: str,
) -> None:  # fmt: skip
    """An empty name or password, one that clients change before a login, and iterations that Kafka
    does not take are refused before the cluster is asked."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(secret))
    assert main(["users", "add", user, *options]) == status
    assert said in capsys.readouterr().err
    assert not cluster.requests


def test_names_and_passwords_of_all_languages_are_taken(
    cluster: MemoryRights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name and a password may have letters of every language, and spaces."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("zażółć gęślą\n"))
    assert main(["users", "add", "Ådå, von =x"]) == 0
    assert {user for user, _ in cluster.passwords} == {"Ådå, von =x"}


@pytest.mark.parametrize("verb", [["list"], ["add", "ada"], ["remove", "ada"]])
def test_who_may_not_administer_users_gets_one_sentence(
    cluster: MemoryRights, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    verb: list[str],
) -> None:  # fmt: skip
    """If the cluster refuses a command, it ends with status 1 and one sentence with the reason."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    cluster.refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert main(["users", *verb]) == 1
    said = capsys.readouterr().err
    assert "CLUSTER_AUTHORIZATION_FAILED (31)" in said
    assert said.count("\n") == 1
