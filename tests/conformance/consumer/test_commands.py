"""`skidway groups` and `skidway consume --group` work with a real ZooKeeper and a real broker."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from conformance.consumer.conftest import Topic
from skidway.cli import groups
from skidway.cli.commands import Parser
from skidway.consumer import Consumer
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, UsageError
from skidway.kafka import group_nodes
from support.processes import eventually, run_skidway

pytestmark = pytest.mark.java

Run = Callable[..., int]


@pytest.fixture
def run(topic: Topic) -> Run:
    """Returns a function that runs `skidway groups` with the given arguments, for the test's
    cluster."""

    def running(*arguments: str) -> int:
        parser = Parser()
        groups.register(parser.add_subparsers())
        at = ["--bootstrap-server", topic.bootstrap]
        args: argparse.Namespace = parser.parse_args(["groups", *arguments, *at])
        return int(args.run(args))

    return running


def consumed(topic: Topic, *arguments: str) -> list[str]:
    at = ["--bootstrap-server", topic.bootstrap]
    done = run_skidway(
        "consume", "--topic", topic.name, "--group", topic.name, "--timeout", "4", *at, *arguments
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_consume_prints_once_and_goes_on(topic: Topic) -> None:
    """`skidway consume --group` commits the offsets of the records that it prints, and the next run
    continues after the last printed record."""
    topic.produce(30)
    first = consumed(topic, "--from-beginning", "--max", "10")
    rest = [json.loads(line) for line in consumed(topic, "--json")]
    assert len(first) == 10
    assert len(rest) == 20
    assert {*first, *(row["value"] for row in rest)} == set(topic.records.values())
    for row in rest:
        assert topic.records[row["partition"], row["offset"]] == row["value"]
    refused = run_skidway("consume", "--topic", topic.name, "--group", "g", "--partition", "1")
    assert refused.returncode == 2
    assert "groups reset" in refused.stderr


def test_groups_are_listed_and_described(
    topic: Topic, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway groups list` shows each group. `skidway groups describe` shows each partition's
    owner, committed offset, log end and lag. If the group is unknown, the command fails."""
    topic.produce(40, 1)
    with Consumer(
        topic.bootstrap, topic.name, topic.name, auto_offset_reset="earliest"
    ) as consumer:
        first = topic.tps()[1]
        eventually(
            lambda: (
                consumer.poll(100) == []
                and len(consumer.assignment()) == 4
                and consumer.position(first) == 40
            )
        )
        consumer.commit()
        topic.produce(5, 1)
        assert run("list", "--json") == 0
        listed = {row["group"]: row for row in json.loads(capsys.readouterr().out)}
        assert listed[topic.name] == {"group": topic.name, "members": 1, "topics": [topic.name]}
        assert run("describe", topic.name, "--json") == 0
        described = json.loads(capsys.readouterr().out)
        [member] = described["members"]
        assert described["partitions"][1] == {
            "topic": topic.name,
            "partition": 1,
            "owner": f"{member}-0",
            "committed_offset": 40,
            "log_start_offset": 0,
            "log_end_offset": 45,
            "lag": 5,
        }
        assert [row["lag"] for row in described["partitions"]] == [0, 5, 0, 0]
        assert run("describe", topic.name) == 0
        assert "COMMITTED OFFSET" in capsys.readouterr().out
    with pytest.raises(SkidwayError, match="there is no group"):
        run("describe", "never-was")


def test_a_group_is_reset_while_nobody_reads(
    topic: Topic, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """`skidway groups reset` sets a group's offsets to the beginning, the end, an offset or a time.
    It fails while the group has active members."""
    topic.produce(20, 0)
    middle = datetime.now(UTC)
    eventually(lambda: (datetime.now(UTC) - middle).total_seconds() > 0.01)
    topic.produce(10, 0)

    def offsets(*arguments: str) -> list[int]:
        assert run("reset", topic.name, "--topic", topic.name, "--json", *arguments) == 0
        return [row["now"] for row in json.loads(capsys.readouterr().out)]

    assert offsets("--to-latest") == [30, 0, 0, 0]
    assert offsets("--to-earliest", "--dry-run") == [0, 0, 0, 0]
    assert offsets("--to-offset", "7", "--partition", "0") == [7]
    assert len(consumed(topic)) == 23
    assert offsets("--to-datetime", middle.isoformat()) == [20, 0, 0, 0]
    assert len(consumed(topic)) == 10
    assert offsets("--to-earliest") == [0, 0, 0, 0]
    with pytest.raises(UsageError, match="holds offsets 0 to 30"):
        offsets("--to-offset", "31", "--partition", "0")
    with pytest.raises(UsageError, match="neither a time"):
        offsets("--to-datetime", "yesterday")
    with pytest.raises(UsageError, match="no topic"):
        run("reset", topic.name, "--topic", "never-was", "--to-earliest")
    with Consumer(topic.bootstrap, topic.name, topic.name) as consumer:
        assert eventually(lambda: len(consumer.poll(100)) > 0)
        with pytest.raises(SkidwayError, match="1 active members"):
            offsets("--to-latest")


def test_members_of_brokers_are_active_members(topic: Topic, run: Run) -> None:
    """While a group has stock clients as members, its offsets cannot be reset, and a consumer of
    `skidway.consumer` cannot join it."""
    with Coordinator(topic.zookeeper) as coordinator:
        coordinator.create_if_absent(group_nodes.record_path("stock"), b'{"members":[{"id":"x"}]}')
    with pytest.raises(SkidwayError, match="1 active members"):
        run("reset", "stock", "--topic", topic.name, "--to-latest")
    with (
        Consumer(topic.bootstrap, "stock", topic.name) as consumer,
        pytest.raises(SkidwayError, match="coordinate through a broker"),
    ):
        consumer.poll(1_000)
