"""What every suite may use: fixtures, and how random schedules and examples are chosen.

ZooKeeper, Apache Kafka and HDFS are the real ones, started only when asked for.
"""

pytest_plugins = ["support.randomness", "support.zookeeper", "support.kafka", "support.hdfs"]
