"""Writes the Grafana boards in deploy/monitoring/boards from the panels that are listed here.

    python -m deploy.monitoring.boards            writes the boards
    python -m deploy.monitoring.boards --check    writes nothing; status 1 if a board is out of date

Every panel has a title, one of Grafana's units and one or more queries, each with the legend of its
series. Rates are averages over 5 minutes. A board finds Prometheus by its variable `datasource`;
the board of completeness also has a variable `topic`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).parent / "boards"
WIDTH: Final = 24  # Grafana's grid has this many columns
PANEL_WIDTH, PANEL_HEIGHT = 8, 7

COUNT, SHARE, SECONDS, BYTES = "short", "percentunit", "s", "bytes"
PER_SECOND, BYTES_PER_SECOND, REQUESTS = "cps", "Bps", "reqps"
SCHEMA_VERSION: Final = 37  # Grafana 9 and later can read this version


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a Grafana board. queries: for each legend, its query. In a legend, Grafana
    replaces `{{label}}` by the value of the label."""

    title: str
    unit: str
    queries: Mapping[str, str]
    kind: str = "timeseries"


@dataclass(frozen=True, slots=True)
class Board:
    """A Grafana board. name: the board's uid and the name of the board's file end with this word.
    has_topics: whether the board has the variable `topic`."""

    name: str
    title: str
    panels: Sequence[Panel]
    has_topics: bool = False


FLEET: Final = Board(
    "fleet",
    "Skidway: fleet",
    (
        Panel(
            "Alerts that fire",
            COUNT,
            {"alerts": 'count(ALERTS{alertname=~"Skidway.+",alertstate="firing"}) or vector(0)'},
            "stat",
        ),
        Panel(
            "Programs that do not answer",
            COUNT,
            {
                "{{job}}": 'count by (job) (up{job=~"skidway-.+"})'
                ' - sum by (job) (up{job=~"skidway-.+"})'
            },
            "stat",
        ),
        Panel(
            "Hosts that must report",
            COUNT,
            {
                "expected": "skidway_audit_expected_hosts",
                "silent": "skidway_audit_silent_hosts",
                "behind": "skidway_audit_behind_hosts",
                "never heard": "skidway_audit_never_heard_hosts",
            },
            "stat",
        ),
        Panel(
            "Records made by agents", PER_SECOND, {"{{cluster}}": "skidway:agent_records:rate5m"}
        ),
        Panel(
            "Bytes that brokers have not acknowledged, the ten hosts with most",
            BYTES,
            {"{{instance}}": "topk(10, skidway_agent_pending_bytes)"},
        ),
        Panel(
            "Lines that agents rejected",
            PER_SECOND,
            {
                "{{topic}}: {{reason}}": "sum by (topic, reason)"
                " (rate(skidway_agent_rejected_lines_total[5m]))"
            },
        ),
        Panel(
            "Records that rules of agents left out",
            PER_SECOND,
            {
                "{{topic}}: {{rule}}": "sum by (topic, rule)"
                " (rate(skidway_agent_filtered_records_total[5m]))"
            },
        ),
        Panel(
            "Ranges of files declared lost or uncertain since the agents' start",
            COUNT,
            {
                "{{topic}}: {{certainty}}": "sum by (topic, certainty)"
                " (skidway_agent_set_apart_ranges_total)"
            },
        ),
        Panel(
            "Paths that agents cannot read", COUNT, {"paths": "sum(skidway_agent_unreadable_paths)"}
        ),
        Panel(
            "Commit of an agent's state, 99th percentile",
            SECONDS,
            {
                "p99": "histogram_quantile(0.99, sum by (le)"
                " (rate(skidway_agent_commit_seconds_bucket[5m])))"
            },
        ),
        Panel(
            "Clocks that differ from most others",
            COUNT,
            {"clocks": "skidway_audit_wrong_clocks"},
        ),
        Panel(
            "Requests to the schema registry",
            REQUESTS,
            {"{{instance}}: {{status}}": "skidway:registry_requests:rate5m"},
        ),
        Panel(
            "Answers of the schema registry, 99th percentile",
            SECONDS,
            {"{{instance}}": "skidway:registry_request_seconds:p99_5m"},
        ),
        Panel(
            "Subjects of the schema registry", COUNT, {"{{instance}}": "skidway_schemas_subjects"}
        ),
    ),
)

BROKERS: Final = Board(
    "brokers",
    "Skidway: brokers",
    (
        Panel(
            "Appended", BYTES_PER_SECOND, {"{{instance}}": "skidway:broker_appended_bytes:rate5m"}
        ),
        Panel("Fetched", BYTES_PER_SECOND, {"{{instance}}": "skidway:broker_fetched_bytes:rate5m"}),
        Panel(
            "Records appended",
            PER_SECOND,
            {"{{instance}}": "rate(skidway_broker_messages_total[5m])"},
        ),
        Panel("Requests", REQUESTS, {"{{instance}}": "rate(skidway_broker_requests_total[5m])"}),
        Panel("Open connections", COUNT, {"{{instance}}": "skidway_broker_connections"}),
        Panel("Parked requests", COUNT, {"{{instance}}": "skidway_broker_requests_waiting"}),
        Panel(
            "Free space for records",
            BYTES,
            {"{{instance}} {{directory}}": "skidway_broker_log_directory_free_bytes"},
        ),
        Panel(
            "Log directories not in use, or full",
            COUNT,
            {
                "{{instance}}: not in use": "skidway_broker_log_directories_offline",
                "{{instance}}: full": "skidway_broker_log_directories_full",
            },
        ),
        Panel(
            "Partitions",
            COUNT,
            {
                "{{instance}}: served": "skidway_broker_partitions",
                "{{instance}}: not served": "skidway_broker_partitions_stopped",
                "{{instance}}: kept longer": "skidway_broker_partitions_held",
            },
        ),
        Panel(
            "Mean time of a flush", SECONDS, {"{{instance}}": "skidway:broker_flush_seconds:mean5m"}
        ),
        Panel(
            "Errors that are bugs",
            PER_SECOND,
            {
                "{{instance}}: {{reason}}": "sum by (instance, reason)"
                " (rate(skidway_broker_internal_errors_total[5m]))"
            },
        ),
        Panel(
            "Consumer groups",
            COUNT,
            {
                "{{instance}}: groups": "skidway_broker_groups",
                "{{instance}}: members": "skidway_broker_group_members",
            },
        ),
        Panel(
            "ZooKeeper serves",
            COUNT,
            {"{{instance}}": "skidway_zookeeper_serving"},
            "stat",
        ),
        Panel(
            "Requests that wait for ZooKeeper",
            COUNT,
            {"{{instance}}": "skidway_zookeeper_outstanding_requests_count"},
        ),
    ),
)

MIRRORS: Final = Board(
    "mirrors",
    "Skidway: mirrors",
    (
        Panel(
            "Source clusters that answer",
            COUNT,
            {"{{instance}}: {{source}}": "skidway_broker_mirror_source_reachable"},
            "stat",
        ),
        Panel("Records mirrored", PER_SECOND, {"{{source}}": "skidway:mirror_records:rate5m"}),
        Panel("Bytes mirrored", BYTES_PER_SECOND, {"{{source}}": "skidway:mirror_bytes:rate5m"}),
        Panel(
            "Records not mirrored yet",
            COUNT,
            {"{{instance}}: {{source}}": "skidway_broker_mirror_lag_records"},
        ),
        Panel(
            "How far the mirrored records are behind",
            SECONDS,
            {"{{cluster}}.{{topic}}": 'skidway:tier_lag_seconds{tier="mirror"}'},
        ),
        Panel(
            "Partitions",
            COUNT,
            {
                "{{source}}: followed": "sum by (source) (skidway_broker_mirror_partitions)",
                "{{source}}: waiting": "sum by (source) (skidway_broker_mirror_waiting)",
                "{{source}}: stopped": "sum by (source) (skidway_broker_mirror_stopped)",
            },
        ),
        Panel("Gaps", COUNT, {"{{instance}}: {{source}}": "skidway_broker_mirror_gaps"}),
    ),
)

LOADS: Final = Board(
    "loads",
    "Skidway: loads",
    (
        Panel(
            "Time since the last load that succeeded",
            SECONDS,
            {"{{instance}}": "skidway:load_age_seconds"},
            "stat",
        ),
        Panel(
            "Exit status of the last run",
            COUNT,
            {"{{instance}}": "skidway_loader_last_run_exit_status"},
            "stat",
        ),
        Panel(
            "Duration of the run that works, or of the last run",
            SECONDS,
            {"{{instance}}": "skidway:load_duration_seconds"},
        ),
        Panel(
            "What the last run committed",
            COUNT,
            {
                "{{instance}}: rows": "skidway_loader_last_run_rows",
                "{{instance}}: rejects": "skidway_loader_last_run_rejects",
                "{{instance}}: repeats dropped": "skidway_loader_last_run_repeats",
            },
        ),
        Panel(
            "Records that the run has taken, of those expected",
            COUNT,
            {
                "{{topic}}: taken": "skidway_loader_run_records",
                "{{topic}}: expected": "skidway_loader_run_expected_records",
            },
        ),
        Panel(
            "Rows committed", PER_SECOND, {"{{instance}}": "rate(skidway_loader_rows_total[5m])"}
        ),
        Panel(
            "Records that the loader rejected",
            PER_SECOND,
            {
                "{{topic}}: {{reason}}": "sum by (topic, reason)"
                " (rate(skidway_loader_rejects_total[5m]))"
            },
        ),
        Panel(
            "How far the rows are behind",
            SECONDS,
            {"{{cluster}}.{{topic}}": 'skidway:tier_lag_seconds{tier="hdfs"}'},
        ),
    ),
)

_CHOSEN = '{topic=~"$topic"}'
_LOSS = "{{cluster}}.{{topic}}: {{certainty}}, {{reason}}"

COMPLETENESS: Final = Board(
    "completeness",
    "Skidway: completeness",
    (
        Panel("Buckets", COUNT, {"{{verdict}}": "skidway_audit_buckets"}, "stat"),
        Panel(
            "Buckets that somebody should look at",
            COUNT,
            {
                "overdue": "skidway_audit_overdue_buckets",
                "too many rejects": "skidway_audit_warned_buckets",
                "accepted": "skidway_audit_accepted_buckets",
            },
            "stat",
        ),
        Panel(
            "What the audit itself lacks",
            COUNT,
            {
                "offsets not counted": "skidway_audit_uncounted_offsets",
                "messages of newer versions": "skidway_audit_unread_messages",
                "hours not judged": "skidway_audit_unjudged_hours",
                "recounts that differ": "skidway_audit_differing_recounts",
            },
            "stat",
        ),
        Panel(
            "Complete until, as an age",
            SECONDS,
            {"{{cluster}}.{{topic}}": f"skidway:complete_age_seconds{_CHOSEN}"},
        ),
        Panel(
            "Buckets overdue",
            COUNT,
            {"{{cluster}}.{{topic}}: {{verdict}}": f"skidway_audit_topic_overdue_buckets{_CHOSEN}"},
        ),
        Panel(
            "Freshness: age of the newest records of each tier",
            SECONDS,
            {"{{cluster}}.{{topic}}: {{tier}}": f"skidway:written_age_seconds{_CHOSEN}"},
        ),
        Panel(
            "Freshness within an hour, median",
            SECONDS,
            {"{{cluster}}.{{topic}}: {{tier}}": f"skidway:written_age_seconds:p50_1h{_CHOSEN}"},
        ),
        Panel(
            "Freshness within an hour, 99th percentile",
            SECONDS,
            {"{{cluster}}.{{topic}}: {{tier}}": f"skidway:written_age_seconds:p99_1h{_CHOSEN}"},
        ),
        Panel(
            "How far each tier is behind the first",
            SECONDS,
            {"{{cluster}}.{{topic}}: {{tier}}": f"skidway:tier_lag_seconds{_CHOSEN}"},
        ),
        Panel(
            "Share of rejects",
            SHARE,
            {"{{cluster}}.{{topic}}": f"skidway:audit_rejected_share{_CHOSEN}"},
        ),
        Panel(
            "Rejected records",
            COUNT,
            {"{{cluster}}.{{topic}}: {{by}}": f"skidway_audit_topic_rejected_records{_CHOSEN}"},
        ),
        Panel(
            "Filtered records",
            COUNT,
            {"{{cluster}}.{{topic}}: {{rule}}": f"skidway_audit_topic_filtered_records{_CHOSEN}"},
        ),
        Panel(
            "Ranges of files declared lost or uncertain",
            COUNT,
            {_LOSS: f"skidway_audit_topic_lost_ranges{_CHOSEN}"},
        ),
        Panel(
            "Bytes of these ranges, as far as known",
            BYTES,
            {_LOSS: f"skidway_audit_topic_lost_bytes{_CHOSEN}"},
        ),
        Panel(
            "Records that counters have not counted yet",
            COUNT,
            {"{{instance}}": "skidway_audit_counter_lag_records"},
        ),
    ),
    has_topics=True,
)

BOARDS: Final = (FLEET, BROKERS, MIRRORS, LOADS, COMPLETENESS)

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def document(board: Board) -> dict[str, Any]:
    """Returns the board as Grafana's JSON document."""
    variables: list[dict[str, Any]] = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    ]
    if board.has_topics:
        variables.append(
            {
                "name": "topic",
                "type": "query",
                "datasource": _SOURCE,
                "query": "label_values(skidway_audit_topic_records, topic)",
                "refresh": 2,
                "multi": True,
                "includeAll": True,
                "allValue": ".+",
                "label": "Topic",
            }
        )
    return {
        "uid": f"skidway-{board.name}",
        "title": board.title,
        "tags": ["skidway"],
        "schemaVersion": SCHEMA_VERSION,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "templating": {"list": variables},
        "panels": [_panel(at, each) for at, each in enumerate(board.panels)],
    }


def text(board: Board) -> str:
    """Returns the content of the board's file."""
    return json.dumps(document(board), indent=2) + "\n"


def path(board: Board) -> Path:
    """Returns the path of the board's file."""
    return FOLDER / f"skidway-{board.name}.json"


def main(arguments: list[str]) -> int:
    """Writes the boards and returns 0. With --check, writes nothing, and returns 1 if a file is out
    of date."""
    parser = argparse.ArgumentParser(prog="python -m deploy.monitoring.boards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; 1 if it would")
    if parser.parse_args(arguments).check:
        return int(any(not path(x).exists() or path(x).read_text() != text(x) for x in BOARDS))
    for board in BOARDS:
        path(board).write_text(text(board))
    return 0


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(number, WIDTH // PANEL_WIDTH)
    return {
        "id": number + 1,
        "title": panel.title,
        "type": panel.kind,
        "datasource": _SOURCE,
        "gridPos": {
            "x": column * PANEL_WIDTH,
            "y": row * PANEL_HEIGHT,
            "w": PANEL_WIDTH,
            "h": PANEL_HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + at), "expr": query, "legendFormat": legend}
            for at, (legend, query) in enumerate(panel.queries.items())
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
