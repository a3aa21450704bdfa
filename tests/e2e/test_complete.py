"""A job can wait until a topic is complete. The job either runs `skidway audit complete`, or checks
whether the directory of an hour contains the file `_SUCCESS`."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from skidway.demo.site import DATACENTER
from support.pipeline import LOAD_WITHIN_S
from support.processes import WITHIN_S, eventually
from support.promises import promise
from support.trials import Stage, Stories, Story, Told, Trial

STORIES = Stories()


@promise("6 complete before a time", "5 success file")
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_a_job_asks(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It asks whether a topic is complete,
    before and after a load, and checks that the answers are as its docstring says."""
    stage.result(story)


def asked(trial: Trial, until: datetime, wait: str) -> dict[str, Any]:
    """Runs `skidway audit complete` for the ten minutes before `until`, with the option `--wait`,
    and returns the command's answer."""
    since = until - timedelta(minutes=10)
    options = ["--since", since.isoformat(), "--until", until.isoformat(), "--wait", wait]
    return trial.pipeline.audit("complete", "--topic", trial.topic, *options)


@STORIES.add()
def rows_that_are_asked_for_before_and_after_the_load(trial: Trial) -> Told:
    """As long as some records of the requested time are not loaded, `skidway audit complete`
    answers "no". The answer also says how many records are missing in the tier hdfs. After the load
    the command answers "yes", and reports exactly as many rows as the output's files have."""
    trial.write("app.log", 200)
    trial.settle()
    until = datetime.fromtimestamp(time.time() + 1, UTC)
    trial.pipeline.wait_mirrored(trial.topics)

    def missing() -> int:
        before = asked(trial, until, "5s")
        assert not before["ok"]
        lacking = [each for topic in before["topics"] for each in topic["lacking"]]
        return sum(each["records"] for each in lacking if each["tier"] == "hdfs")

    # The agent tells the audit how many lines it has read only after the brokers have these lines.
    eventually(lambda: missing() == 200, what="200 rows are missing in hdfs")
    yield
    after = asked(trial, until, "60s")
    assert after["ok"], after["sentences"]
    assert sum(each["records"] for each in after["topics"]) == trial.rows().num_rows == 200


@STORIES.add(
    parser={"type": "regex", "pattern": r"(?P<time>\S+) (?P<line>.*)"},
    timestamp={"fields": ["time"], "format": "rfc3339"},
)
def an_hour_has_success_exactly_while_it_is_complete(trial: Trial) -> Told:
    """If a loader is configured with the collector's URL, it marks an hour with the file `_SUCCESS`
    when the audit reports the hour as complete. If a loader without this URL adds late rows to the
    hour, it removes the file. The file is written again when the audit reports the hour as complete
    again."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    name = f"{DATACENTER}.{trial.topic}/dt={hour:%Y-%m-%d}/hour={hour:%H}/_SUCCESS"
    success = Path(trial.pipeline.site.output, name)
    write(trial, hour, 200)
    yield
    assert not success.exists()
    assert marked(trial, hour, success)["rows"] == trial.rows().num_rows == 200
    write(trial, hour, 50)
    yield
    assert not success.exists()
    assert trial.rows().num_rows == 250
    assert marked(trial, hour, success)["rows"] == trial.rows().num_rows == 250
    trial.expect_exactly()


def write(trial: Trial, hour: datetime, count: int) -> None:
    """Writes `count` lines with times in the given hour, and waits until the agent has delivered
    them."""
    known = len(trial.oracle.lines)
    times = (hour + timedelta(seconds=at) for at in range(count))
    lines = [f"{at:%Y-%m-%dT%H:%M:%SZ} line {known + n}" for n, at in enumerate(times)]
    trial.oracle.append("app.log", lines)
    trial.oracle.lines[known:] = [line.partition(" ")[2] for line in lines]
    trial.settle()


def marked(trial: Trial, hour: datetime, success: Path) -> Any:
    """Waits until the audit reports the hour as complete. Then runs loads that have the collector's
    URL in their settings, until one of them has written the file `_SUCCESS`, and returns the file's
    content. (`skidway audit complete` reads the audit topics itself, but a load asks the collector.
    On a busy machine the collector may not have read all messages that `complete` has read, or may
    take longer to answer than a load waits. Then the first loads do not write the file, but a later
    load does. If none has written it after WITHIN_S seconds, the test fails.)
    """
    times = ["--since", hour.isoformat(), "--until", (hour + timedelta(hours=1)).isoformat()]
    answer = trial.pipeline.audit("complete", "--topic", trial.topic, *times, "--wait", "60s")
    assert answer["ok"], answer["sentences"]
    assert not success.exists(), "nobody has marked it yet"
    url = trial.pipeline.site.url("dashboard")
    until, said = time.monotonic() + WITHIN_S, ""
    while not success.exists():
        assert time.monotonic() < until, said
        loader = trial.loader("--set", f"collector.url={url}").start()
        status, said = loader.wait(LOAD_WITHIN_S), loader.output()
        assert status == (3 if "s to answer; the next run asks" in said else 0), said
    return json.loads(success.read_text())
