"""How the tests of a run are dealt out to its processes (`--dist loadgroup`): file by file. Files
that share something slow to start go to the same process.

xdist itself appends the name of a mark to a test's id. With pytest 9.2 the appended name has no
effect, and every process would run all stories (the long end-to-end tests). So the scheduler here
looks only at the file, which is part of every test's id.
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
        "tests/e2e/test_loader_faults.py",
        "tests/e2e/test_real_logs.py",
        "tests/e2e/test_recount.py",
    ),
    "hdfs": (
        "tests/crash/audit/test_hdfs_output.py",
        "tests/crash/loader/test_hdfs_store.py",
        "tests/crash/loader/test_hdfs_trouble.py",
        "tests/crash/loader/test_load.py",
    ),
}
"""Groups of files whose tests run in one process: the files whose stories share one pipeline and
its loads, and the files that use an HDFS."""
_GROUPS = {file: group for group, files in TOGETHER.items() for file in files}


def group_of(test_id: str) -> str:
    """The name of a test's group. One process runs all tests of a group."""
    file = test_id.partition("::")[0]
    return _GROUPS.get(file, file)


class Dealing(LoadScopeScheduling):
    """Deals out whole groups; the groups with most tests go first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing | None:
    """Our scheduler for `--dist loadgroup`. If `--dist` has another value, as for tests that only
    compute, returns None; then pytest uses xdist's own scheduler."""
    return Dealing(config, log) if config.getvalue("dist") == "loadgroup" else None
