"""The agent's deltas, seals and heartbeats contain two bounds. The first says how much older than
the last seal a lost line may be. The second says how far ahead of the agent's clock a line's time
may be. The audit judges with these bounds. If the audit's own settings are larger, it uses its own
settings."""

from __future__ import annotations

from skidway.agent.batches.press import AHEAD_MS_MAX
from skidway.audit.counts import bucket
from skidway.audit.topic.messages import Announcement, Bounds, Seal
from skidway.audit.topic.notes import Note
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"


@promise("6 lateness")
def test_each_message_says_what_the_agent_takes_event_times_to_be() -> None:
    """Deltas, seals and heartbeats contain two bounds: the agent's setting `lateness.ms`, and the
    limit by which a line's own time may be ahead of the agent's clock."""
    world = World(settings(raw(), lateness_ms=5_000))
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    said = [m.sender.bounds for m in world.published if not isinstance(m, Announcement | Note)]
    assert set(said) == {Bounds(5_000, AHEAD_MS_MAX)}


@promise("6 lateness")
def test_a_loss_begins_with_the_bucket_of_the_last_seal() -> None:
    """When the agent declares a loss, the loss begins with the bucket of the last seal's time. A
    lost line may be older than this time by up to the agent's setting `lateness.ms`. The agent does
    not subtract this lateness from the time, because the audit subtracts it."""
    world = World(settings(raw()))
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    sealed = [t.sealed_until for m in world.of(Seal) for t in m.topics]
    world.files.append(A, b"2\n")
    world.files.delete(A)
    world.start()
    world.settle(5)
    (loss,) = world.losses()
    assert loss.from_bucket == bucket.start_of(sealed[-1], world.settings.audit_bucket_ms)
