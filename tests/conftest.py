"""Fixtures that every suite may use: real ZooKeeper, Apache Kafka and HDFS, started only when asked for."""

pytest_plugins = ["support.zookeeper", "support.kafka", "support.hdfs"]
