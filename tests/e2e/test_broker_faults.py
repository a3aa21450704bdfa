"""Faults of brokers, mirror, ZooKeeper and counters: none loses a line, none doubles one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from skidway.demo.site import DATACENTER
from skidway.kafka.client import Client
from support.pipeline import Pipeline, Writer, seed
from support.processes import eventually
from support.proxy import Fault, produces
from support.trials import Stage, Stories, Story, Told, Trial

pytestmark = pytest.mark.e2e
STORIES = Stories()
KILLS = 3


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_no_line_is_lost_or_doubled(stage: Stage, story: Story) -> None:
    """Each story's promise holds: see its docstring."""
    stage.result(story)


def test_a_recount_agrees(stage: Stage) -> None:
    """The rows, counted again from their files, are what every tier counted."""
    stage.expect_recounted()


@STORIES.add()
def partitions_added_while_running(trial: Trial) -> Told:
    """A topic that grows loses nothing: agent, mirror, counters and loader follow it."""
    for number in range(6):
        trial.write(f"{number}.log", 100)
    trial.settle()
    with Client(trial.pipeline.site.address("broker-dc1")) as client:
        assert client.create_partitions({trial.topic: 5}) == {trial.topic: None}
    agent = trial.pipeline.programs["agent"]
    before = len(agent.output())
    yield
    trial.expect_exactly()
    eventually(
        lambda: '"event": "topics_changed"' in agent.output()[before:],
        within_s=60,
        what="the agent has seen the new partitions",
    )
    for number in range(20):
        trial.write(f"{number}.log", 100)
    trial.settle()
    used = [tp.partition for tp, end in trial.watermarks(DATACENTER).items() if end]
    assert max(used) > 1
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def acknowledgement_lost(trial: Trial) -> Told:
    """The connection is cut behind the append: the batch comes again, and is not taken twice."""
    lost = trial.proxy.inject(Fault.LOSE_ANSWER, produces(trial.topic), times=3)
    with Writer(trial.oracle, "app.log"):
        lost.wait_for_hit(3)
    trial.settle()
    assert trial.appended() == len(trial.oracle.lines)
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == 0
    trial.expect_complete()


@STORIES.add()
def acknowledgement_lost_with_its_broker(trial: Trial) -> Told:
    """The broker dies behind the append and its answer is lost: what it knew is in its log."""
    trial.write("app.log", 100)
    trial.settle()
    held = trial.hold_answers()
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.kill("broker-dc1")
    held.drop()
    trial.pipeline.start("broker-dc1")
    trial.settle()
    assert trial.appended() == len(trial.oracle.lines)
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def broker_killed_while_it_takes(trial: Trial) -> Told:
    """kill -9 of the datacenter's broker in the middle of appending, again and again."""
    chance = random.Random(seed())
    with Writer(trial.oracle, "app.log"):
        for _ in range(KILLS):
            trial.wait_appended(trial.appended() + chance.randrange(1, 3000))
            trial.pipeline.restart("broker-dc1")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def source_of_the_mirror_down_for_a_while(trial: Trial) -> Told:
    """Agent and mirror wait for the datacenter's broker, and go on where they stood."""
    trial.write("app.log", 500)
    trial.settle()
    with down(trial.pipeline, "broker-dc1"):
        trial.write("app.log", 500)
        refused = trial.proxy.refused
        eventually(lambda: trial.proxy.refused > refused + 10, what="everybody tries again")
    trial.write("app.log", 500)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def mirror_killed_while_it_follows(trial: Trial) -> Told:
    """kill -9 of the offline broker: it goes on at its own log's end, offset for offset."""
    with Writer(trial.oracle, "app.log"):
        for _ in range(KILLS):
            trial.wait_mirror_moves()
            trial.pipeline.restart("broker-offline")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def zookeeper_restarted(trial: Trial) -> Told:
    """kill -9 of ZooKeeper: what runs goes on meanwhile, and new topics can be made behind it."""
    with Writer(trial.oracle, "app.log"), down(trial.pipeline, "zookeeper"):
        trial.wait_appended(trial.appended() + 2000)
    trial.settle()
    created = f"{trial.topic}-made-afterwards"
    trial.pipeline.run(
        "topics", "create", created, "--bootstrap-server", trial.pipeline.site.address("broker-dc1")
    )
    trial.pipeline.wait_mirrored([created])
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def counters_and_collector_killed(trial: Trial) -> Told:
    """kill -9 of what counts: no record is counted twice or not at all, the verdict stands."""
    with Writer(trial.oracle, "app.log"):
        for name in ("count-dc1", "count-offline", "audit"):
            trial.wait_appended(trial.appended() + 2000)
            trial.pipeline.restart(name)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@contextmanager
def down(pipeline: Pipeline, name: str) -> Iterator[None]:
    """A program is not there while the block runs."""
    pipeline.kill(name)
    yield
    pipeline.start(name)
