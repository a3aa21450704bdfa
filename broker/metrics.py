"""Makes metrics from the broker's counts at each scrape.

The thread of the metrics endpoint runs this code, and only reads the counts. The labels with the
reasons for refused batches and closed connections come from fixed sets, so the number of time
series is limited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from skidway.broker.access.security_log import SecurityLog
from skidway.broker.broker import Broker
from skidway.broker.groups.coordinator import Groups
from skidway.broker.log.log_directory import LogDirectory
from skidway.broker.network.loop import Loop

Family = TypeVar("Family", CounterMetricFamily, GaugeMetricFamily)


class BrokerCollector(Collector):
    """The metrics of one broker."""

    def __init__(self, broker: Broker, mirrors: Callable[[], list[dict[str, Any]]]) -> None:
        """mirrors: a function that returns the mirrors' status (see broker.mirror.status)."""
        self._broker = broker
        self._mirrors = mirrors

    def collect(self) -> Iterator[Metric]:
        """Returns all metrics, with their current values."""
        broker, counts, traffic = self._broker, self._broker.counts, self._broker.loop.traffic
        flushes = broker.partitions.flushes
        yield _counter("batches", "Batches appended.", counts.batches)
        yield _counter("messages", "Records appended.", counts.messages)
        yield _counter("appended_bytes", "Bytes appended.", counts.appended_bytes)
        yield _counter("fetches", "Fetch requests.", counts.fetches)
        yield _counter("fetched_bytes", "Bytes of batches handed out.", counts.fetched_bytes)
        yield _counter("requests", "Requests of all APIs.", traffic.requests)
        yield _counter("received_bytes", "Bytes received.", traffic.received_bytes)
        yield _counter("connections_accepted", "Connections accepted.", traffic.accepted)
        yield _counter("connections_refused", "Connections over a limit.", traffic.refused)
        yield _counter("flushes", "Flushes of a log.", flushes.count)
        yield _counter("flush_seconds", "Time spent waiting for flushes.", flushes.seconds)
        yield _counter("flushes_failed", "Flushes that the disk refused.", flushes.failed)
        yield _counter("retention_checks", "Checks for expired segments.", counts.retention_checks)
        yield _counter(
            "retention_hold_lost_records",
            "Records that expired before a group of retention.hold had read them.",
            counts.hold_lost_records,
        )
        yield _reasons("batches_refused", "Batches refused.", counts.refused)
        yield _reasons(
            "topics_not_created",
            "Unknown topics that requests named beyond a bound.",
            counts.uncreated,
        )
        yield _reasons(
            "versions_refused",
            "Requests of APIs and versions that are not offered.",
            broker.refusals.counts,
            label="api",
        )
        yield _reasons("connections_closed", "Connections closed.", traffic.closed)
        failures = {
            "request": traffic.closed.get("failed", 0),
            "parked request": broker.purgatory.failed,
            "answer": counts.answers_failed,
            "call": traffic.failed_calls,
            "flush": flushes.unfinished,
            "mirror": counts.mirrors_failed,
        }
        yield _reasons("internal_errors", "Errors that are the broker's own bugs.", failures)
        yield _gauge("connections", "Open connections.", len(broker.loop.connections))
        yield from _of_security(broker.loop, broker.access.log)
        yield _gauge(
            "queued_request_bytes",
            "Memory of unhandled requests, see queued.max.request.bytes.",
            broker.loop.queued.held.total,
        )
        yield _gauge("partitions", "Partitions served.", len(broker.partitions.replicas))
        yield _gauge("partitions_stopped", "Partitions not served.", len(broker.logs.stopped))
        yield _gauge(
            "partitions_held",
            "Partitions that retention.hold keeps longer.",
            counts.partitions_held,
        )
        offline = sum(each.offline is not None for each in broker.logs.directories)
        yield _gauge("log_directories_offline", "Log directories not in use.", offline)
        full = sum(each.full is not None for each in broker.logs.directories)
        yield _gauge("log_directories_full", "Log directories without space.", full)
        yield _free_bytes(broker.logs.directories)
        yield _gauge("requests_waiting", "Parked requests.", len(broker.purgatory))
        yield from _of_groups(broker.groups)
        yield from _of_mirrors(self._mirrors())


def _free_bytes(directories: Sequence[LogDirectory]) -> Metric:
    metric = GaugeMetricFamily(
        "skidway_broker_log_directory_free_bytes",
        "Bytes that may still be written to the volume of a log directory.",
        labels=["directory"],
    )
    for each in directories:
        free_bytes = each.free_bytes()
        if free_bytes is not None:
            metric.add_metric([str(each.path)], free_bytes)
    return metric


def _of_security(loop: Loop, log: SecurityLog) -> Iterator[Metric]:
    handshakes, unauthenticated = loop.handshakes, len(loop.unauthenticated)
    words = "TLS handshakes and first logins under way."
    yield _gauge("connections_unauthenticated", words, unauthenticated)
    yield _counter("handshakes", "TLS handshakes completed.", handshakes.completed)
    yield _reasons("handshakes_failed", "TLS handshakes that failed.", handshakes.failed)
    logins = CounterMetricFamily(
        "skidway_broker_authentications_total", "Logins.", labels=["mechanism", "outcome"]
    )
    for labels, count in tuple(log.logins.items()):
        logins.add_metric(labels, count)
    yield logins
    words = "What the rules do not allow, also if they are not enforced."
    yield _reasons("denials", words, log.denials, label="operation")


def _of_groups(groups: Groups) -> Iterator[Metric]:
    counts, jobs = groups.counts, groups.jobs.counts
    yield _gauge("groups", "Groups in memory.", len(groups.hosted))
    yield _gauge("group_members", "Members of groups.", groups.members)
    yield _gauge("group_offsets_waiting", "Offsets that wait for ZooKeeper.", groups.jobs.waiting)
    yield _counter("group_joins", "JoinGroup requests.", counts.joins)
    yield _counter("group_rebalances", "Generations with an assignment.", counts.rebalances)
    yield _counter("group_members_expired", "Members that timed out.", counts.expired_members)
    yield _counter("offset_commits", "OffsetCommit requests taken.", jobs.commits)
    yield _counter("offset_commits_offsets", "Offsets written to ZooKeeper.", jobs.offsets)
    yield _counter("offset_transactions", "Transactions of offsets.", jobs.transactions)
    yield _counter("group_jobs", "Jobs done on ZooKeeper.", jobs.carried_out)
    yield _counter("group_jobs_failed", "Jobs on ZooKeeper that failed.", jobs.failed)
    yield _counter("offsets_expired", "Offsets that expired.", counts.offsets_expired)
    yield _counter("groups_expired", "Groups that expired.", counts.groups_expired)
    yield _reasons("offset_commits_refused", "OffsetCommits refused.", counts.commits_refused)


def _of_mirrors(sources: list[dict[str, Any]]) -> Iterator[Metric]:
    """Yields the metrics of each source cluster. If the broker mirrors nothing, yields nothing."""
    if not sources:
        return
    records = _by_source(CounterMetricFamily, "records_total", "Records mirrored.")
    size = _by_source(CounterMetricFamily, "bytes_total", "Bytes of batches mirrored.")
    lag = _by_source(GaugeMetricFamily, "lag_records", "Records not mirrored yet.")
    partitions = _by_source(GaugeMetricFamily, "partitions", "Partitions that are followed.")
    stopped = _by_source(GaugeMetricFamily, "stopped", "Topics and partitions that are stopped.")
    waiting = _by_source(GaugeMetricFamily, "waiting", "Partitions that cannot go on now.")
    gaps = _by_source(GaugeMetricFamily, "gaps", "Gaps that are named.")
    untold = _by_source(
        CounterMetricFamily, "group_failures_total", "Offsets that the source did not keep."
    )
    reachable = _by_source(GaugeMetricFamily, "source_reachable", "Whether the source answers.")
    for each in sources:
        labels = [each["cluster"]]
        records.add_metric(labels, each["records"])
        size.add_metric(labels, each["bytes"])
        lag.add_metric(labels, each["lag"])
        partitions.add_metric(labels, each["partitions"])
        stopped.add_metric(labels, each["stopped_count"])
        waiting.add_metric(labels, each["waiting_count"])
        gaps.add_metric(labels, each["gap_count"])
        untold.add_metric(labels, each["group_failures"])
        reachable.add_metric(labels, bool(each["reachable"]))
    yield from (records, size, lag, partitions, stopped, waiting, gaps, untold, reachable)


def _by_source(kind: type[Family], name: str, help_text: str) -> Family:
    return kind(f"skidway_broker_mirror_{name}", help_text, labels=["source"])


def _counter(name: str, help_text: str, value: float) -> Metric:
    return CounterMetricFamily(f"skidway_broker_{name}_total", help_text, value=value)


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"skidway_broker_{name}", help_text, value=value)


def _reasons(name: str, help_text: str, values: dict[str, int], *, label: str = "reason") -> Metric:
    metric = CounterMetricFamily(f"skidway_broker_{name}_total", help_text, labels=[label])
    for reason, value in tuple(values.items()):
        metric.add_metric([reason], value)
    return metric
