"""kafka-python's own integration tests, which are in its source distribution, pass with our
broker."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import peers
from support.brokers import SkidwayBroker
from support.stock_clients import TESTS

pytestmark = pytest.mark.slow

SUITE = "test/integration"
FILES = ("producer", "consumer", "admin")
FILES_NOT_SERVED = {
    "sasl": "listeners are PLAINTEXT: there is no authentication",
    "ssl": "listeners are PLAINTEXT: there is no TLS",
}
KAFKA_VERSION = "3.0"
"""The version of Apache Kafka that kafka-python infers from the API versions that our broker
offers."""
TESTS_OF_ITS = 40
WITHIN_S = 600

NOT_SERVED = {
    "test_transactional_producer_messages": "transactions are not served",
    "test_transactional_producer_offsets": "transactions are not served",
    "test_create_describe_delete_acls": "access control lists are not served",
    "test_elect_leaders": "a partition has one replica: ElectLeaders is not served",
    "test_alter_partition_reassignments": "a partition has one replica: it is not moved",
    "test_list_partition_reassignments": "a partition has one replica: it is not moved",
    "test_alter_replica_log_dirs": "a partition stays in its log directory",
    "test_describe_configs_broker_resource_returns_configs": (
        "before 4.0 it wants advertised.listeners changed while the broker runs; ours is read only"
    ),
}
OF_OTHER_VERSIONS = {
    "test_kafka_consumer_offsets_for_time_old": "for brokers before 0.10.1",
    "test_describe_metadata_quorum": "for KRaft",
    "test_describe_topic_partitions": "for KRaft",
    "test_describe_topic_partitions_pagination": "for KRaft",
    "test_list_config_resources": "for KRaft",
}
BY_CHANCE = {
    "test_kafka_consumer": (
        "it gives up after two seconds without a record; on a busy machine 3.0.12 has lost its "
        "assignment (docs/clients.md). Our own story reads in a group, with a poll that waits"
    ),
    **dict.fromkeys(
        ("test_group", "test_describe_group_exists"),
        "its members poll for 200 ms; on a busy machine a member of 3.0.12 has kept an assignment "
        "without partitions, made before it knew the topic",
    ),
}
EXCLUDED = {**NOT_SERVED, **OF_OTHER_VERSIONS}


SETTINGS = {
    "broker_id": 0,
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 1_000,
}
"""The broker settings that kafka-python's tests rely on."""


@pytest.fixture
def broker_zero(tmp_path: Path, zookeeper: str) -> Iterator[SkidwayBroker]:
    broker = SkidwayBroker(tmp_path, zookeeper, **SETTINGS)
    try:
        yield broker.start()
    finally:
        broker.end()


def test_its_own_tests_pass(broker_zero: SkidwayBroker, tmp_path: Path) -> None:
    """All of kafka-python's integration tests run and pass, except the tests that the lists in this
    module exclude."""
    source, report = peers.source("kafka-python"), tmp_path / "report.xml"
    files = [f"{SUITE}/test_{name}_integration.py" for name in FILES]
    chosen = [f"not {name}" for name in EXCLUDED]
    # `not {name}` alone would also exclude the tests whose names begin with `{name}_`
    chosen += [f"not ({name} and not {name}_)" for name in BY_CHANCE]
    # `--tb=native` is needed. To make a traceback of its own, pytest would parse the source with
    # ast, and this fails while the suite's threads run.
    command = [
        sys.executable, "-m", "pytest", "-q", "--tb=native", "--assert=plain", "-W", "ignore",
        "-o", "addopts=", "-o", "log_level=WARNING", "-p", "no:cacheprovider",
        "-p", "clients.kafka_python_plugin", f"--junit-xml={report}",
        "-k", " and ".join(chosen), *files,
    ]  # fmt: skip
    environment = {
        "KAFKA_URI": f"kafka://{broker_zero.address}",
        "KAFKA_VERSION": KAFKA_VERSION,
        "KAFKA_ROOT": str(source),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join([str(source), str(TESTS)]),
    }
    done = subprocess.run(
        command, cwd=source, env={**os.environ, **environment}, capture_output=True, text=True,
        timeout=WITHIN_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
    suite = ElementTree.parse(report).getroot().find("testsuite")
    assert suite is not None
    assert suite.get("skipped") == "0", done.stdout[-8000:]
    assert suite.get("tests") == str(TESTS_OF_ITS)


def test_what_is_excluded_is_there() -> None:
    """Every excluded name is the name of one of kafka-python's tests. Each of kafka-python's files
    with integration tests is in FILES or in FILES_NOT_SERVED."""
    source = peers.source("kafka-python")
    found = {path.name for path in (source / SUITE).glob("test_*.py")}
    assert found == {f"test_{name}_integration.py" for name in (*FILES, *FILES_NOT_SERVED)}
    text = "".join((source / SUITE / f"test_{name}_integration.py").read_text() for name in FILES)
    assert [name for name in (*EXCLUDED, *BY_CHANCE) if f"def {name}(" not in text] == []
