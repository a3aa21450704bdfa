"""What every suite may use: fixtures, and how random schedules and examples are chosen.

ZooKeeper, Apache Kafka and HDFS are the real ones, started only when a test asks for them.

Suites start programs by the hundred. Without bytecode files each program would compile our modules
anew. So the programs that tests start may write bytecode files, even where PYTHONDONTWRITEBYTECODE
is set.
"""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

os.environ["SKIDWAY_PROFILE"] = ""
"""Commands ask the servers that a test names, not the servers of a developer's own profile."""

pytest_plugins = [
    "support.randomness",
    "support.dealing",
    "support.zookeeper",
    "support.kafka",
    "support.hdfs",
]
