"""If Apache Kafka 4.4 replaces the datacenter's broker, the rows and the audit's verdict are the
same as with Skidway's broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from skidway.demo.site import DATACENTER
from skidway.kafka.client import Client
from support.kafka import ApacheKafka
from support.pipeline import Pipeline, Writer
from support.trials import Stage, Stories, Story, Told, Trial, chosen

pytestmark = pytest.mark.java
STORIES = Stories(stage="kafka")
PATTERN = "through-kafka-.*"
KILLS = 2


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    apache_kafka: ApacheKafka,
) -> Iterator[Stage]:
    """A stage (a pipeline with its output) on which Apache Kafka is the datacenter's only broker.
    The pipeline also has an agent, Skidway's offline broker with the mirror, and a loader."""
    folder = tmp_path_factory.mktemp("through-kafka")
    mirror = {
        "cluster": DATACENTER,
        "bootstrap.servers": apache_kafka.address,
        "topics": [PATTERN],
    }
    pipeline = Pipeline(
        folder,
        [{"topic": "through-kafka-nothing", "paths": [str(folder / "nothing")]}],
        elsewhere={"broker-dc1": apache_kafka.port},
        settings={
            "agent": {"cluster.name": DATACENTER},
            "broker-offline": {"mirror.sources": [mirror]},
            "count-dc1": {"topics": [PATTERN]},
        },
    )
    try:
        pipeline.start()
        yield Stage(pipeline, chosen(request, "kafka")).tell()
    finally:
        pipeline.stop()


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_lines_through_apache_kafka(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It sends lines, and then checks that
    the rows are as its docstring says."""
    stage.result(story)


@STORIES.add()
def through_kafka_killed_and_started_again(trial: Trial) -> Told:
    """If the agent is killed while it sends to Apache Kafka, no line is lost or doubled."""
    with Writer(trial.oracle, "app.log"):
        for _ in range(KILLS):
            trial.wait_appended(trial.appended() + 1000)
            trial.pipeline.restart("agent")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add(
    parser={"type": "regex", "pattern": r"(?P<time>\S+) (?P<line>.*)"},
    timestamp={"fields": ["time"], "format": "rfc3339"},
)
def through_kafka_with_old_times(trial: Trial) -> Told:
    """Apache Kafka keeps records whose event times are ten years old, because the agent creates
    topics whose configs do not let records expire by their event times."""
    lines = [f"2015-06-{1 + n % 3:02}T10:{n % 60:02}:00Z line {n}" for n in range(600)]
    trial.oracle.append("app.log", lines)
    trial.oracle.lines = [line.partition(" ")[2] for line in lines]
    trial.settle()
    with Client(trial.pipeline.site.address("broker-dc1")) as client:
        configs = client.topic_configs(trial.topics)
    for name in trial.topics:
        assert configs[name]["retention.ms"] == "-1"
        assert configs[name]["message.timestamp.type"] == "CreateTime"
        assert int(configs[name]["message.timestamp.after.max.ms"]) == (1 << 63) - 1
    yield
    trial.expect_exactly()
    trial.expect_complete()
    trial.expect_recounted()
