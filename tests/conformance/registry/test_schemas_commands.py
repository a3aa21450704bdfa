"""`skidway schemas` as people and their CI run it: what each verb does, prints and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from schemas.client import RegistryAdministration, RegistryRefused
from support.processes import run_skidway
from support.registry import Registry

pytestmark = pytest.mark.conformance

V1 = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "age", "type": ["null", "int"], "default": None}]}
BROKEN = {**V1, "fields": [*V1["fields"], {"name": "must", "type": "int"}]}

Run = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def run(registry: Registry) -> Run:
    """A verb against the test's registry."""

    def verb(name: str, *arguments: str) -> CompletedProcess[str]:
        return run_skidway("schemas", name, "--registry", registry.url, *arguments)

    return verb


@pytest.fixture
def client(registry: Registry) -> RegistryAdministration:
    return RegistryAdministration(registry.url)


@pytest.fixture
def users(client: RegistryAdministration) -> RegistryAdministration:
    """A subject `users` with two versions, ids 1 and 2."""
    client.register("users", json.dumps(V1))
    client.register("users", json.dumps(V2))
    return client


def file(folder: Path, schema: object) -> str:
    path = folder / "schema.avsc"
    path.write_text(json.dumps(schema))
    return str(path)


def test_a_list_has_one_line_per_subject(users: RegistryAdministration, run: Run) -> None:
    """With its latest version; --prefix chooses; --deleted shows each version that went."""
    users.register("other", '"int"')
    assert [line.split() for line in run("list").stdout.splitlines()] == [
        ["SUBJECT", "VERSION", "ID"],
        ["other", "1", "3"],
        ["users", "2", "2"],
    ]
    users.delete_version("users", 1)
    assert json.loads(run("list", "--json", "--deleted", "--prefix", "us").stdout) == [
        {"subject": "users", "version": 1, "id": 1, "deleted": True},
        {"subject": "users", "version": 2, "id": 2, "deleted": False},
    ]


def test_a_dry_run_registers_nothing(
    users: RegistryAdministration, run: Run, tmp_path: Path
) -> None:
    """It says that the schema is there, or would do, or would not (status 1)."""
    done = run("register", "users", file(tmp_path, V1), "--dry-run")
    assert (done.returncode, done.stdout) == (0, "users version 1 is this schema, with id 1\n")
    done = run("register", "fresh", file(tmp_path, V2), "--dry-run")
    assert (done.returncode, done.stdout) == (0, "compatible with fresh\n")
    done = run("register", "users", file(tmp_path, BROKEN), "--dry-run")
    assert done.returncode == 1
    assert "must" in done.stdout
    assert users.subjects() == ["users"]
    assert users.versions("users") == [1, 2]


def test_nothing_is_deleted_without_a_yes(users: RegistryAdministration, run: Run) -> None:
    """The plan is printed, status 2; with --dry-run status 0; the registry is untouched."""
    done = run("delete", "users")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert [line.split()[:5] for line in done.stdout.splitlines()[1:]] == [
        ["users", "1", "1", "live", "softly"],
        ["users", "2", "2", "live", "softly"],
    ]
    assert run("delete", "users", "--dry-run").returncode == 0
    assert users.versions("users") == [1, 2]


def test_what_was_softly_deleted_comes_back_under_its_id(
    users: RegistryAdministration, run: Run
) -> None:
    """delete, then undelete: the ids in the records of the topic mean what they meant."""
    assert run("delete", "users", "--yes").stdout.endswith("deleted 2 of users\n")
    assert users.subjects() == []
    assert json.loads(users.schema(1)) == V1
    done = run("undelete", "users", "--dry-run", "--json")
    assert [row["id"] for row in json.loads(done.stdout)] == [1, 2]
    assert users.subjects() == []
    assert json.loads(run("undelete", "users", "--json").stdout) == [
        {"subject": "users", "version": 1, "id": 1, "back_as_version": 3},
        {"subject": "users", "version": 2, "id": 2, "back_as_version": 4},
    ]
    assert [users.version("users", each).id for each in users.versions("users")] == [1, 2]
    done = run("undelete", "users")
    assert done.returncode == 1
    assert "nothing that was softly deleted" in done.stderr


def test_one_version_goes_for_ever(users: RegistryAdministration, run: Run) -> None:
    """--permanent deletes softly first; what is gone has no id any more."""
    done = run("delete", "users", "--version", "1", "--permanent", "--yes", "--json")
    assert json.loads(done.stdout)["deleted"] is True
    assert users.versions("users", deleted=True) == [2]
    with pytest.raises(RegistryRefused):
        users.schema(1)
    done = run("delete", "users", "--version", "1", "--yes")
    assert done.returncode == 1
    assert "has no version 1" in done.stderr


def test_a_whole_subject_goes_for_ever(users: RegistryAdministration, run: Run) -> None:
    """Also the versions that were deleted softly before."""
    users.delete_version("users", 1)
    assert run("delete", "users", "--permanent", "--yes").returncode == 0
    assert users.subjects(deleted=True) == []
    done = run("delete", "users", "--yes")
    assert done.returncode == 1
    assert "Subject 'users' not found" in done.stderr


def test_the_registry_may_stand_in_a_file(registry: Registry, tmp_path: Path) -> None:
    """--config; an unknown key is refused with the nearest known one (status 78)."""
    config = tmp_path / "schemas.yml"
    config.write_text(f"schema.registry.url: {registry.url}\n")
    done = run_skidway("schemas", "list", "--json", "--config", str(config))
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    config.write_text(f"schema.registry.urls: {registry.url}\n")
    done = run_skidway("schemas", "list", "--config", str(config))
    assert done.returncode == 78
    assert "schema.registry.url" in done.stderr
