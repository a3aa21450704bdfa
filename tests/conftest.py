"""Fixtures that every suite may use, and how Hypothesis runs everywhere.

ZooKeeper, Apache Kafka and HDFS are the real ones, started only when asked for. Random examples
have no deadline (a busy machine is no fault of the code), print what replays them, and are the same
ones at every run on a build machine (CI=true).
"""

import os

from hypothesis import settings

pytest_plugins = ["support.zookeeper", "support.kafka", "support.hdfs"]

settings.register_profile(
    "skidway",
    deadline=None,
    print_blob=True,
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("skidway")

os.environ["SKIDWAY_PROFILE"] = ""
"""Commands of tests ask whom they are told to, not whom a developer's own profile names."""
