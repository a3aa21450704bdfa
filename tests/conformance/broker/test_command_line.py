from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.kafka.protocol.metadata import MetadataRequest, MetadataResponse
from support.batches import batch, sized
from support.brokers import SkidwayBroker
from support.processes import call_skidway, eventually, free_port, run_skidway
from support.raw_client import RawClient


def test_a_broker_without_mirrors_says_so(skidway_broker: SkidwayBroker) -> None:
    """If a broker mirrors nothing, `skidway mirror status` says so in one sentence. With --json the
    command prints an empty list."""
    listener = f"metrics.listener=127.0.0.1:{skidway_broker.metrics_port}"
    url = f"http://127.0.0.1:{skidway_broker.metrics_port}"
    done = call_skidway("mirror", "status", "--set", listener)
    assert (done.returncode, done.stdout) == (
        0,
        f"the broker at {url}/health mirrors nothing: it has no mirror.sources; --config names the"
        " settings of another broker of this host\n",
    )
    done = call_skidway("mirror", "status", "--json", "--set", listener)
    assert json.loads(done.stdout) == []


def test_a_broker_that_is_away_is_named() -> None:
    """If the broker does not answer, `skidway mirror status` prints one sentence and exits with
    status 3."""
    done = call_skidway("mirror", "status", "--set", f"metrics.listener=127.0.0.1:{free_port()}")
    assert done.returncode == 3
    assert "no broker answers at http://127.0.0.1:" in done.stderr


def test_settings_are_validated_without_starting() -> None:
    """`skidway broker validate` accepts good settings, refuses bad settings, and does not start a
    broker."""
    done = call_skidway("broker", "validate", "--set", "broker.id=7")
    assert done.returncode == 0
    assert "broker 7 of cluster main" in done.stdout
    done = call_skidway("broker", "validate", "--set", "brokr.id=7")
    assert done.returncode == 78
    assert "broker.id" in done.stderr


def test_topics_are_altered_and_described(skidway_broker: SkidwayBroker) -> None:
    """`skidway topics alter` changes settings and adds partitions. `skidway topics describe` shows
    settings with their sources, and partitions with size and offsets. If a setting is refused, the
    error names the setting."""
    at = ("--bootstrap-server", skidway_broker.address)
    topic = "altered"
    assert call_skidway("topics", "create", topic, "--partitions", "2", *at).returncode == 0
    with RawClient(skidway_broker.port) as client:
        client.produce(topic, sized(700, 5))
    done = call_skidway(
        *("topics", "alter", topic, "--topic-config", "retention.ms=5000", "--partitions", "3"),
        *("--append-config", "retention.hold=mirror", *at),
    )
    assert (done.returncode, done.stdout) == (0, f"altered {topic}\n"), done.stderr
    (described,) = json.loads(call_skidway("topics", "describe", topic, "--json", *at).stdout)
    assert described["config_sources"]["retention.ms"] == "TOPIC_CONFIG"
    assert described["configs"]["retention.hold"] == "mirror"
    rows = described["partitions"]
    assert [row["size_bytes"] for row in rows] == [700, 0, 0]
    assert [row["high_watermark"] for row in rows] == [5, 0, 0]
    assert {row["log_dir"] for row in rows} == {str(skidway_broker.logs)}
    shown = call_skidway("topics", "describe", topic, *at).stdout
    assert "retention.ms = 5000  (topic)" in shown
    assert "segment.bytes = 1073741824  (default)" in shown
    done = call_skidway("topics", "alter", topic, "--delete-config", "retention.ms", *at)
    assert done.returncode == 0
    assert (
        "retention.ms = 604800000  (default)"
        in call_skidway("topics", "describe", topic, *at).stdout
    )
    for setting in ("retention.ms=soon", "no.such.setting=1"):
        done = call_skidway("topics", "alter", topic, "--topic-config", setting, *at)
        assert done.returncode != 0
        assert setting.partition("=")[0] in done.stderr
    (described,) = json.loads(call_skidway("topics", "describe", topic, "--json", *at).stdout)
    assert described["configs"]["retention.ms"] == "604800000"


def test_topics_are_deleted_when_somebody_says_so(skidway_broker: SkidwayBroker) -> None:
    """Without a terminal, `skidway topics delete` deletes topics only with the option --yes. With
    --dry-run it shows the topics that it would delete, and deletes nothing."""
    at = ("--bootstrap-server", skidway_broker.address)
    created = call_skidway("topics", "create", "doomed", "--partitions", "2", "--json", *at)
    assert json.loads(created.stdout) == {"topic": "doomed", "created": True}
    with RawClient(skidway_broker.port) as client:
        client.produce("doomed", batch(b"one", b"two"))
    refused = call_skidway("topics", "delete", "doomed", *at)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    shown = call_skidway("topics", "delete", "doomed", "--dry-run", *at)
    assert (shown.returncode, shown.stdout.split()[-3:]) == (0, ["doomed", "2", "2"])
    assert "doomed" in call_skidway("topics", "list", *at).stdout
    deleted = call_skidway("topics", "delete", "doomed", "--yes", "--json", *at)
    assert json.loads(deleted.stdout) == [{"topic": "doomed", "deleted": True}]
    assert "doomed" not in call_skidway("topics", "list", *at).stdout


def test_a_profile_says_where_the_cluster_is(skidway_broker: SkidwayBroker, tmp_path: Path) -> None:
    """If the profile (the file that SKIDWAY_PROFILE names) contains bootstrap.servers, commands
    about topics and groups need no further options to find the cluster."""
    profile = tmp_path / "profile.yml"
    profile.write_text(f"bootstrap.servers: {skidway_broker.address}\n")
    env = {"SKIDWAY_PROFILE": str(profile)}
    assert run_skidway("topics", "create", "by-profile", env=env).returncode == 0
    assert "by-profile" in run_skidway("topics", "list", env=env).stdout
    assert run_skidway("groups", "list", "--json", env=env).stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        ((), 2, "say what to alter"),
        (("--topic-config", "retention.ms"), 2, "must be KEY=VALUE"),
        (("--topic-config", "retention.ms=soon"), 1, "retention.ms must be a whole number"),
        (("--partitions", "1"), 1, "INVALID_PARTITIONS"),
    ],
)
def test_what_cannot_be_altered_is_said(
    skidway_broker: SkidwayBroker, options: tuple[str, ...], status: int, words: str
) -> None:
    """If a change is refused, `skidway topics alter` prints one sentence and exits with the status
    for that kind of error."""
    at = ("--bootstrap-server", skidway_broker.address)
    call_skidway("topics", "create", "unaltered", "--if-not-exists", *at)
    done = call_skidway("topics", "alter", "unaltered", *options, *at)
    assert done.returncode == status
    assert words in done.stderr


def test_a_running_brokers_log_is_dumped(skidway_broker: SkidwayBroker) -> None:
    """`skidway broker dump-log` shows the batches of a partition as text or JSON, even while the
    broker runs, and says that their CRCs are correct."""
    at = ("--bootstrap-server", skidway_broker.address)
    assert call_skidway("topics", "create", "dumped", *at).returncode == 0
    with RawClient(skidway_broker.port) as client:
        client.produce("dumped", batch(b"first line", b"second line"))
    directory = str(skidway_broker.logs / "dumped-0")
    done = call_skidway("broker", "dump-log", directory, "--records")
    assert done.returncode == 0, done.stdout
    assert "second line" in done.stdout
    assert "good: offsets 0 to 1" in done.stdout
    (line,) = call_skidway("broker", "dump-log", directory, "--json").stdout.splitlines()
    assert json.loads(line)["crc_ok"]
    done = call_skidway("broker", "dump-log", str(skidway_broker.logs))
    assert done.returncode == 2
    assert "dumped-0" in done.stderr


@pytest.fixture
def pair(tmp_path: Path, zookeeper: str) -> Iterator[tuple[SkidwayBroker, SkidwayBroker]]:
    """Yields two brokers of one cluster. Only the first broker is started."""
    brokers = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        broker = SkidwayBroker(folder, zookeeper)
        broker.settings["broker.id"] = number
        brokers.append(broker)
    first, second = brokers
    try:
        yield first.start(), second
    finally:
        for each in brokers:
            each.end()


def leaders(broker: SkidwayBroker, topic: str) -> dict[int, int]:
    """Returns the leader of each partition, once each has one."""
    at = ("--bootstrap-server", broker.address)
    found: dict[int, int] = {}

    def is_described() -> bool:
        done = call_skidway("topics", "describe", topic, "--json", *at)
        rows = json.loads(done.stdout)[0]["partitions"] if done.returncode == 0 else []
        found.update((row["partition"], row["leader"]) for row in rows)
        return bool(found)

    eventually(is_described, what=f"leaders of {topic}")
    return found


def test_a_broker_that_joins_gets_new_partitions(pair: tuple[SkidwayBroker, SkidwayBroker]) -> None:
    """A broker that joins the cluster gets partitions of new topics, and partitions that are added
    to existing topics. Existing partitions do not move."""
    first, second = pair
    at = ("--bootstrap-server", first.address)
    assert call_skidway("topics", "create", "old", "--partitions", "2", *at).returncode == 0
    second.start()

    def knows_it() -> bool:
        with RawClient(first.port) as client:
            known = client.ask(MetadataRequest(topics=()), 8, MetadataResponse)
            assert isinstance(known, MetadataResponse)
            return len(known.brokers) == 2

    eventually(knows_it)
    assert call_skidway("topics", "alter", "old", "--partitions", "4", *at).returncode == 0
    assert call_skidway("topics", "create", "new", "--partitions", "2", *at).returncode == 0
    found = leaders(first, "old")
    assert (found[0], found[1], {found[2], found[3]}) == (1, 1, {1, 2})
    assert set(leaders(first, "new").values()) == {1, 2}


def test_a_topic_without_a_leader_is_described(pair: tuple[SkidwayBroker, SkidwayBroker]) -> None:
    """If a partition has no leader, `skidway topics describe` shows its replicas but no offsets,
    and shows the other partitions in full. The command prints a sentence about the partition
    without a leader, and exits with status 1."""
    stays, goes = pair
    goes.start()
    at = ("--bootstrap-server", stays.address)
    tried: list[str] = []

    def is_on_both() -> bool:
        tried.append(f"logs{len(tried)}")
        done = call_skidway("topics", "create", tried[-1], "--partitions", "2", *at)
        assert done.returncode == 0, done.stderr
        return set(leaders(stays, tried[-1]).values()) == {1, 2}

    eventually(is_on_both, what="a topic on both brokers")
    topic = tried[-1]
    (lost,) = (partition for partition, leader in leaders(stays, topic).items() if leader == 2)
    assert goes.program.stop() == 0
    done = call_skidway("topics", "describe", topic, "--json", *at)
    assert done.returncode == 1
    assert f"{topic}-{lost} has no leader now" in done.stderr
    rows = {row["partition"]: row for row in json.loads(done.stdout)[0]["partitions"]}
    assert rows[lost]["high_watermark"] is None
    assert rows[lost]["replicas"] == [2]
    assert [row["high_watermark"] for number, row in rows.items() if number != lost] == [0]
