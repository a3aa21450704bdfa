"""Benchmarks of Skidway and of comparable systems (its peers). In most benchmarks, the runs of
Skidway and of its peers alternate.

    python -m bench.run [NAME ...]     (`make bench` calls this; default: all except `kerberos`
                                        and `paper`)

These are the modules. The description of a benchmark names the benchmark's peers after a colon, or
says that it has no peer:

    run           the list of benchmarks; writes their results
    machine       a description of this machine; CPU and memory of processes
    measure       runs the compared systems in turn; medians and ratios; CSV and Markdown
    plots         SVG: bars of medians, lines over a run
    scale         the size of runs: full, or a trial that only shows that a benchmark runs
    sites         starts and stops Skidway's broker and Apache Kafka for a benchmark
    debian        installs Debian packages of peers without starting their services
    librdkafka    librdkafka's producer, called as a program in C calls it
    produce       librdkafka sends messages of 200 bytes, in batches of 1 and of 50, with acks 0 and
                  1: Apache Kafka
    consume       reads 200-byte messages with confluent-kafka, with kcat and with Skidway's
                  fetcher, which returns columns: Apache Kafka
    latency       the time from produce to consume at a steady rate: Apache Kafka
    fleet         5,000 connections with few records each (fleet_load: the load): Apache Kafka
    neighbours    one client with few requests beside 20 clients that send without pause
                  (neighbours_load: the load): Apache Kafka
    mirror        copies a topic into another cluster: MirrorMaker 2 and its target cluster
    line          the time of a line from its file to a consumer and to a row, with a load every
                  10 s or every minute; no peer
    idle          20,000 files to which no program writes: rsyslog
    agent         lines of several kinds from a file into a broker: rsyslog (agent_lines: the files;
                  rsyslog: the peer)
    loading       what the benchmarks of the loader share: sites, topics, and programs that load
    loader        loads from a broker into hourly zstd Parquet: Spark's own Kafka source with
                  from_avro (spark_source)
    small         a load of few rows, in a new process and in a loader that keeps running: the same
                  peer as for `loader`
    tls           the broker with mutual TLS: Apache Kafka with mutual TLS, and the broker without
    kerberos      loads into an HDFS with Kerberos: an HDFS without. Runs only on request
    audit         how the audit's collector stores and judges the messages of a simulated fleet; no
                  peer (audit_load: the collector's work; audit_fleet: the hosts, in a process of
                  their own)
    paper/        repeats the experiment of the Kafka paper: Apache Kafka, RabbitMQ, ActiveMQ.
                  Runs only on request (`make bench-paper`), because it installs RabbitMQ and
                  ActiveMQ

The *sides* of a benchmark are the systems that it compares. A bad figure does not make a benchmark
fail. docs/performance.md has the figures of the last run. If BENCH_QUICK=1 is set, every benchmark
is only a trial that takes seconds and writes no results.
"""

import sys
from pathlib import Path

# Benchmarks start servers with the code that the tests use, which is in tests/support.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
