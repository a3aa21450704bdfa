"""Settings of the loader: /etc/skidway/loader.yml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from skidway.audit.output.hadoop_client import HadoopSettings
from skidway.audit.signing.setting import audit_key_setting
from skidway.audit.topic.count_columns import LONGEST_MS
from skidway.errors import ConfigurationRefused
from skidway.host_name import host_name, host_name_setting
from skidway.http.hosts import allowed_hosts_setting
from skidway.kafka.settings import KafkaSettings
from skidway.kafka.source import DEFAULT_CLUSTER, check_cluster_name
from skidway.loader.planning import plan, topics
from skidway.loader.store import Modes, StoreConnection
from skidway.schemas.client import RegistryClientSettings
from skidway.settings import setting
from skidway.telemetry import host_and_port


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderSettings(RegistryClientSettings, KafkaSettings, HadoopSettings):
    """The settings of the loader: which topics to load, from where, to where, and how."""

    CLIENT_ID: ClassVar[str] = "skidway-loader"

    topics: list[str] = setting(
        "topics",
        help="Topics to load: names, or regular expressions that match whole names.",
        example=["dc1.*"],
    )
    output_url: str = setting(
        "output",
        help="Where rows and manifests go: a directory, or hdfs://host:port/folder, where a name"
        " service may stand for host:port.",
        example="hdfs://namenode:8020/logs",
    )
    output_file_mode: str = setting(
        "output.file.mode",
        "0640",
        help="Permissions of the files in the output, octal; who must read them belongs to their"
        " group.",
    )
    output_directory_mode: str = setting(
        "output.directory.mode",
        "0750",
        help="Permissions of the output's directories that the loader makes, octal.",
    )
    cluster_name: str | None = setting(
        "cluster.name",
        None,
        help="Name of the cluster to load from, without a dot; if not set, the brokers are asked"
        " for it.",
    )
    host_name: str | None = host_name_setting()
    audit_key_location: Path | None = audit_key_setting("loader")
    group_id: str = setting(
        "group.id",
        "skidway-loader",
        help="Consumer group that commits how far topics are loaded; retention.hold reads it.",
    )
    slice_records: int = setting(
        "slice.records", 400_000, help="Offsets that one task takes at most.", at_least=1
    )
    max_offsets_per_load: int = setting(
        "max.offsets.per.load",
        50_000_000,
        help="Offsets that one load commits at most; a run makes as many loads as it needs.",
        at_least=1,
    )
    announce_wait_ms: int = setting(
        "announce.wait.ms",
        600_000,
        help="How long records wait for their file's announcement before they are rejected.",
        at_least=0,
    )
    bucket_ms: int = setting(
        "bucket.ms",
        60_000,
        help="Size of the audit's buckets of event time.",
        at_least=1000,
        at_most=LONGEST_MS,
    )
    compression: str = setting(
        "compression.type",
        "zstd",
        help="Compression of the rows.",
        choices=("none", "snappy", "gzip", "lz4", "zstd"),
    )
    compact_target_bytes: int = setting(
        "compact.target.bytes",
        128 << 20,
        help="Bytes of a file up to which rewriting puts smaller files of an hour together.",
        at_least=1,
    )
    manifests_keep: int = setting(
        "manifests.keep",
        1000,
        help="How many of the newest manifests of a topic stay at least; a reload reaches back as"
        " far as they do. Older ones are folded into a checkpoint.",
        at_least=1,
    )
    gaps_accepted: list[str] = setting(
        "gaps.accepted",
        [],
        help="Offsets known to be lost, topic/partition/first-end; loads skip them.",
    )
    collector_url: str | None = setting(
        "collector.url",
        None,
        help="The audit's collector, http://host:port. With it, a run puts the small files of"
        " complete hours together, and marks these hours with the file _SUCCESS.",
        example="http://audit:8088",
    )
    metrics_listener: str | None = setting(
        "metrics.listener",
        "127.0.0.1:9105",
        help="Address of /metrics and /health while a load runs; may be in use by another run.",
    )
    allowed_hosts: list[str] = allowed_hosts_setting()
    metrics_textfile: Path | None = setting(
        "metrics.textfile",
        None,
        help="File for node_exporter's textfile collector, *.prom, with the last run's outcome.",
    )
    spark_above_offsets: int = setting(
        "spark.above.offsets",
        400_000,
        help="Loads of more offsets run on Spark. Smaller ones run in the loader's own process, and"
        " are done before Spark would have started. 0: all loads run on Spark.",
        at_least=0,
    )
    spark_master: str = setting("spark.master", "local[*]", help="Where Spark runs its tasks.")
    spark_driver_memory: str = setting(
        "spark.driver.memory", "1g", help="Heap of Spark's driver process."
    )
    spark_authenticate_secret_file: Path | None = setting(
        "spark.authenticate.secret.file",
        None,
        help="File with the secret of the cluster spark.master (its spark.authenticate.secret);"
        " not needed if spark.master is local.",
    )
    spark_log_file: Path | None = setting(
        "spark.log.file", None, help="File for Spark's own log; not set: no log."
    )
    spark_conf: dict[str, str] = setting(
        "spark.conf", {}, help="Further Spark properties, as in spark-defaults.conf."
    )

    @property
    def cluster(self) -> str:
        """Returns the value of `cluster_name`, or the default name if `cluster_name` is not set. A
        run sets `cluster_name` after it has asked the brokers for the name of their cluster."""
        return self.cluster_name or DEFAULT_CLUSTER

    @property
    def host(self) -> str:
        """Returns the name of this host."""
        return host_name(self.host_name)

    @property
    def master(self) -> str:
        """Returns where Spark runs its tasks; a property in `spark.conf` takes precedence."""
        return self.spark_conf.get("spark.master", self.spark_master)

    @property
    def is_spark_local(self) -> bool:
        """Returns whether Spark runs its tasks in its own process on this host."""
        return self.master == "local" or self.master.startswith("local[")

    @property
    def output(self) -> StoreConnection:
        """The connection to this output. Raises ConfigurationRefused if the permissions of what the
        loader creates there are no octal modes."""
        modes = Modes(
            _mode("output.file.mode", self.output_file_mode, 0o600),
            _mode("output.directory.mode", self.output_directory_mode, 0o700),
        )
        return StoreConnection(self.output_url, self.hadoop, modes)

    def check(self) -> None:
        """Raises ConfigurationRefused if the value of a setting is invalid."""
        _ = self.kafka
        self.registry.check()
        self.output.check()
        self.hadoop.check()
        directory = self.output.directory
        if self.metrics_listener is not None:
            host_and_port(self.metrics_listener, key="metrics.listener")
        if not (self.collector_url or "http://").startswith(("http://", "https://")):
            raise ConfigurationRefused(
                f"collector.url: {self.collector_url!r} is no URL of a collector (http://host:port)"
            )
        if directory is not None and not self.master.startswith("local"):
            raise ConfigurationRefused(
                f"output: {self.output_url} is a directory of this host, in which the workers of "
                f"the cluster {self.master} (spark.master) cannot write; choose hdfs://host:port/folder"
            )
        if not self.group_id:
            raise ConfigurationRefused("group.id: a name is needed")
        if not self.topics:
            raise ConfigurationRefused("topics: at least one name or pattern is needed")
        check_cluster_name(self.cluster_name)
        topics.check(self.topics)
        try:
            plan.parse_accepted(self.gaps_accepted)
        except ValueError as error:
            raise ConfigurationRefused(
                f"gaps.accepted: {error} is not topic/partition/first-end"
            ) from error


def _mode(key: str, text: str, own: int) -> int:
    """Returns the permissions that an octal number stands for. own: the rights of the owner that
    the loader needs. Raises ConfigurationRefused."""
    if re.fullmatch(r"0?[0-7]{3}", text) is None or int(text, 8) & own != own:
        raise ConfigurationRefused(
            f"{key}: {text!r} is not an octal mode such as {own | 0o040:04o}, which leaves the "
            "owner all rights that the loader needs"
        )
    return int(text, 8)
