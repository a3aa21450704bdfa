"""How tests are dealt out to the processes of a run (`--dist loadgroup`): file by file; files that
share something slow to start go to the same process.

xdist's own way, which appends a mark's name to a test's id, has no effect with pytest 9.2: every
process ran all stories. Here the controller looks only at the file, which every id names.
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
        "tests/e2e/test_loader_faults.py",
        "tests/e2e/test_real_logs.py",
        "tests/e2e/test_recount.py",
    ),
    "hdfs": (
        "tests/crash/audit/test_hdfs_output.py",
        "tests/crash/loader/test_hdfs_store.py",
        "tests/crash/loader/test_load.py",
    ),
}
"""Files that stay together: stories that share one pipeline and its loads, and users of an HDFS."""
_GROUPS = {file: group for group, files in TOGETHER.items() for file in files}


def group_of(test_id: str) -> str:
    """The name of the group of a test; one process runs a group as a whole."""
    file = test_id.partition("::")[0]
    return _GROUPS.get(file, file)


class Dealing(LoadScopeScheduling):
    """Deals out whole groups, those with most tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing | None:
    """Our scheduler for `--dist loadgroup`; None means xdist's own, for tests that only compute."""
    return Dealing(config, log) if config.getvalue("dist") == "loadgroup" else None
