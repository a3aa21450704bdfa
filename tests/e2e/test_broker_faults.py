"""No line is lost or doubled because of faults of brokers, the mirror, ZooKeeper or the
counters."""

from __future__ import annotations

import collections
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient

from skidway.demo.site import DATACENTER, OFFLINE
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.columns import decode
from support.pipeline import ORDER, Pipeline, Writer
from support.processes import call_skidway, eventually
from support.promises import promise
from support.proxy import Fault, produces
from support.trials import Stage, Stories, Story, Told, Trial

STORIES = Stories()
KILLS = 3
REGISTRATION = "/brokers/ids/1"


@promise("all programs")
@pytest.mark.parametrize("story", STORIES, ids=str)
def test_no_line_is_lost_or_doubled(stage: Stage, story: Story) -> None:
    """Runs one story. A story is a function of this module. It causes a fault, and then checks that
    the rows are as its docstring says."""
    stage.result(story)


@STORIES.add()
def partitions_added_while_running(trial: Trial) -> Told:
    """When partitions are added to a topic, agent, mirror, counters and loader use the new
    partitions, and no line is lost."""
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
        lambda: any(
            event in agent.output()[before:] for event in ("topics_changed", "agent_started")
        ),
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


def places(trial: Trial) -> dict[tuple[int, int], set[int]]:
    """Returns for each line the partitions of the datacenter's broker that have a record of the
    line. A line is given by its file id and the position of its first byte."""
    found: dict[tuple[int, int], set[int]] = collections.defaultdict(set)
    ends = {tp: end for tp, end in trial.watermarks().items() if end}
    with Client(trial.pipeline.site.address("broker-dc1")) as client:
        fetcher = Fetcher(client)
        for tp in ends:
            fetcher.seek(tp, 0)
        while any(fetcher.positions[tp] < end for tp, end in ends.items()):
            for part in fetcher.poll(500):
                for raw in part.batches:
                    origins = decode(raw).origins
                    assert origins is not None
                    for line in zip(origins.file.tolist(), origins.first.tolist(), strict=True):
                        found[line].add(part.tp.partition)
    return dict(found)


@STORIES.add(parser={"type": "regex", "pattern": r"(?P<line>\S+ (?P<number>\S+) .*)"}, key="number")
def partitions_added_between_crash_and_restart(trial: Trial) -> Told:
    """If partitions are added to a topic while the agent is down after a kill, the restarted agent
    sends each unacknowledged line again to its old partition. It does not use the new partitions
    for these lines."""
    trial.write("app.log", 100)
    trial.settle()
    held = trial.hold_answers()
    trial.write("app.log", 1000)
    held.wait_for_hit()
    trial.pipeline.kill("agent")
    held.drop()
    appended = trial.appended()
    before = places(trial)
    assert set.union(*before.values()) == {0, 1}
    with Client(trial.pipeline.site.address("broker-dc1")) as client:
        assert client.create_partitions({trial.topic: 7}) == {trial.topic: None}
    trial.pipeline.start("agent")
    trial.settle()
    trial.write("app.log", 1000)
    trial.settle()
    assert max(tp.partition for tp, end in trial.watermarks().items() if end) > 1
    after = places(trial)
    assert {line: after[line] for line in before} == before
    yield
    trial.expect_exactly()
    assert trial.loaded()["repeats"] == appended - 100
    trial.expect_complete()


@STORIES.add()
def acknowledgement_lost(trial: Trial) -> Told:
    """If the connection breaks after the broker has appended a batch and before the broker's answer
    arrives, the agent sends the batch again. The broker does not append the batch twice."""
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
    """If the broker dies after it has appended a batch and before the broker's answer arrives, the
    agent sends the batch again to the restarted broker. The broker finds the batch in its log, and
    does not append it again."""
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


@STORIES.add(is_quick=True)
def broker_killed_while_it_takes(trial: Trial) -> Told:
    """If the datacenter's broker is killed with kill -9 again and again while it appends batches,
    no line is lost or doubled."""
    chance = random.Random(3)
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
    """While the datacenter's broker is down, the agent and the mirror wait. When the broker is up
    again, both continue where they stopped."""
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


@STORIES.add(is_quick=True)
def mirror_killed_while_it_follows(trial: Trial) -> Told:
    """If the offline broker is killed with kill -9 while it mirrors a topic, the restarted broker
    continues at the end of its own log. No line is lost or doubled, and afterwards each partition
    of the mirror ends at the offset at which the source's partition ends."""
    with Writer(trial.oracle, "app.log"):
        for _ in range(KILLS):
            trial.wait_mirror_moves()
            trial.pipeline.restart("broker-offline")
    trial.settle()
    yield
    ends = {tp.partition: end for tp, end in trial.watermarks(DATACENTER).items()}
    assert {tp.partition: end for tp, end in trial.watermarks(OFFLINE).items()} == ends
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def zookeeper_restarted(trial: Trial) -> Told:
    """While ZooKeeper is down, running programs continue to work. When ZooKeeper is up again, new
    topics can be created."""
    with Writer(trial.oracle, "app.log"), down(trial.pipeline, "zookeeper"):
        trial.wait_appended(trial.appended() + 2000)
    trial.settle()
    created = f"{trial.topic}-made-afterwards"
    where = trial.pipeline.site.address("broker-dc1")
    eventually(
        lambda: (
            not call_skidway("topics", "create", created, "--bootstrap-server", where).returncode
        ),
        what="the broker has found ZooKeeper again",
    )
    trial.pipeline.wait_mirrored([created])
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add()
def broker_stands_still_past_its_session(trial: Trial) -> Told:
    """If a broker's process is suspended for longer than its ZooKeeper session timeout, ZooKeeper
    ends the broker's session. When the process continues, the broker registers again, and no line
    is lost."""
    broker = trial.pipeline.programs["broker-dc1"]
    with Writer(trial.oracle, "app.log"), zookeeper_of(trial.pipeline, DATACENTER) as zookeeper:
        broker.signal(signal.SIGSTOP)
        eventually(lambda: zookeeper.exists(REGISTRATION) is None, what="its session has expired")
        broker.signal(signal.SIGCONT)
        eventually(lambda: zookeeper.exists(REGISTRATION), what="it is registered again")
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add(is_quick=True)
def whole_site_killed_at_once(trial: Trial) -> Told:
    """If every program is killed with kill -9 at the same time and then restarted, each program
    continues where it stopped."""
    with Writer(trial.oracle, "app.log"):
        trial.wait_appended(2000)
        for name in ORDER:
            trial.pipeline.kill(name)
    trial.pipeline.start(*ORDER)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@STORIES.add(is_quick=True)
def counters_and_collector_killed(trial: Trial) -> Told:
    """If the counters and the collector are killed with kill -9, each record is still counted once,
    and the audit's verdict is right."""
    with Writer(trial.oracle, "app.log"):
        for name in ("count-dc1", "count-offline", "audit"):
            trial.wait_appended(trial.appended() + 2000)
            trial.pipeline.restart(name)
    trial.settle()
    yield
    trial.expect_exactly()
    trial.expect_complete()


@contextmanager
def zookeeper_of(pipeline: Pipeline, cluster: str) -> Iterator[KazooClient]:
    """Yields a ZooKeeper client in the chroot of the cluster."""
    client = KazooClient(f"{pipeline.site.address('zookeeper')}/{cluster}")
    client.start()
    yield client
    client.stop()
    client.close()


@contextmanager
def down(pipeline: Pipeline, name: str) -> Iterator[None]:
    """Kills the pipeline's program `name`, and starts it again after the `with` block."""
    pipeline.kill(name)
    yield
    pipeline.start(name)
