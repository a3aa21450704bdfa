"""Contains, for each alert, series for which the alert must fire, and series for which it must not
fire.

In the input of `promtool test rules`, a series has one value for each minute: `0x9` means ten
zeros, and `0+2x9` means 0, 2, 4 and so on. The function `promtool_tests` makes promtool's input
from the cases.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "monitoring" / "rules"
HOUR, DAY = 60, 24 * 60


@dataclass(frozen=True)
class Case:
    """The series of one test of an alert. `bad` contains series for which the alert must fire once,
    and `good` contains series for which it must not fire. `labels` contains the labels that the
    fired alert must have. `at` is the minute at which the alert must fire. `before` is a minute at
    which the alert must not fire yet, because the fault has not lasted long enough or has not
    begun.
    """

    bad: Mapping[str, str]
    good: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=lambda: {"instance": "bad"})
    at: int = 60
    before: int = 0


def gauge(
    name: str, bad: str, good: str = "0x4000", at: int = 60, before: int = 0, **labels: str
) -> Case:
    """A case with one metric, `name`. The arguments `bad` and `good` are the metric's values on the
    instances `bad` and `good`, in promtool's notation. `at` and `before` have the same meaning as
    in `Case`."""
    return Case(
        {series(name, instance="bad", **labels): bad},
        {series(name, instance="good", **labels): good},
        {"instance": "bad", **labels},
        at,
        before,
    )


def series(name: str, **labels: str) -> str:
    """The metric `name` with the given labels, as promtool writes the name of a series."""
    return f"{name}{{{','.join(f'{key}={value!r}' for key, value in labels.items())}}}".replace(
        "'", '"'
    )


def down(job: str) -> Case:
    """A case for two programs of `job`. The program `bad` stops answering after ten minutes, and
    the program `good` always answers."""
    return gauge("up", "1x10 0x50", "1x60", before=10, job=job)


def late(name: str, at: int, fresh: str, **labels: str) -> Case:
    """A case for a metric whose value is a time. On the instance `bad` the value stays the same. On
    the instance `good` the metric has the series `fresh`, whose values follow the clock. `at` is
    the minute at which the alert must fire for `bad`.
    """
    return gauge(name, "0x4000", fresh, at=at, before=HOUR, **labels)


LOGS = {"cluster": "dc1", "topic": "logs"}
OTHER = {"cluster": "dc1", "topic": "other"}
REFUSED = "skidway_audit_refused_messages"
WRITTEN, COMPLETE = (
    "skidway_audit_written_until_timestamp_seconds",
    "skidway_audit_complete_until_timestamp_seconds",
)
REJECTED = "skidway_agent_rejected_lines_total"
OVERDUE = "skidway_audit_topic_overdue_buckets"
UNTIL_LOSS = "skidway_audit_until_loss_seconds"
NEVER_GOOD = "0+60x4000"

BROKERS = {
    "SkidwayBrokerDown": down("skidway-broker"),
    "SkidwayBrokerDiskOffline": gauge(
        "skidway_broker_log_directories_offline", "0x10 1x60", before=10
    ),
    "SkidwayBrokerDiskFull": gauge("skidway_broker_log_directories_full", "0x10 2x60", before=10),
    "SkidwayBrokerDiskFillsUp": gauge(
        "skidway_broker_log_directory_free_bytes", "1e9x100 1e9-1e6x500", "1e12-1e6x1000",
        at=300, before=90, directory="/disk1",
    ),
    "SkidwayBrokerPartitionStopped": gauge(
        "skidway_broker_partitions_stopped", "0x10 1x60", before=14
    ),
    "SkidwayBrokerFlushesFail": gauge(
        "skidway_broker_flushes_failed_total", "3x50 4x20", "3x70", at=55, before=40
    ),
    "SkidwayBrokerInternalErrors": gauge(
        "skidway_broker_internal_errors_total", "3x50 4x20", "3x70", at=55, before=40,
        reason="request",
    ),
    "SkidwayBrokerRecordsExpiredUnread": gauge(
        "skidway_broker_retention_hold_lost_records_total", "0x50 700x20", "700x70",
        at=55, before=40,
    ),
    "SkidwayZookeeperDown": gauge("skidway_zookeeper_serving", "1x10 0x60", "1x70", before=10),
}  # fmt: skip

AGENTS = {
    "SkidwayAgentDown": down("skidway-agent"),
    "SkidwayAgentFallsBehind": gauge(
        "skidway_agent_pending_bytes", "200e6+1e6x100", "200e6-1e6x100", before=10
    ),
    "SkidwayAgentLosesLines": gauge(
        "skidway_agent_set_apart_ranges_total", "_x100 1x20", "5x200", at=110, before=90,
        topic="logs", certainty="lost",
    ),
    "SkidwayAgentRejectsLines": Case(
        {
            series(REJECTED, instance="bad", topic="logs", reason="a"): "0+10x100",
            series("skidway_agent_records_total", instance="bad"): "0+90x100",
        },
        {
            series(REJECTED, instance="good", topic="logs", reason="a"): "0+1x100",
            series("skidway_agent_records_total", instance="good"): "0+90x100",
        },
        before=10,
    ),
    "SkidwayAgentCannotReadFiles": gauge("skidway_agent_unreadable_paths", "0x5 2x60", before=15),
    "SkidwayAgentSourceWithoutFiles": gauge(
        "skidway_agent_sources_without_files", "0x5 1x60", before=30, topic="logs"
    ),
    "SkidwayAgentDiskFull": gauge(
        "skidway_agent_state_full_total", "0x50 1+1x20", "9x70", at=55, before=40
    ),
    "SkidwayAgentConfigurationNotInUse": gauge(
        "skidway_agent_configuration_differs_since_seconds", "0x10 600x90", at=90, before=HOUR
    ),
}  # fmt: skip

MIRRORS = {
    "SkidwayMirrorSourceAway": gauge(
        "skidway_broker_mirror_source_reachable", "1x10 0x60", "1x70", before=14, source="dc1"
    ),
    "SkidwayMirrorStopped": gauge(
        "skidway_broker_mirror_stopped", "0x10 1x60", before=14, source="dc1"
    ),
    "SkidwayMirrorFallsBehind": gauge(
        "skidway_broker_mirror_lag_records", "150000+1000x90", "150000-1000x90",
        before=20, source="dc1",
    ),
    "SkidwayMirrorGap": gauge(
        "skidway_broker_mirror_gaps", "0x50 1x20", "1x70", at=65, before=40, source="dc1"
    ),
}  # fmt: skip

LOADS = {
    "SkidwayLoadFailed": gauge("skidway_loader_last_run_exit_status", "0x10 3x60", before=10),
    "SkidwayLoadLate": late("skidway_loader_last_success_timestamp_seconds", 27 * HOUR, NEVER_GOOD),
    "SkidwayLoadHangs": Case(
        {
            series("skidway_loader_last_run_start_timestamp_seconds", instance="bad"): "120x600",
            series("skidway_loader_last_run_end_timestamp_seconds", instance="bad"): "60x600",
        },
        {
            series("skidway_loader_last_run_start_timestamp_seconds", instance="good"): "120x600",
            series("skidway_loader_last_run_end_timestamp_seconds", instance="good"): "180x600",
        },
        at=7 * HOUR,
        before=5 * HOUR,
    ),
    "SkidwayLoadRejectsRecords": Case(
        {
            series("skidway_loader_last_run_rejects", instance="bad"): "0x10 5x60",
            series("skidway_loader_last_run_rows", instance="bad"): "95x70",
        },
        {
            series("skidway_loader_last_run_rejects", instance="good"): "0x70",
            series("skidway_loader_last_run_rows", instance="good"): "0x70",
        },
        before=10,
    ),
}

AUDIT = {
    "SkidwayCollectorDown": down("skidway-audit"),
    "SkidwayCounterDown": down("skidway-audit-count"),
    "SkidwayLinesLost": Case(
        {series(OVERDUE, instance="a", verdict="lost", **LOGS): "0x10 1x60"},
        {
            series(OVERDUE, instance="a", verdict="lost", **OTHER): "0x70",
            series(OVERDUE, instance="a", verdict="incomplete", **OTHER): "5x70",
        },
        {"instance": "a", "verdict": "lost", **LOGS},
        before=10,
    ),
    "SkidwayLossIsNear": Case(
        {series(UNTIL_LOSS, instance="a", lacking="broker", **LOGS): "9000-60x140"},
        {
            series(UNTIL_LOSS, instance="a", lacking="hdfs", **LOGS): "90000x150",
            series(UNTIL_LOSS, instance="a", lacking="broker", **OTHER): "9000-60x60 _x90",
        },
        {"lacking": "broker", **LOGS},
        at=100,
        before=92,
    ),
    "SkidwayTopicNotComplete": Case(
        {
            series(COMPLETE, instance="a", **LOGS): "0x4000",
            series(OVERDUE, instance="a", verdict="unknown", **LOGS): "2x4000",
        },
        {
            series(COMPLETE, instance="a", **OTHER): NEVER_GOOD,
            series(OVERDUE, instance="a", verdict="unknown", **OTHER): "2x4000",
            series(COMPLETE, instance="a", cluster="dc2", topic="quiet"): "0x4000",
            series(
                OVERDUE, instance="a", verdict="unknown", cluster="dc2", topic="quiet"
            ): "0x4000",
        },
        {"instance": "a", **LOGS},
        at=27 * HOUR,
        before=25 * HOUR,
    ),
    "SkidwayTierBehind": Case(
        {
            series(WRITTEN, instance="a", tier="agent", **LOGS): NEVER_GOOD,
            series(WRITTEN, instance="a", tier="broker", **LOGS): "0+60x10 600x100",
        },
        {
            series(WRITTEN, instance="a", tier="agent", **OTHER): "0x4000",
            series(WRITTEN, instance="a", tier="broker", **OTHER): "0x4000",
            series(WRITTEN, instance="a", tier="hdfs", **LOGS): "0x4000",
        },
        {"instance": "a", "tier": "broker", **LOGS},
        before=20,
    ),
    "SkidwayRowsBehind": Case(
        {
            series(WRITTEN, instance="a", tier="agent", **LOGS): NEVER_GOOD,
            series(WRITTEN, instance="a", tier="hdfs", **LOGS): "0x4000",
        },
        {
            series(WRITTEN, instance="a", tier="agent", **OTHER): NEVER_GOOD,
            series(WRITTEN, instance="a", tier="hdfs", **OTHER): NEVER_GOOD,
        },
        {"instance": "a", "tier": "hdfs", **LOGS},
        at=27 * HOUR,
        before=25 * HOUR,
    ),
    "SkidwayHostSilent": gauge("skidway_audit_silent_hosts", "0x10 1x60", before=10),
    "SkidwayHostNeverHeard": gauge("skidway_audit_never_heard_hosts", "1x70", before=20),
    "SkidwayClockWrong": gauge("skidway_audit_own_clock_ahead_seconds", "0x10 -90x60", before=10),
    "SkidwayRecountDiffers": gauge("skidway_audit_differing_recounts", "0x10 1x60", before=10),
    "SkidwayOffsetsUncounted": gauge(
        "skidway_audit_uncounted_offsets", "4x50 9x20", "4x70", at=65, before=40
    ),
    "SkidwayCounterStopped": gauge("skidway_audit_stopped_partitions", "0x10 1x60", before=14),
    "SkidwayCounterBehind": gauge(
        "skidway_audit_counter_lag_records", "2e6+1000x90", "2e6-1000x90", before=20
    ),
    "SkidwayAuditMessagesUnread": gauge("skidway_audit_unread_messages", "0x10 3x60", before=14),
    "SkidwayAuditMessagesRefused": Case(
        {
            series(REFUSED, instance="bad", reason="unsigned"): "0x50 9x20",
            series(REFUSED, instance="bad", reason="no message"): "2x70",
        },
        {series(REFUSED, instance="good", reason="unsigned"): "2x70"},
        {"instance": "bad"},
        at=65,
        before=40,
    ),
    "SkidwayAuditTopicBlocked": gauge("skidway_audit_blocked_partitions", "0x10 1x60", before=14),
    "SkidwayTooManyRejects": gauge(
        "skidway_audit_warned_buckets", "2x50 3x20", "2x70", at=65, before=40
    ),
}

REGISTRY = {
    "SkidwayRegistryDown": down("skidway-registry"),
    "SkidwayRegistryWithoutZookeeper": gauge(
        "skidway_schemas_store_connected", "1x10 0x60", "1x70", before=10
    ),
    "SkidwayRegistryErrors": Case(
        {series("skidway_schemas_requests_total", instance="bad", status="503"): "0x5 0+1x60"},
        {series("skidway_schemas_requests_total", instance="good", status="404"): "0+1x70"},
        before=10,
    ),
    "SkidwayRegistrySlow": Case(
        {
            series("skidway_schemas_request_seconds_bucket", instance="bad", le="1"): "0x90",
            series("skidway_schemas_request_seconds_bucket", instance="bad", le="2.5"): "0+9x90",
            series("skidway_schemas_request_seconds_bucket", instance="bad", le="+Inf"): "0+9x90",
        },
        {
            series("skidway_schemas_request_seconds_bucket", instance="good", le="0.1"): "0+9x90",
            series("skidway_schemas_request_seconds_bucket", instance="good", le="1"): "0+9x90",
            series("skidway_schemas_request_seconds_bucket", instance="good", le="+Inf"): "0+9x90",
        },
        before=10,
    ),
}

PROGRAMS = {
    "SkidwayCertificateExpires": gauge(
        "skidway_certificate_expires_seconds", "1300000x20 1200000x60", "1300000x90",
        at=60, before=15, file="/a.pem",
    ),
    "SkidwayRevocationListExpires": gauge(
        "skidway_revocation_list_expires_seconds", "180000x20 170000x60", "180000x90",
        at=60, before=15, file="/a.crl",
    ),
}  # fmt: skip

CASES: Mapping[str, Mapping[str, Case]] = {
    "agents": AGENTS,
    "audit": AUDIT,
    "brokers": BROKERS,
    "loads": LOADS,
    "mirrors": MIRRORS,
    "programs": PROGRAMS,
    "registry": REGISTRY,
}
"""The cases, by the name of the file that defines the alert (without `.yml`), then by the alert's
name.
"""

RULE_FILES = (*CASES, "thresholds")
"""The names of all files in deploy/monitoring/rules, without `.yml`. The file `thresholds` defines
no alert.
"""


def rules(part: str) -> list[dict[str, Any]]:
    """The rules (of alerts and of recorded series) in the file deploy/monitoring/rules/PART.yml."""
    groups = yaml.safe_load((RULES / f"{part}.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts(part: str) -> dict[str, dict[str, Any]]:
    """The rules of the alerts in the file deploy/monitoring/rules/PART.yml, by the alert's name."""
    return {rule["alert"]: rule for rule in rules(part) if "alert" in rule}


def names_in(expression: str) -> set[str]:
    """The names of Skidway's metrics in a PromQL expression, and `up` and `ALERTS` if it contains
    them. Ignores texts in quotes.
    """
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", expression)
    return set(re.findall(r"\bskidway[\w:]+|\bup\b|\bALERTS\b", bare))


def promtool_tests(part: str) -> dict[str, Any]:
    """The test document for `promtool test rules`, with all cases of the alerts in the file
    PART.yml.
    """
    severities = {name: rule["labels"]["severity"] for name, rule in alerts(part).items()}
    return {
        "rule_files": [str(RULES / f"{each}.yml") for each in (part, "thresholds")],
        "evaluation_interval": "1m",
        "tests": [_test(name, severities[name], case) for name, case in CASES[part].items()],
    }


def _test(name: str, severity: str, case: Case) -> dict[str, Any]:
    firing = {"alertname": name, "alertstate": "firing", "severity": severity, **case.labels}
    query = series("ALERTS", alertname=name, alertstate="firing")
    found = {"labels": series("ALERTS", **firing), "value": 1}
    return {
        "name": name,
        "interval": "1m",
        "input_series": [
            {"series": each, "values": values} for each, values in {**case.bad, **case.good}.items()
        ],
        "promql_expr_test": [
            _asked(query, case.before, []),
            _asked(query, case.at, [found]),
        ],
    }


def _asked(query: str, minute: int, expected: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"expr": query, "eval_time": f"{minute}m", "exp_samples": list(expected)}
