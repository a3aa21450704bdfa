"""Benchmarks of Skidway and of comparable systems (its peers), measured in turn in one run.

    python -m bench.run [NAME ...]     (`make bench` calls this; default: all benchmarks)

The modules; after the colon stands the peer of the benchmark, or each of its peers:

    run           the list of benchmarks; writes their results
    machine       a description of this machine; CPU and memory of processes
    measure       rounds in turn, medians, ratios, CSV and Markdown
    plots         SVG: bars of medians, lines over a run
    scale         full size, or a trial that only shows that a benchmark runs
    sites         starts our broker and the peers for a benchmark, and stops them after it
    debian        installs packages of peers without starting their services
    librdkafka    librdkafka's producer, called as a program in C calls it
    produce       200-byte messages by librdkafka, batch 1 and 50, acks 0 and 1: Apache Kafka 4.1
    consume       reads 200-byte messages with confluent-kafka, with kcat and with our fetcher,
                  which returns columns: Apache Kafka 4.1
    shapes        1 and 10 KB, acks, producers, codecs; CPU and memory for each GB: Apache Kafka 4.1
    latency       from produce to consume at a steady rate: Apache Kafka 4.1
    fleet         5,000 connections that each send a little (fleet_load: the load): Apache Kafka 4.1
    neighbours    one client with few requests beside 20 that send without pause (neighbours_load:
                  the load): Apache Kafka 4.1
    brokers       one and two brokers on one host (brokers_load: the load): Apache Kafka 4.1
    groups        1,000 groups that commit once a second, with the work of ZooKeeper: Apache
                  Kafka 4.1
    mirror        copies a topic into another cluster: MirrorMaker 2 and its target cluster
    line          one line from its file to a consumer and to a row, one load each minute; no peer
    idle          20,000 files that no program writes to: rsyslog
    agent         raw and parsed lines from a file into a broker: rsyslog (imfile, omkafka)
    partitions    2,000 partitions on one broker, started and idle: Apache Kafka 4.1
    tools         each system's own producer, the Java consumer on both brokers, a read from a cold
                  page cache: Apache Kafka 4.1
    codec         Arrow columns to Avro datums and back: fastavro, avro
    loader        broker to hourly zstd Parquet: Spark's own Kafka source with from_avro
                  (spark_source)
    small         a load of few rows, alone and in a loader that stays: the same peer
    small_batches  loader and counter on batches of few records: the same code, batch by batch
    year          `resident` and `year`: load after load of a simulated fleet, for a long time; no
                  peer (year_load: the loads; year_fleet: the hosts)
    paper/        the experiment of the Kafka paper again: Apache Kafka 4.1, RabbitMQ,
                  ActiveMQ; only when named (`make bench-paper`), because it installs the last two

No benchmark asserts a figure; docs/performance.md has the figures of the last run. With
BENCH_QUICK=1 benchmarks are trials that take seconds and write no results.
"""

import sys
from pathlib import Path

# Benchmarks start servers with the same code as the tests: tests/support.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
