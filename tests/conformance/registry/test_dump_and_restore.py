"""`skidway schemas dump` and `skidway schemas restore` copy schemas between real registries, files
and topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from skidway.kafka.client import LATEST, Client
from skidway.kafka.types import TopicPartition
from skidway.schemas.client import Reference, RegistryAdministration
from skidway.schemas.dump import registry as registry_contents
from skidway.schemas.dump.contents import Contents
from support.brokers import SkidwayBroker
from support.kafka import ApacheKafka, tool, topic_name
from support.processes import run_skidway, running
from support.registry import Registry

ADDRESS = {"type": "record", "name": "Address", "namespace": "a.b", "fields": []}
V1 = {"type": "record", "name": "User", "fields": [{"name": "name", "type": "string"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "home", "type": ["null", "a.b.Address"]}]}

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def skidway(verb: str, registry: Registry, *arguments: str) -> CompletedProcess[str]:
    return run_skidway("schemas", verb, "--registry", registry.url, *arguments)


def contents(registry: Registry) -> Contents:
    return registry_contents.read(RegistryAdministration(registry.url))


@pytest.fixture
def empty(zookeeper: str, tmp_path: Path) -> Iterator[Registry]:
    """A second registry that shares no data with the first registry."""
    made = Registry(f"{zookeeper}-other", tmp_path)
    with running(made.program, made.ready):
        yield made


@pytest.fixture
def full(registry: Registry) -> Registry:
    """A registry that contains references, soft deletions, compatibility levels and a mode. The
    schema with the highest id is permanently deleted."""
    client = RegistryAdministration(registry.url)
    client.set_level(None, {"compatibility": "NONE"})
    client.register("address", json.dumps(ADDRESS))
    client.register("users", json.dumps(V1))
    client.register("users", json.dumps(V2), (Reference("a.b.Address", "address", 1),))
    client.register("users/old", json.dumps(V1))
    client.register("gone", '"int"')
    client.delete_subject("gone")
    client.delete_subject("gone", permanent=True)
    client.delete_version("users", 1)
    client.delete_subject("users/old")
    client.set_level("users", {"compatibility": "FULL"})
    client.set_mode("address", "READONLY")
    return registry


def test_a_dump_brings_an_empty_registry_to_the_same(
    full: Registry, empty: Registry, tmp_path: Path
) -> None:
    """A restore into an empty registry brings back ids, versions, deletions, references,
    compatibility levels and modes. Later registrations get ids above the highest old id."""
    file = tmp_path / "registry.jsonl"
    done = skidway("dump", full, str(file), "--json")
    assert (done.returncode, json.loads(done.stdout)["versions"]) == (0, 4)
    done = skidway("restore", empty, str(file), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["imported"] == 4
    assert contents(empty) == contents(full)
    assert contents(empty).highest_id == 4
    client = RegistryAdministration(empty.url)
    assert client.register("fresh", '"long"') == 5
    assert json.loads(client.schema(2)) == V1


def test_a_restore_is_repeated_without_harm(
    full: Registry, empty: Registry, tmp_path: Path
) -> None:
    """If the same dump is restored twice, the second restore changes nothing. A dry run changes
    nothing either."""
    file = tmp_path / "registry.jsonl"
    skidway("dump", full, str(file))
    before = contents(empty)
    assert json.loads(skidway("restore", empty, str(file), "--dry-run", "--json").stdout) == {
        "done": False, "in_dump": 4, "imported": 4, "deleted": 2, "levels": 2, "modes": 1,
        "highest_id": 4, "passed_over": 0,
    }  # fmt: skip
    assert contents(empty) == before
    skidway("restore", empty, str(file))
    done = json.loads(skidway("restore", empty, str(file), "--json").stdout)
    assert (done["imported"], done["deleted"], done["levels"], done["modes"]) == (0, 0, 0, 0)


def test_a_conflict_is_refused_before_anything_is_written(
    full: Registry, empty: Registry, tmp_path: Path
) -> None:
    """If an id of the dump belongs to another schema in the registry, the restore prints one
    sentence with this id, exits with status 1, and leaves the registry unchanged."""
    file = tmp_path / "registry.jsonl"
    skidway("dump", full, str(file))
    RegistryAdministration(empty.url).register("mine", '"double"')
    before = contents(empty)
    done = skidway("restore", empty, str(file))
    assert done.returncode == 1
    assert "id 1, in the dump address version 1, is mine version 1 there" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert contents(empty) == before


def test_one_subject_is_restored_with_what_it_refers_to(
    full: Registry, empty: Registry, tmp_path: Path
) -> None:
    """With --subject and --no-modes, a restore brings back only this subject, its compatibility
    level, and the schemas that it references. The registry's global level and its modes stay
    unchanged."""
    file = tmp_path / "registry.jsonl"
    skidway("dump", full, str(file))
    done = skidway("restore", empty, str(file), "--subject", "users", "--no-modes")
    assert done.returncode == 0, done.stderr
    found = contents(empty)
    assert sorted(found.versions) == [("address", 1), ("users", 1), ("users", 2)]
    assert found.levels["users"] == {"compatibilityLevel": "FULL"}
    assert found.levels[None] == {"compatibilityLevel": "BACKWARD"}
    assert not found.modes
    done = skidway("restore", empty, str(file), "--subject", "nobody")
    assert done.returncode == 1
    assert "no subject nobody" in done.stderr


def test_a_printed_topic_is_restored(full: Registry, empty: Registry) -> None:
    """A restore can read from standard input what kafka-console-consumer prints for the topic of
    Confluent's registry: the key and the value of each record. `dump --console` prints a dump in
    this form."""
    printed = skidway("dump", full, "--console").stdout
    assert printed.splitlines()[0] == '{"keytype":"NOOP","magic":0}\t{"maxId":4}'
    done = run_skidway("schemas", "restore", "--registry", empty.url, input_text=printed)
    assert done.returncode == 0, done.stderr
    assert contents(empty) == contents(full)


def test_what_is_live_is_not_deleted_without_a_yes(
    full: Registry, empty: Registry, tmp_path: Path
) -> None:
    """If a version is deleted in a dump, but not in the registry, a restore deletes the version in
    the registry only with --yes."""
    file = tmp_path / "registry.jsonl"
    skidway("dump", full, str(file))
    skidway("restore", empty, str(file), "--no-modes")
    RegistryAdministration(empty.url).register("users/old", json.dumps(V1))
    assert RegistryAdministration(empty.url).versions("users/old") == [2]
    client = RegistryAdministration(full.url)
    client.register("users/old", json.dumps(V1))
    client.delete_subject("users/old")
    skidway("dump", full, str(file))
    done = skidway("restore", empty, str(file))
    assert done.returncode == 2
    assert "users/old version 2" in done.stderr
    assert skidway("restore", empty, str(file), "--yes").returncode == 0
    assert "users/old" not in RegistryAdministration(empty.url).subjects()


@pytest.mark.java
def test_a_topic_of_apache_kafka_takes_a_dump_and_gives_it_back(
    full: Registry, empty: Registry, apache_kafka: ApacheKafka
) -> None:
    """A dump can be written into a topic of Kafka. `dump` refuses a topic that already contains
    records. A restore from the topic gives an empty registry the contents of the dumped registry. A
    restore also accepts the output of kafka-console-consumer for this topic."""
    topic = topic_name("schemas")
    at = ("--bootstrap-server", apache_kafka.address)
    done = skidway("dump", full, "--to-topic", topic, *at)
    assert done.returncode == 0, done.stderr
    done = skidway("dump", full, "--to-topic", topic, *at)
    assert done.returncode == 1
    assert "has records already" in done.stderr
    done = skidway("restore", empty, "--from-topic", topic, *at)
    assert done.returncode == 0, done.stderr
    assert contents(empty) == contents(full)
    tp = TopicPartition(topic, 0)
    with Client(apache_kafka.address) as client:
        count = client.list_offsets({tp: LATEST})[tp].offset
    limits = ("--max-messages", str(count), "--timeout-ms", "120000")
    printing = ("--from-beginning", *limits, "--formatter-property", "print.key=true")
    printed = tool(CONSOLE_CONSUMER, [*at, "--topic", topic, *printing])
    done = run_skidway("schemas", "restore", "--registry", empty.url, "--json", input_text=printed)
    assert (done.returncode, json.loads(done.stdout)["in_dump"]) == (0, 4), done.stderr


def test_a_topic_of_several_partitions_is_no_registrys(
    empty: Registry, skidway_broker: SkidwayBroker
) -> None:
    """If the topic of --from-topic does not exist or has several partitions, the restore says so in
    one sentence and exits with status 1."""
    at = ("--bootstrap-server", skidway_broker.address)
    topic = topic_name("schemas")
    run_skidway("topics", "create", *at, topic, "--partitions", "2")
    done = skidway("restore", empty, "--from-topic", topic, *at)
    assert (done.returncode, "has 2 partitions" in done.stderr) == (1, True)
    done = skidway("restore", empty, "--from-topic", topic_name("none"), *at)
    assert (done.returncode, "There is no topic" in done.stderr) == (1, True)
