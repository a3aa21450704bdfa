"""Assigns the tests of a run with `--dist loadgroup` to the run's processes, file by file. If files
share a fixture that starts slowly, they go to the same process. What takes long begins first, so
that no process still works when the others have ended.

xdist's own scheduler expects the name of the group at the end of a test's id, where xdist appends
it. With pytest 9.2 the appended name has no effect, so with xdist's own scheduler every process
would run all stories (the long end-to-end tests). Therefore the scheduler of this module looks only
at the file, which is part of every test's id.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER: Mapping[str, tuple[str, ...]] = {
    "site": (
        "tests/e2e/test_agent_faults.py",
        "tests/e2e/test_broker_faults.py",
        "tests/e2e/test_complete.py",
        "tests/e2e/test_hdfs.py",
        "tests/e2e/test_loader_faults.py",
        "tests/e2e/test_real_logs.py",
        "tests/e2e/test_records_of_several_lines.py",
        "tests/e2e/test_recount.py",
        "tests/e2e/test_trace.py",
    ),
    "spark": (
        "tests/crash/audit/test_hdfs_output.py",
        "tests/crash/loader/test_datasource.py",
        "tests/crash/loader/test_hdfs_store.py",
        "tests/crash/loader/test_hdfs_trouble.py",
        "tests/crash/loader/test_illegal_topics.py",
        "tests/crash/loader/test_load.py",
        "tests/crash/loader/test_progress.py",
        "tests/crash/loader/test_reload.py",
        "tests/crash/loader/test_resident.py",
        "tests/crash/loader/test_rewriting.py",
        "tests/crash/loader/test_stream.py",
        "tests/crash/loader/test_tables.py",
    ),
    "kafka": (
        "tests/conformance/client/test_stock_clients.py",
        "tests/conformance/client/test_transactions.py",
        "tests/conformance/consumer/test_groups.py",
        "tests/conformance/mirror/test_apache_kafka.py",
        "tests/conformance/registry/test_dump_and_restore.py",
        "tests/conformance/skidway/test_commands.py",
        "tests/e2e/test_apache_kafka.py",
    ),
    "java": (
        "tests/conformance/java/test_admin.py",
        "tests/conformance/java/test_consumer.py",
        "tests/conformance/java/test_groups.py",
        "tests/conformance/java/test_log_files.py",
        "tests/conformance/java/test_producer.py",
    ),
}
"""Groups of files whose tests run in one process. The group `site` contains the end-to-end tests
that share one running pipeline. Those of the others share servers that are expensive to start: a
Spark and an HDFS, an Apache Kafka, Kafka's own clients.
"""
LONG = (
    "spark", "site", "tests/e2e/test_demo.py", "tests/crash/loader/test_spark_cluster.py",
    "tests/e2e/test_incidents.py", "kafka", "tests/crash/audit/test_audit_programs.py",
)  # fmt: skip
"""The groups and files that take longest, in this order, on two cores."""
SUITES = ("e2e", "crash", "conformance", "model", "unit")
"""The suites in the order in which their other files begin: the smallest files come last."""
_GROUPS = {file: group for group, files in TOGETHER.items() for file in files}


def group_of(test_id: str) -> str:
    """Returns the name of a test's group. One process runs all tests of a group."""
    file = test_id.partition("::")[0]
    return _GROUPS.get(file, file)


def suite_of(test_id: str) -> str:
    """Returns the name of a test's suite, or "" if the test is in none."""
    return test_id.split("/")[1] if test_id.startswith("tests/") else ""


def rank_of(test_id: str) -> tuple[int, int]:
    """Returns a sort key: tests with a lower key begin earlier."""
    group, suite = group_of(test_id), suite_of(test_id)
    return (
        LONG.index(group) if group in LONG else len(LONG),
        SUITES.index(suite) if suite in SUITES else len(SUITES),
    )


class Dealing(LoadScopeScheduling):
    """Assigns whole groups to processes, in the order of the collected tests."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks each test with the name of its suite (unit tests excepted), and puts the tests into the
    order in which they begin."""
    for item in items:
        suite = suite_of(item.nodeid)
        if suite in SUITES[:-1]:
            item.add_marker(suite)
    items.sort(key=lambda item: rank_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing | None:
    """Returns our scheduler for `--dist loadgroup`. For any other value of `--dist` (unit tests use
    another one), returns None, so that pytest uses xdist's own scheduler.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False  # xdist would begin with the groups of most tests
    return Dealing(config, log)
