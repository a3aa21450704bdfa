"""Lines of users' logs that known programs write in forms of their own: each field has the value
that a reader sees, or the line is rejected, and no value is in another field.

The inputs are from public bug reports of other tools, and from the programs' documentation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from skidway.agent.commands.guessing import guess
from skidway.agent.formats import catalog
from skidway.agent.settings import SourceSettings
from skidway.agent.validation.preview import Preview, preview

DATA = Path(__file__).parents[2] / "data" / "users"
CASES: list[dict[str, Any]] = yaml.safe_load((DATA / "formats.yml").read_text())
NOW_MS = 1_796_083_200_000  # 2026-12-01


def read(name: str, text: str, **more: Any) -> Preview:
    source = SourceSettings(topic="logs", paths=["/a"], format=name, **more)
    return preview(catalog.of_source(source), text.encode(), "/a", now_ms=NOW_MS)


def shown(made: Preview) -> dict[str, Any]:
    """What the only record has become: the fields with a value and the time, or the reason of the
    reject."""
    if made.rejects:
        (reject,) = made.rejects
        return {"rejected": reject.reason}
    (row,) = made.rows
    values = {
        name: value for name, value in row.row.items() if value not in ("", None) and name != "time"
    }
    values.pop("timestamp", None)
    values.pop("timestamp_replaced", None)
    return {"at": row.time and row.time.isoformat()} | values


@pytest.mark.parametrize("case", CASES, ids=[f"{each['format']} {each['why']}" for each in CASES])
def test_a_line_of_a_user_has_the_values_that_a_reader_sees(case: dict[str, Any]) -> None:
    """Each line has the values that a person found in it, or is rejected if its format cannot know
    them."""
    more = {"timezone": case["timezone"]} if "timezone" in case else {}
    found = shown(read(case["format"], case["line"], **more))
    expected = dict(case["row"])
    if "at" not in expected:
        found.pop("at", None)
    assert found == expected


@pytest.mark.parametrize("name", ["access", "access_vhost", "access_forwarded"])
def test_a_masked_client_is_nowhere_in_the_row(name: str) -> None:
    """`mask client for ips` hides the client of each line that a format of access logs reads, also
    if a host or a list of addresses is in front of the client."""
    lines = "".join(f"{each['line']}\n" for each in CASES if each["format"].startswith("access"))
    made = read(name, lines, shape="mask client for ips")
    assert made.rows
    assert [each.row for each in made.rows if "203.0.113.9" in str(each.row)] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('shop.example:443 203.0.113.9 - - [21/Nov/2026:08:15:0{} +0100] "GET / HTTP/1.1" 200 5',
         "access_vhost"),
        ('203.0.113.9, 10.0.0.5 - - [21/Nov/2026:08:15:0{} +0100] "GET / HTTP/1.1" 200 5',
         "access_forwarded"),
        ("Nov 21 08:15:0{} 10.0.0.2 web7 sshd[7]: Server listening", "syslog_relay"),
        ("Nov 21 08:15:0{} user.info kernel: eth0: link up", "syslog_busybox"),
        ("2026-11-21T08:15:0{}Z web7 sshd[7]: Server listening", "sshd_iso"),
        ("2026-11-21 08:15:0{} UTC [4711] LOG:  ready", "postgresql_seconds"),
        ("2026-11-21T08:15:0{}Z web7 cron[7]: ready", "syslog_iso"),
        # a level is no host, a sentence no program, and these programs' logs have no name here
        ("2026-11-21T08:15:0{}Z INFO app: ready", None),
        ("2026-11-21T08:15:0{}Z ready to serve requests", None),
        ("[Sat Nov 21 08:15:0{} 2026] [drm] Initialized i915", None),
        ("2026-11-21T08:15:0{}.123Z [INFO]  core: security barrier initialized", None),
        ('10.0.0.1 203.0.113.9 - - [21/Nov/2026:08:15:0{} +0100] "GET / HTTP/1.1" 200 5', None),
    ],
)  # fmt: skip
def test_guess_names_the_format_of_a_user(line: str, expected: str | None, tmp_path: Path) -> None:
    """`guess` names the format of lines that known programs write, and names no format for lines of
    other programs that look similar."""
    log = tmp_path / "a.log"
    log.write_text("".join(f"{line.format(second)}\n" for second in range(5)))
    found = guess(log, 100)
    assert found.block.get("format") == expected
    assert found.preview.share == 1.0


def test_the_last_lines_of_a_trace_never_win() -> None:
    """In Kafka's log, the logger is the one behind the message, also if a line of the stack trace
    ends with a text in parentheses."""
    text = (
        "[2026-11-21 08:15:01,123] ERROR Error (x) in y (kafka.server.ReplicaManager)\n"
        "java.io.IOException: disk (sda)\n\tat a.b(C.java:1) (d.E)\n"
        "[2026-11-21 08:15:02,123] INFO KafkaConfig values: \n"
        "\tbroker.id = 0\n (kafka.server.KafkaConfig)\n"
    )
    rows = [each.row for each in read("kafka", text).rows]
    assert [row["logger"] for row in rows] == [
        "kafka.server.ReplicaManager", "kafka.server.KafkaConfig"
    ]  # fmt: skip
    assert [row["message"] for row in rows] == [
        "Error (x) in y", "KafkaConfig values: \n\tbroker.id = 0\n"
    ]  # fmt: skip
