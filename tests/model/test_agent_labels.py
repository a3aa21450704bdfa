"""The real agent runs under random schedules while the file with the labels of pods changes,
becomes invalid and vanishes.

At the end, every line of every pod is delivered. If the brokers have several copies of a record,
all copies have the same bytes, and therefore the same labels. Each record has no labels or the
labels of its own pod, and never labels of another pod.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.settings import LabelSettings
from skidway.schemas.codec import Codec
from support.agent_world import World, pa_binary, raw, settings
from support.promises import promise
from support.randomness import Seeds

LABELS = "/run/pods.json"
PODS = ("web", "cart")
STEPS = 120


class Labelling:
    """One random run with two pods. Each change of the labels file gives the labels the next
    version number. `versions` is the newest of these numbers. `given` has the labels that each pod
    ever had."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        labels = LabelSettings(location=Path(LABELS), fields={"app": "app", "release": "version"})
        source = raw("logs", "/var/log/pods/*/*/*.log", container="cri", labels=labels)
        self.world = World(settings(source), partitions=2)
        self.lines = self.versions = 0
        self.given = {(pod, "", "") for pod in PODS}

    def run(self) -> None:
        for _ in range(STEPS):
            self.random.choice(self.actions())()
        self.change_labels()
        if self.world.loop is None:
            self.world.start()
        self.world.settle(rounds=60)
        self.check()

    def actions(self) -> list[Any]:
        host = [self.write, self.write, self.change_labels, self.spoil_labels, self.pass_time]
        if self.world.loop is None:
            return [*host, self.world.start, self.world.start]
        return [*host, self.hold, self.hold, self.world.tick, self.arrive, self.kill]

    def write(self) -> None:
        self.lines += 1
        pod = self.random.choice(PODS)
        line = f"2026-11-21T08:15:01.5Z stdout F {pod} {self.lines}\n"
        path = f"/var/log/pods/shop_{pod}_uid-{pod}/c/0.log"
        self.world.files.append(path, line.encode())

    def change_labels(self) -> None:
        self.versions += 1
        named = [pod for pod in PODS if self.random.random() < 0.8]
        self.given |= {(pod, pod, str(self.versions)) for pod in named}
        self.put({f"shop/{pod}": {"app": pod, "version": str(self.versions)} for pod in named})

    def spoil_labels(self) -> None:
        if self.random.random() < 0.5:
            self.world.files.delete(LABELS)
        else:
            self.put([])

    def put(self, content: object) -> None:
        self.world.files.append(f"{LABELS}.new", json.dumps(content).encode())
        self.world.files.rename(f"{LABELS}.new", LABELS)

    def pass_time(self) -> None:
        self.world.clock.advance(self.random.choice([0.1, 0.6, 2.0]))

    def hold(self) -> None:
        self.world.hold(2)

    def arrive(self) -> None:
        waiting = [tp for tp, sent in self.world.producer.sent.items() if sent]
        if waiting:
            self.world.producer.arrive(self.random.choice(waiting))

    def kill(self) -> None:
        if self.random.random() < 0.5:
            self.world.kill()

    def check(self) -> None:
        copies: dict[tuple[int, int], bytes] = {}
        for record in self.world.brokers.records("logs"):
            same = copies.setdefault((record.file, record.first), record.value)
            assert same == record.value, "a record was sent again as another one"
        codec = Codec(derived_schema(self.world.settings.sources[0]))
        values = pa_binary([value[5:] for value in copies.values()])
        rows = codec.decode(values).batch.to_pylist()
        found = {row["line"]: (row["pod"], row["app"], row["release"]) for row in rows}
        assert len(found) == len(rows) == self.lines
        for line, (pod, app, release) in found.items():
            assert line.startswith(f"{pod} ")
            assert (pod, app, release) in self.given
        assert not any(each["pending"] for each in self.world.ledger())


@promise("2 labels")
def test_copies_of_a_record_have_the_same_labels(seeds: Seeds) -> None:
    """Whenever the agent is killed, and however the file with the pods' labels changes, all copies
    of a record have the same labels. The agent delivers lines even if this file has no labels for
    their pod."""
    for seed in seeds(range(7000, 7040)):
        try:
            Labelling(seed).run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
