"""Adds to the report of a failed test what the programs that it used have printed: the last lines
of each program that the test or one of its fixtures started, or that an earlier test left running.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from support import processes

LINES = 100


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forgets the programs that earlier tests have ended."""
    processes.LOGS[:] = [log for log in processes.LOGS if log.is_open() or not log.is_awaited]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the logs to the report of each phase that failed."""
    report = yield
    if report.failed:
        report.sections += [(log.title, log.tail(LINES)) for log in processes.LOGS]
    return report
