"""The loader can write its output to a real HDFS with a NameNode and a DataNode of Apache
Hadoop."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from support.following import EVERYWHERE, HOST, begins_of, states, traced
from support.hdfs import Hdfs
from support.pipeline import Pipeline
from support.proxy import Fault, produces
from support.trials import Stage, Stories, Story, Told, Trial, chosen

pytestmark = pytest.mark.java
STORIES = Stories(stage="hdfs")


@pytest.fixture(scope="module")
def stage(request: pytest.FixtureRequest, pipeline: Pipeline, hdfs: Hdfs) -> Stage:
    """A stage (a pipeline with its output) on which the loader writes its output to HDFS."""
    return Stage(pipeline, chosen(request, "hdfs"), f"{hdfs.url}/skidway").tell()


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_rows_on_hdfs_are_the_lines(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It sends lines, and then checks that
    the rows are as its docstring says."""
    stage.result(story)


@STORIES.add()
def one_load_after_the_other_on_hdfs(trial: Trial) -> Told:
    """After each load, the rows on HDFS are exactly the written lines."""
    trial.write("app.log", 5000)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.write("app.log", 5000)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def batch_of_a_dead_agent_after_its_lines_are_on_hdfs(trial: Trial) -> Told:
    """If a batch of a killed agent arrives after its lines were loaded, the loader drops the
    repeated lines. The loader recognizes these lines by its marks, which it reads from HDFS: a mark
    says up to which byte a file is loaded."""
    held = trial.proxy.inject(Fault.HOLD_REQUEST, produces(trial.topic), times=1)
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.restart("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    held.release()
    trial.wait_appended(1001)
    trial.write("app.log", 100)
    trial.settle()
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] > 0
    trial.expect_complete()
    trial.expect_recounted()


@STORIES.add(
    parser={"type": "regex", "pattern": r"(?P<time>\S+) (?P<level>[A-Z]+) (?P<message>.*)"},
    timestamp={"fields": ["time"], "format": "rfc3339"},
)
def lines_are_followed_to_rows_on_hdfs(trial: Trial) -> Told:
    """`skidway audit trace` finds a line by the position of one of its bytes, and by columns of its
    row. It names the Parquet file on HDFS that contains the row. It does the same for a line that
    the agent rejected."""
    now = datetime.now(UTC)
    old, new = (f"{each:%Y-%m-%dT%H:%M:%SZ}" for each in (now - timedelta(hours=5), now))
    lines = [f"{old} INFO order {number:05} packed" for number in range(20)]
    lines += [f"{new} INFO order {number:05} shipped" for number in range(20)]
    lines.append("!! not parsed: order 00020 shipped")
    trial.oracle.append("app.log", lines)
    begins, path = begins_of(lines), trial.folder / "app.log"
    trial.settle()
    yield
    (row,) = (x for x in trial.rows().to_pylist() if x["message"] == "order 00007 shipped")
    status, found = traced(trial, f"{HOST}:{path}:{begins[27] + 3}")
    (line,) = found["lines"]
    assert (status, states(line), line["text"]) == (0, EVERYWHERE, lines[27])
    file = line["tiers"][-1]["place"]
    assert file.startswith(f"{trial.output}/dc1.{trial.topic}/dt={new[:10]}/hour={new[11:13]}/")
    assert file.endswith(".parquet")
    place = {name: row[name] for name in ("_file_id", "_offset")}
    assert traced(trial, "--row", json.dumps(place)) == (0, found)
    status, rejected = traced(trial, f"{HOST}:{path}:{begins[40]}")
    assert status == 0
    assert states(rejected["lines"][0]) == EVERYWHERE | {
        "broker": "rejected", "mirror": "rejected",
    }  # fmt: skip
