"""Benchmarks: Skidway beside its peers, in turn in one run, medians, with the machine named.

    python -m bench.run [NAME ...]     (what `make bench` calls; all of them by default)

    run           which benchmarks there are; what becomes of their results
    machine       what this machine is
    measure       rounds in turn, medians, ratios, CSV and Markdown
    plots         SVG: bars of medians, lines over a run
    scale         full size, or a trial that only shows that a benchmark runs
    sites         our broker and the peers, started for a benchmark and stopped behind it
    debian        packages of peers, installed without starting their services
    librdkafka    its producer, fed as a program in C feeds it
    produce       200-byte messages by librdkafka, batch 1 and 50, acks 0 and 1: Apache Kafka 4.1
    consume       the same messages back, by confluent-kafka and our columns: Apache Kafka 4.1
    shapes        1 and 10 KB, acks, producers, codecs; CPU and memory a GB: Apache Kafka 4.1
    latency       from produce to consume at a steady rate: Apache Kafka 4.1
    fleet         5,000 connections that each send a little (fleet_load: the load): Apache Kafka 4.1
    neighbours    one good client beside 20 that ask without end (neighbours_load: the load): Apache
                  Kafka 4.1
    brokers       one and two brokers on one host (brokers_load: the load): Apache Kafka 4.1
    groups        1,000 groups that commit once a second, and ZooKeeper's part: Apache Kafka 4.1
    mirror        a topic into another cluster: MirrorMaker 2 and the cluster it writes to
    line          one line from its file to a consumer and to a row, a load a minute; no peer
    idle          20,000 files that nobody writes to: rsyslog
    agent         raw and parsed lines from a file into a broker: rsyslog (imfile, omkafka)
    partitions    2,000 partitions on one broker, started and idle: Apache Kafka 4.1
    tools         each system's own producer, the Java consumer on both, a read from a cold cache
    codec         Arrow columns to Avro datums and back: fastavro, avro
    loader        broker to hourly zstd Parquet: Spark's own Kafka source with from_avro
                  (spark_source)
    paper/        the paper's experiment again: Apache Kafka 4.1, RabbitMQ, ActiveMQ; only when
                  named (`make bench-paper`), because it installs the last two

A figure here is measured, never asserted; docs/performance.md keeps the last run.
BENCH_QUICK=1 makes them trials that take seconds and write no results.
"""

import sys
from pathlib import Path

# Benchmarks start servers with what tests start them with: tests/support.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
