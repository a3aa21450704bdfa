"""Every setting of the broker. A setting that Kafka also has is named as in Kafka."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from skidway.broker.access.authorizer import Authorizer, Mode
from skidway.broker.access.security_log import SecurityLog
from skidway.broker.groups.limits import GroupLimits
from skidway.broker.listener_settings import ListenerSettings
from skidway.broker.log.config import FOREVER_MS, UNLIMITED, WEEK_MS, LogConfig
from skidway.coordination import ZooKeeperConnection
from skidway.errors import ConfigurationRefused
from skidway.host_name import host_name_setting
from skidway.http.hosts import allowed_hosts_setting
from skidway.kafka.settings import KafkaSettings
from skidway.kafka.source import check_cluster_name
from skidway.settings import setting

_HOUR_MS = 3_600_000
_INT_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings(KafkaSettings):
    """The settings for one source cluster, whose topics are mirrored into this broker's cluster."""

    cluster: str = setting("cluster", help="cluster.name of the source; prefix of its topics.")
    topics: list[str] = setting(
        "topics",
        [".*"],
        help="Patterns that match whole topic names; names that begin with _ never match.",
    )

    def check(self) -> None:
        """Raises ConfigurationRefused if the name of the source cluster, a pattern of topics, or an
        address of a source's broker is not valid."""
        if not self.cluster or "." in self.cluster:
            raise ConfigurationRefused(
                f"mirror.sources.cluster: {self.cluster!r} must be a name without a dot"
            )
        for pattern in self.topics:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigurationRefused(
                    f"mirror.sources.topics: {pattern!r} is no regular expression: {error}"
                ) from error
        try:
            _ = self.kafka
        except ConfigurationRefused as error:
            raise ConfigurationRefused(f"mirror.sources: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings(ListenerSettings):
    """Settings of `skidway broker run`."""

    broker_id: int = setting(
        "broker.id", 1, help="Number of this broker in its cluster.", at_least=0, at_most=_INT_MAX
    )
    cluster_name: str = setting(
        "cluster.name",
        "main",
        help="Name of the cluster, without a dot; mirrors put it in front of topic names.",
    )
    host_name: str | None = host_name_setting()
    log_dirs: list[Path] = setting(
        "log.dirs",
        [Path("/var/lib/skidway/broker")],
        help="Directories of the partitions, best on disks of their own.",
        at_least=1,
    )
    zookeeper_session_timeout_ms: int = setting(
        "zookeeper.session.timeout.ms",
        10_000,
        help="Time without an answer after which ZooKeeper takes this broker for dead.",
        at_least=1000,
    )
    zookeeper_connection_timeout_ms: int = setting(
        "zookeeper.connection.timeout.ms",
        15_000,
        help="How long the start waits for ZooKeeper.",
        at_least=100,
    )
    metrics_listener: str | None = setting(
        "metrics.listener",
        "127.0.0.1:9102",
        help="host:port of /metrics and /health; empty for none.",
    )
    allowed_hosts: list[str] = allowed_hosts_setting()
    num_partitions: int = setting(
        "num.partitions", 1, help="Partitions of a topic that does not say how many.", at_least=1
    )
    default_replication_factor: int = setting(
        "default.replication.factor",
        1,
        help="Replicas of a topic that does not say how many.",
        at_least=1,
        at_most=1,
    )
    min_insync_replicas: int = setting(
        "min.insync.replicas", 1, help="In-sync replicas that acks=all needs.", at_least=1
    )
    auto_create_topics: bool = setting(
        "auto.create.topics.enable", True, help="Whether asking for an unknown topic creates it."
    )
    topics_max: int = setting(
        "max.topics",
        10_000,
        help="Topics of the cluster; requests and mirrors create no more.",
        at_least=1,
    )
    delete_topic: bool = setting("delete.topic.enable", True, help="Whether topics can be deleted.")
    message_bytes_max: int = setting(
        "message.max.bytes", 1_048_588, help="Largest record batch.", at_least=0, at_most=_INT_MAX
    )
    segment_bytes: int = setting(
        "log.segment.bytes", 1 << 30, help="Size of a segment.", at_least=1024, at_most=_INT_MAX
    )
    roll_hours: int = setting("log.roll.hours", 168, help="As log.roll.ms, in hours.", at_least=1)
    roll_ms: int | None = setting(
        "log.roll.ms",
        None,
        help="Time after a segment's first append at which it is rolled; overrides log.roll.hours.",
        at_least=1,
    )
    retention_hours: int = setting(
        "log.retention.hours",
        168,
        help="As log.retention.ms, in hours; -1 = no limit.",
        at_least=-1,
    )
    retention_ms: int | None = setting(
        "log.retention.ms",
        None,
        help="Age by time of appending at which segments expire; overrides log.retention.hours.",
        at_least=-1,
    )
    retention_bytes: int = setting(
        "log.retention.bytes",
        UNLIMITED,
        help="Size of a partition above which its oldest segments expire; -1 = no limit.",
        at_least=-1,
    )
    hold_bytes_max: int = setting(
        "log.retention.hold.max.bytes",
        UNLIMITED,
        help="Size of a partition above which retention.hold holds nothing; -1 = no limit.",
        at_least=-1,
    )
    hold_ms_max: int = setting(
        "log.retention.hold.max.ms",
        2 * WEEK_MS,
        help="Age by time of appending above which retention.hold holds nothing; -1 = no limit.",
        at_least=-1,
    )
    retention_check_ms: int = setting(
        "log.retention.check.interval.ms",
        300_000,
        help="Interval between two checks for expired segments.",
        at_least=1,
    )
    segment_delete_delay_ms: int = setting(
        "log.segment.delete.delay.ms",
        60_000,
        help="Time between taking a segment out and removing its files.",
        at_least=0,
    )
    index_interval_bytes: int = setting(
        "log.index.interval.bytes", 4096, help="Bytes of log for one index entry.", at_least=0
    )
    index_bytes_max: int = setting(
        "log.index.size.max.bytes",
        10 << 20,
        help="Size of an index at which its segment is rolled.",
        at_least=4096,
    )
    flush_messages: int = setting(
        "log.flush.interval.messages",
        10_000,
        help="Records after which a log is flushed although nobody waits.",
        at_least=1,
    )
    flush_ms: int = setting(
        "log.flush.interval.ms",
        50,
        help="Time after which a log is flushed although nobody waits.",
        at_least=0,
    )
    flush_threads: int = setting(
        "log.flush.threads", 2, help="Threads that wait for the disk.", at_least=1, at_most=64
    )
    checkpoint_ms: int = setting(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        help="Interval between two checkpoints of the flushed offsets.",
        at_least=1,
    )
    timestamp_type: str = setting(
        "log.message.timestamp.type",
        "CreateTime",
        help="CreateTime: records keep their producer's time; LogAppendTime: that of appending.",
        choices=("CreateTime", "LogAppendTime"),
    )
    timestamp_before_max_ms: int = setting(
        "log.message.timestamp.before.max.ms",
        FOREVER_MS,
        help="How far behind the clock event times may be; agents bring old logs.",
        at_least=0,
    )
    timestamp_after_max_ms: int = setting(
        "log.message.timestamp.after.max.ms",
        FOREVER_MS,
        help="How far ahead of the clock event times may be.",
        at_least=0,
    )
    producer_expiration_ms: int = setting(
        "producer.id.expiration.ms",
        86_400_000,
        help="Time after its last append at which an idempotent producer is forgotten.",
        at_least=1,
    )
    request_bytes_max: int = setting(
        "socket.request.max.bytes",
        104_857_600,
        help="Largest request.",
        at_least=1024,
        at_most=_INT_MAX,
    )
    send_buffer_bytes: int = setting(
        "socket.send.buffer.bytes", -1, help="SO_SNDBUF of connections; -1 = the kernel's."
    )
    receive_buffer_bytes: int = setting(
        "socket.receive.buffer.bytes", -1, help="SO_RCVBUF of connections; -1 = the kernel's."
    )
    queued_requests_max: int = setting(
        "queued.max.requests",
        10_000,
        help="Requests of one connection that may wait for their answers.",
        at_least=1,
    )
    queued_bytes_max: int = setting(
        "queued.max.request.bytes",
        256 << 20,
        help="Memory for requests that have not arrived as a whole, of all connections together.",
        at_least=1 << 20,
    )
    connections_max: int = setting(
        "max.connections", 100_000, help="Connections at a time; more are closed.", at_least=1
    )
    connections_per_ip_max: int = setting(
        "max.connections.per.ip",
        10_000,
        help="Connections of one client address at a time; more are closed.",
        at_least=1,
    )
    connections_unauthenticated_max: int = setting(
        "max.connections.unauthenticated",
        2_000,
        help="Connections at a time whose TLS handshake or login is not complete; at the limit, "
        "the slowest client gives way.",
        at_least=1,
    )
    connections_idle_ms_max: int = setting(
        "connections.max.idle.ms",
        600_000,
        help="Time after which an idle connection is closed.",
        at_least=1,
    )
    fetch_bytes_max: int = setting(
        "fetch.max.bytes", 57_671_680, help="Largest answer to one fetch.", at_least=1024
    )
    group_session_timeout_min_ms: int = setting(
        "group.min.session.timeout.ms",
        6_000,
        help="Shortest session timeout that a group's member may ask for.",
        at_least=1,
        at_most=_INT_MAX,
    )
    group_session_timeout_max_ms: int = setting(
        "group.max.session.timeout.ms",
        1_800_000,
        help="Longest session timeout that a group's member may ask for.",
        at_least=1,
        at_most=_INT_MAX,
    )
    group_initial_rebalance_delay_ms: int = setting(
        "group.initial.rebalance.delay.ms",
        3_000,
        help="How long a new group waits for more members before its first generation begins.",
        at_least=0,
        at_most=_INT_MAX,
    )
    group_size_max: int = setting(
        "group.max.size", _INT_MAX, help="Most members of one group.", at_least=1, at_most=_INT_MAX
    )
    offset_metadata_bytes_max: int = setting(
        "offset.metadata.max.bytes",
        4096,
        help="Longest metadata of a committed offset.",
        at_least=0,
        at_most=65_536,
    )
    offsets_retention_minutes: int = setting(
        "offsets.retention.minutes",
        10_080,
        help="How long the offsets of a group without members are kept.",
        at_least=1,
        at_most=_INT_MAX,
    )
    offsets_retention_check_ms: int = setting(
        "offsets.retention.check.interval.ms",
        600_000,
        help="Interval between two checks for expired offsets of groups.",
        at_least=1,
    )

    authorizer_mode: Mode = setting(
        "authorizer.mode",
        "off",
        help="Whether rules (ACLs) say who may do what: off; warn lets everything pass, and logs"
        " what enforce would deny.",
    )
    super_users: str = setting(
        "super.users",
        "",
        help="Principals that may do everything, separated by semicolons: User:admin;User:CN=ops.",
    )
    allow_everyone_if_no_acl_found: bool = setting(
        "allow.everyone.if.no.acl.found",
        False,
        help="Whether everybody may use a resource for which nobody has a rule.",
    )

    mirror_sources: list[MirrorSettings] = setting(
        "mirror.sources", [], help="Clusters whose topics are mirrored into this one."
    )
    mirror_metadata_interval_ms: int = setting(
        "mirror.metadata.interval.ms",
        1_000,
        help="How often sources are asked for new topics and partitions.",
        at_least=10,
    )

    @property
    def zookeeper(self) -> ZooKeeperConnection:
        """The connection to this ZooKeeper. Raises ConfigurationRefused if the text is malformed,
        or a file cannot be used."""
        return ZooKeeperConnection(
            self.zookeeper_connect,
            self.zookeeper_session_timeout_ms / 1000,
            self.zookeeper_connection_timeout_ms / 1000,
            self.zookeeper_security,
        )

    def check(self) -> None:
        """Raises ConfigurationRefused for errors that the checks of single settings do not find,
        such as bad addresses and contradictions.
        """
        clusters = [each.cluster for each in self.mirror_sources]
        if len(set(clusters)) != len(clusters) or self.cluster_name in clusters:
            raise ConfigurationRefused(
                "mirror.sources: every source needs a cluster name of its own, "
                "other than the broker's"
            )
        check_cluster_name(self.cluster_name)
        _ = self.zookeeper, self.super_principals
        if len(set(self.log_dirs)) != len(self.log_dirs):
            raise ConfigurationRefused("log.dirs names a directory twice")
        if self.group_session_timeout_min_ms > self.group_session_timeout_max_ms:
            raise ConfigurationRefused(
                f"group.min.session.timeout.ms {self.group_session_timeout_min_ms} is above "
                f"group.max.session.timeout.ms {self.group_session_timeout_max_ms}"
            )
        if self.min_insync_replicas > self.default_replication_factor:
            raise ConfigurationRefused(
                f"min.insync.replicas {self.min_insync_replicas} can never be met with "
                f"default.replication.factor {self.default_replication_factor}"
            )
        self.check_listeners()

    def mirrors_as(self, topic: str) -> str | None:
        """Returns the source cluster of a topic with this name; None if a topic with this name is
        not a mirror.
        """
        cluster, dot, _ = topic.partition(".")
        mirrored = bool(dot) and cluster in {each.cluster for each in self.mirror_sources}
        return cluster if mirrored else None

    @property
    def super_principals(self) -> frozenset[str]:
        """The principals of `super.users`. Raises ConfigurationRefused."""
        found = [each.strip() for each in self.super_users.split(";") if each.strip()]
        for each in found:
            if ":" not in each:
                raise ConfigurationRefused(f"super.users: {each!r} is not of the form User:NAME")
            if ",User:" in each.replace(" ", ""):
                raise ConfigurationRefused(f"super.users: {each!r} is one name; separate with ;")
        return frozenset(found)

    def authorizer(self, log: SecurityLog) -> Authorizer:
        """Returns what decides who may do what."""
        everyone = self.allow_everyone_if_no_acl_found
        return Authorizer(self.authorizer_mode, self.super_principals, everyone, log)

    def group_limits(self) -> GroupLimits:
        """Returns the limits of groups."""
        return GroupLimits(
            session_timeout_min_s=self.group_session_timeout_min_ms / 1000,
            session_timeout_max_s=self.group_session_timeout_max_ms / 1000,
            initial_rebalance_delay_s=self.group_initial_rebalance_delay_ms / 1000,
            members_max=self.group_size_max,
        )

    def log_defaults(self) -> LogConfig:
        """Returns the log settings of a topic that has no settings of its own."""
        hours = self.retention_hours
        by_hours = UNLIMITED if hours < 0 else hours * _HOUR_MS
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.roll_hours * _HOUR_MS if self.roll_ms is None else self.roll_ms,
            index_interval_bytes=self.index_interval_bytes,
            segment_index_bytes=self.index_bytes_max,
            retention_ms=by_hours if self.retention_ms is None else self.retention_ms,
            retention_bytes=self.retention_bytes,
            hold_bytes_max=self.hold_bytes_max,
            hold_ms_max=self.hold_ms_max,
            append_time=self.timestamp_type == "LogAppendTime",
            file_delete_delay_ms=self.segment_delete_delay_ms,
            max_message_bytes=self.message_bytes_max,
            min_insync_replicas=self.min_insync_replicas,
            flush_messages=self.flush_messages,
            flush_ms=self.flush_ms,
            timestamp_before_max_ms=self.timestamp_before_max_ms,
            timestamp_after_max_ms=self.timestamp_after_max_ms,
        )
