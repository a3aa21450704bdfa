"""What every suite may use: fixtures, and how random schedules and examples are chosen.

ZooKeeper, Apache Kafka and HDFS are the real ones, started only when asked for.

Suites start programs by the hundred. Where Python is told to write no bytecode each of them would
compile our modules anew, so what tests start is not told so.
"""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

os.environ["SKIDWAY_PROFILE"] = ""
"""Commands of tests ask whom they are told to, not whom a developer's own profile names."""

pytest_plugins = [
    "support.randomness",
    "support.dealing",
    "support.zookeeper",
    "support.kafka",
    "support.hdfs",
]
