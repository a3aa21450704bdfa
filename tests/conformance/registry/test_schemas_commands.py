"""The subcommands of `skidway schemas` meet the expectations of people and CI jobs: they make the
right changes, print the right output, and refuse mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from skidway.producer import Producer
from skidway.schemas.client import Reference, RegistryAdministration, RegistryRefused
from skidway.schemas.wire import prefix
from support.brokers import SkidwayBroker
from support.kafka import topic_name
from support.processes import call_skidway
from support.registry import Registry

V1 = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "age", "type": ["null", "int"], "default": None}]}
BROKEN = {**V1, "fields": [*V1["fields"], {"name": "must", "type": "int"}]}

Run = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def run(registry: Registry) -> Run:
    """Returns a function that runs one command of `skidway schemas` (for example `list`) with the
    test's registry."""

    def verb(name: str, *arguments: str) -> CompletedProcess[str]:
        return call_skidway("schemas", name, "--registry", registry.url, *arguments)

    return verb


@pytest.fixture
def client(registry: Registry) -> RegistryAdministration:
    return RegistryAdministration(registry.url)


@pytest.fixture
def users(client: RegistryAdministration) -> RegistryAdministration:
    """Registers two schemas, with the ids 1 and 2, as the versions of the subject `users`. Returns
    the client."""
    client.register("users", json.dumps(V1))
    client.register("users", json.dumps(V2))
    return client


def file(folder: Path, schema: object) -> str:
    path = folder / "schema.avsc"
    path.write_text(json.dumps(schema))
    return str(path)


def test_a_list_has_one_line_per_subject(users: RegistryAdministration, run: Run) -> None:
    """`list` prints one line for each subject with the subject's latest version. The option
    --prefix selects subjects, and --deleted adds the deleted versions."""
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
    """A dry run of a registration says whether the schema is already registered, compatible, or
    incompatible. If the schema is incompatible, the command exits with status 1."""
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
    """Without --yes, `delete` prints what it would delete and leaves the registry unchanged. The
    exit status is then 2, or 0 with --dry-run."""
    done = run("delete", "users")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert [line.split()[:5] for line in done.stdout.splitlines()[1:]] == [
        ["users", "1", "1", "live", "soft-deleted"],
        ["users", "2", "2", "live", "soft-deleted"],
    ]
    assert run("delete", "users", "--dry-run").returncode == 0
    assert users.versions("users") == [1, 2]


def test_what_was_soft_deleted_comes_back_under_its_id(
    users: RegistryAdministration, run: Run
) -> None:
    """After `delete` and `undelete`, each schema of the subject has its old id again, so that the
    ids in existing records stay valid."""
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
    assert "nothing that was soft-deleted" in done.stderr


def test_one_version_goes_for_ever(users: RegistryAdministration, run: Run) -> None:
    """With --permanent, `delete` first soft-deletes a version and then deletes it permanently.
    Afterwards the id of the version's schema is unknown."""
    done = run("delete", "users", "--version", "1", "--permanent", "--yes", "--json")
    assert json.loads(done.stdout)["deleted"] is True
    assert users.versions("users", deleted=True) == [2]
    with pytest.raises(RegistryRefused):
        users.schema(1)
    done = run("delete", "users", "--version", "1", "--yes")
    assert done.returncode == 1
    assert "has no version 1" in done.stderr


def test_a_whole_subject_goes_for_ever(users: RegistryAdministration, run: Run) -> None:
    """A permanent deletion of a subject includes the versions that were soft-deleted earlier."""
    users.delete_version("users", 1)
    assert run("delete", "users", "--permanent", "--yes").returncode == 0
    assert users.subjects(deleted=True) == []
    done = run("delete", "users", "--yes")
    assert done.returncode == 1
    assert "Subject 'users' not found" in done.stderr


def test_the_registry_may_stand_in_a_file(registry: Registry, tmp_path: Path) -> None:
    """The option --config names a file that contains the registry's address. If the file contains
    an unknown key, the command suggests the nearest known key and exits with status 78."""
    config = tmp_path / "schemas.yml"
    config.write_text(f"schema.registry.url: {registry.url}\n")
    done = call_skidway("schemas", "list", "--json", "--config", str(config))
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    config.write_text(f"schema.registry.urls: {registry.url}\n")
    done = call_skidway("schemas", "list", "--config", str(config))
    assert done.returncode == 78
    assert "schema.registry.url" in done.stderr


def test_a_check_says_why_and_what_to_write(
    users: RegistryAdministration, run: Run, tmp_path: Path
) -> None:
    """If a check fails, `check` prints the faulty field, the version with which this field
    conflicts, the compatibility levels that would allow the change, and a schema that would
    pass."""
    done = run("check", "users", file(tmp_path, BROKEN))
    assert done.returncode == 1
    assert "must: version 2 does not have this field" in done.stdout
    assert "The level is BACKWARD; compatible under: FORWARD, FORWARD_TRANSITIVE" in done.stdout
    found = json.loads(run("check", "users", file(tmp_path, BROKEN), "--json").stdout)
    assert found["compatible"] is False
    assert [each["place"] for each in found["faults"]] == ["must"]
    suggested = json.loads(found["suggestion"]["schema"])
    assert suggested["fields"][1]["name"] == "must"
    done = run("check", "users", file(tmp_path, suggested))
    assert (done.returncode, done.stdout) == (0, "compatible with users\n")


def test_a_check_is_what_a_registration_would_be_measured_by(
    users: RegistryAdministration, run: Run, tmp_path: Path
) -> None:
    """If the compatibility level is transitive, `check` compares the schema with all versions, as a
    registration does. With --version, `check` compares the schema with only that version."""
    long = file(tmp_path, {**V1, "fields": [{"name": "age", "type": "long"}]})
    users.set_level("users", {"compatibility": "NONE"})
    users.register("users", json.dumps({**V1, "fields": [{"name": "age", "type": "int"}]}))
    users.set_level("users", {"compatibility": "BACKWARD"})
    assert run("check", "users", long).returncode == 0
    users.set_level("users", {"compatibility": "BACKWARD_TRANSITIVE"})
    done = run("check", "users", long)
    assert done.returncode == 1
    assert "version 2" in done.stdout
    assert run("check", "users", long, "--version", "3").returncode == 0
    assert run("check", "users", long, "--version", "latest").returncode == 0


def test_advice_knows_types_of_other_subjects(
    client: RegistryAdministration, run: Run, tmp_path: Path
) -> None:
    """If a schema has references, `check` resolves them, both to check the schema and to suggest a
    repaired schema."""
    client.register("address", json.dumps({"type": "enum", "name": "City", "symbols": ["ROME"]}))
    takes = (Reference("City", "address", 1),)
    home = {"type": "record", "name": "Home", "fields": [{"name": "city", "type": "City"}]}
    client.register("home", json.dumps(home), takes)
    home["fields"].append({"name": "second", "type": "City"})  # type: ignore[attr-defined]
    done = run("check", "home", file(tmp_path, home), "--reference", "City=address:1", "--json")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["faults"][0]["place"] == "second"
    assert json.loads(done.stdout)["suggestion"] is not None


def test_a_diff_sets_versions_side_by_side(
    users: RegistryAdministration, run: Run, tmp_path: Path
) -> None:
    """`diff` compares the last two versions, two given versions, or a version and a file. It
    names the compatibility levels that allow the change."""
    found = json.loads(run("diff", "users", "--json").stdout)
    assert (found["from"], found["to"]) == (1, "2")
    assert [(each["change"], each["place"]) for each in found["differences"]] == [
        ("field added", "age")
    ]
    assert found["allowed_by"] == ["BACKWARD", "FORWARD", "FULL"]
    done = run("diff", "users", file(tmp_path, BROKEN), "--from", "1")
    assert done.stdout.endswith("compatible under: FORWARD\n")
    assert "no difference" in run("diff", "users", file(tmp_path, V2)).stdout
    assert run("diff", "users", "--to", "1").returncode == 2


def test_a_schema_is_proposed_from_a_log(run: Run, tmp_path: Path) -> None:
    """`skidway schemas infer` proposes a schema from the lines of a log. It writes only the
    proposed schema to standard output, so that the output can be saved. To standard error it
    writes, for each field, the share of lines in which the field occurs."""
    log = tmp_path / "app.log"
    log.write_text('{"level": "INFO", "ms": 3}\n{"level": "WARN"}\n')
    done = call_skidway("schemas", "infer", str(log), "--name", "App")
    schema = json.loads(done.stdout)
    assert [each["name"] for each in schema["fields"]] == ["level", "ms", "_extra"]
    assert done.stderr.splitlines()[-1].split()[0] == "ms"
    assert done.stderr.splitlines()[-1].split()[-1] == "50.0%"
    proposed = tmp_path / "app.avsc"
    proposed.write_text(done.stdout)
    assert run("register", "app-value", str(proposed)).returncode == 0
    done = call_skidway("schemas", "infer", str(tmp_path / "none"))
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_who_uses_a_schema(
    users: RegistryAdministration, run: Run, skidway_broker: SkidwayBroker
) -> None:
    """For a given schema, `who-uses` lists the subjects that have this schema, the schemas that
    reference it, and the topics whose newest records were written with it."""
    topic = topic_name("users")
    at = ("--bootstrap-server", skidway_broker.address)
    call_skidway("topics", "create", *at, topic, "--partitions", "2")
    with Producer(skidway_broker.address) as producer:
        for partition, schema_id in ((0, 1), (0, 2), (0, 2), (1, 9)):
            producer.send(
                topic, prefix(schema_id) + b"x", partition=partition, timestamp_ms=1_700_000_000_000
            )
    found = json.loads(run("who-uses", "2", *at, "--topic", topic, "--json").stdout)
    assert found["versions"] == [
        {"id": 2, "subject": "users", "version": 2, "deleted": False, "referenced_by": []}
    ]
    assert found["topics"] == [
        {
            "topic": topic, "part": "value", "id": 2, "records": 2, "partitions": [0],
            "newest": "2023-11-14T22:13:20.000Z", "agents": [],
        }
    ]  # fmt: skip
    assert (found["looked_at"]["partitions"], found["looked_at"]["records"]) == (2, 4)
    done = run("who-uses", "users", "--version", "1", *at, "--topic", topic, "--records", "2")
    # `who-uses` has read only the newest two records of each partition, and none of them was
    # written with version 1.
    assert "none was written with it" in done.stdout
    assert "No topic was looked at" in run("who-uses", "users").stdout
    assert run("who-uses", "77").returncode == 1
