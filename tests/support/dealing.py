"""How tests are dealt out to the processes of a run (`--dist loadgroup`): by file, and files that
share what is dear to start together.

xdist's own way, a mark's name behind a test's id, is without effect with pytest 9.2: every process
told all stories. Here the controller goes by the file alone, which every id names.
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
"""The stories of one pipeline, which share its loads; and what needs an HDFS."""
_GROUPS = {file: group for group, files in TOGETHER.items() for file in files}


def group_of(test_id: str) -> str:
    """What one process has as a whole."""
    file = test_id.partition("::")[0]
    return _GROUPS.get(file, file)


class Dealing(LoadScopeScheduling):
    """Groups one by one, those with most tests first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Dealing | None:
    """None: xdist's own, for what only computes."""
    return Dealing(config, log) if config.getvalue("dist") == "loadgroup" else None
