"""Before an upgrade continues with further hosts, the audit must report the upgraded hosts as
proven healthy. Under random schedules, this check (the gate) never wrongly reports a host as proven
healthy. In the end it reports a healthy host as proven healthy.

The simulated site is the same as in test_audit. After each message the test asks the gate whether
the host is proven healthy since a given moment. If the gate says yes, the test checks the bucket of
this moment, and each later bucket that is due (the audit no longer waits for late lines). Each line
of these buckets must have a row if the line was in a file when the agent noted its newest seal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.test_audit import BUCKET_MS, POLICY, SECOND, Faults, World
from skidway.audit.judgement.host_proofs import Proof, proofs
from skidway.audit.topic.messages import Message
from support.promises import promise
from support.randomness import Seeds

RUNS = range(60)


class Gate(World):
    """A simulated site that counts how often the gate (the check between two steps of an upgrade)
    reported the host as proven healthy, and checks each of these reports."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self.proven = 0
        super().__init__(seed, faults)

    def judge(self, messages: list[Message]) -> set[int]:
        complete = super().judge(messages)
        back = self.random.randrange(0, 6 * BUCKET_MS, SECOND)
        since_ms = self.own_clock_ms() - back
        if self.ask(messages, since_ms) and not self.wrong:
            self.proven += 1
            self.wrong = self.mistaken(messages, since_ms)
        return complete

    def ask(self, messages: list[Message], since_ms: int) -> bool:
        """Returns whether the gate (the check between two steps of an upgrade), with these
        messages, reports the host as proven healthy since `since_ms`. Returns False if the messages
        do not mention the host yet."""
        evidence = self.fold(messages)
        self.faults.blind(evidence)
        if not evidence.hosts:
            return False
        now_ms = self.own_clock_ms()
        policy = replace(POLICY, lateness_ms=self.lateness_ms, bucket_ms=BUCKET_MS)
        found: list[Proof] = proofs(evidence, policy, ["host"], since_ms, now_ms)
        return not any(proof.is_short for proof in found)

    def mistaken(self, messages: list[Message], since_ms: int) -> str | None:
        first = since_ms - since_ms % BUCKET_MS
        for bucket in range(first, self.own_clock_ms(), BUCKET_MS):
            is_due = bucket + BUCKET_MS + self.lateness_ms <= self.own_clock_ms()
            wrong = self.falsehood(bucket, messages) if is_due or bucket == first else None
            if wrong is not None:
                return f"proven since {since_ms}, but {wrong}"
        return None


@promise("6 gate", "clocks gate")
@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(clock_steps=True),
        Faults(lost_rows=True, doubled_rows=True),
        Faults(deletes=True, lost_rows=True),
        Faults(deletes=True, latenesses=True),
        Faults(lost_messages=True, lost_rows=True),
        Faults(restores=True, old_files=False),
        Faults(clocks=True, lost_rows=True),
        Faults(clocks=True, clock_steps=True),
    ],
    ids=lambda faults: "+".join(
        name for name in Faults.__dataclass_fields__ if getattr(faults, name) is True
    ),
)
def test_a_host_is_never_proven_wrongly(faults: Faults, seeds: Seeds) -> None:
    """An upgrade asks the gate before it continues with further hosts. The gate never reports a
    host as proven healthy while a row of one of the host's lines is missing. This is so even with
    late lines, changed clocks, lost rows and messages, deleted files and restored states."""
    proven = 0
    for seed in seeds(RUNS):
        world = Gate(seed, faults)
        for _ in range(faults.steps):
            world.step()
            assert not world.wrong, f"seed {seed}: {world.wrong}"
        proven += world.proven
    assert proven > 0, "the schedules reach a proof"


def test_a_host_is_proven_in_the_end(seeds: Seeds) -> None:
    """When all lines are read, counted and loaded, and the audit's waiting time has passed, the
    gate (the check between two steps of an upgrade) reports the host as proven healthy."""
    for seed in seeds(RUNS):
        world = Gate(seed, Faults())
        for _ in range(world.faults.steps):
            world.step()
        world.finish()
        assert not world.wrong, f"seed {seed}: {world.wrong}"
        assert world.ask(world.delivered, (world.now - 60) * SECOND), f"seed {seed}"
