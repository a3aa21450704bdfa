"""`skidway audit trace` tells what happened to a single line in every program."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from skidway.demo.site import DATACENTER
from support.following import EVERYWHERE, HOST, begins_of, follows, states, traced
from support.processes import call_skidway, eventually, free_port
from support.trials import Stage, Stories, Story, Told, Trial

STORIES = Stories()


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_line_is_followed(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It asks about lines after a load, and
    checks that the answers are as its docstring says."""
    stage.result(story)


@STORIES.add(
    is_quick=True,
    parser={"type": "regex", "pattern": r"(?P<time>\S+) (?P<level>[A-Z]+) (?P<message>.*)"},
    timestamp={"fields": ["time"], "format": "rfc3339"},
    shape='drop level = "DEBUG" as debug',
)
def lines_followed_through_all_tiers(trial: Trial) -> Told:
    """`skidway audit trace` finds a line by host, path and byte position, by partition and offset,
    and by columns of its row. It shows the line and its times in all tiers. It also says if a line
    is not loaded yet, was rejected, or was left out by a rule. If no broker answers, the command
    ends with status 3."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    lines = [f"{now} INFO order {number:05} shipped" for number in range(50)]
    lines += ["!! not parsed: order 00050", f"{now} DEBUG order 00051 seen"]
    path = trial.folder / "app.log"
    trial.oracle.append("app.log", lines)
    trial.settle()
    begins = begins_of(lines)

    yield
    late = f"{now} INFO order 00052 is late"
    trial.oracle.append("app.log", [late])
    trial.settle()
    trial.pipeline.wait_mirrored(trial.topics)
    end = sum(len(line) + 1 for line in lines)
    wanted = EVERYWHERE | {"hdfs": "not yet"}
    eventually(lambda: follows(trial, f"{HOST}:{path}:{end + 3}", wanted))
    status, before = traced(trial, f"{HOST}:{path}:{end + 3}")
    assert status == 1
    assert before["lines"][0]["first_without"] == "hdfs"

    status, after = traced(trial, f"{HOST}:{path}:{begins[7] + 3}")
    (line,) = after["lines"]
    assert (status, states(line)) == (0, EVERYWHERE), line
    assert (line["first"], line["length"]) == (begins[7], len(lines[7]) + 1)
    assert line["text"] == lines[7]
    assert all(each["time"] for each in line["tiers"])

    rows = trial.rows().to_pylist()
    (row,) = (each for each in rows if each["message"] == "order 00007 shipped")
    place = {name: row[name] for name in ("_file_id", "_offset")}
    status, by_row = traced(trial, "--row", json.dumps(place))
    assert (status, by_row) == (0, after)
    status, by_offset = traced(
        trial, "--topic", f"{DATACENTER}.{trial.topic}",
        "--partition", str(row["_partition"]), "--offset", str(row["_kafka_offset"]),
    )  # fmt: skip
    assert (status, by_offset) == (0, after)

    status, rejected = traced(trial, f"{HOST}:{path}:{begins[50]}")
    assert status == 0
    assert states(rejected["lines"][0]) == EVERYWHERE | {
        "broker": "rejected", "mirror": "rejected",
    }  # fmt: skip
    status, left_out = traced(trial, f"{HOST}:{path}:{begins[51]}")
    assert status == 1
    assert states(left_out["lines"][0])["broker"] == "filtered"
    assert "debug" in left_out["lines"][0]["tiers"][1]["detail"]

    elsewhere = ("--bootstrap-server", f"127.0.0.1:{free_port()}")
    assert call_skidway("audit", "trace", f"{HOST}:{path}:0", *elsewhere).returncode == 3
