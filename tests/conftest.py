"""Loads the fixtures that every test suite can use, and the rules that choose tests, and the
seeds of tests with random input, and the report of a failed test.

The fixtures for ZooKeeper, Apache Kafka and HDFS start the real programs, but only when a test asks
for them.

The suites start hundreds of programs. Without bytecode files, each program would have to compile
our modules again. So the programs that tests start may write bytecode files, even if
PYTHONDONTWRITEBYTECODE is set.
"""

import gc
import os
import sys
from collections.abc import Iterator

import pytest

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

os.environ["SKIDWAY_PROFILE"] = ""
"""The profile is empty, so that commands use the servers that a test names, and not the servers in
a developer's own profile."""

pytest_plugins = [
    "support.randomness",
    "support.dealing",
    "support.fork_server",
    "support.program_logs",
    "support.zookeeper",
    "support.kafka",
    "support.hdfs",
]


def pytest_configure(config: pytest.Config) -> None:
    """Names a path that does not exist. Of several processes, none would name it."""
    for each in config.args:
        path = config.invocation_params.dir / each.partition("::")[0]
        if not path.exists():
            raise pytest.UsageError(f"there is no file or directory {path}")


def pytest_collection_finish() -> None:
    """Leaves the collected tests out of the garbage collector's work, which takes a tenth of the
    time otherwise."""
    gc.freeze()


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Other users may read what a test makes, also if an earlier test ran a command in this
    process, which has set the umask of a program."""
    before = os.umask(0o022)
    yield
    os.umask(before)
