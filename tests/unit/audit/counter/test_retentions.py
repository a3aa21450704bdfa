"""Tests the notes (audit messages on which no verdict depends) in which a counter reports how long
the brokers keep the records that it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skidway.audit.counter.retentions import ASK_AGAIN_S, TELL_EVERY_S, Retentions
from skidway.audit.topic import notes
from skidway.audit.topic.messages import Sender, Tier
from skidway.audit.topic.retention import retention_of
from skidway.errors import Unreachable
from skidway.kafka.source import Source
from support.clock import ManualClock

COUNTER = Sender(Tier.MIRROR, "offline", "mirror-offline", "audit1", 3)
LOGS, HELD = (Source("dc1", "cid", name, f"{name}-id") for name in ("logs", "held"))


class Brokers:
    """Stands for the brokers. `settings` contains the config of each topic. While `is_away` is
    true, the brokers cannot be reached."""

    def __init__(self) -> None:
        self.is_away = False
        self.settings = {
            "dc1.logs": {"retention.ms": "5000"},
            "dc1.held": {"retention.ms": "5000", "retention.hold": "skidway-loader"},
        }

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        if self.is_away:
            raise Unreachable("nobody answers")
        return {name: self.settings[name] for name in names}


def test_a_counter_tells_the_retention_under_the_names_of_the_sources() -> None:
    """The counter's note contains the retention time of each topic, under the name that the topic
    has in the source cluster. The note leaves out a topic whose records a consumer holds
    (`retention.hold`), because `retention.ms` does not say when they expire. The counter sends the
    next note after five minutes (TELL_EVERY_S)."""
    clock, brokers = ManualClock(), Brokers()
    topics = {"dc1.logs": LOGS, "dc1.held": HELD}
    made = Retentions(brokers, COUNTER, clock)  # type: ignore[arg-type]
    value = made.due(17, topics)
    assert value is not None
    note = notes.decode(value)
    assert (note.producer, note.cluster, note.rank) == (
        "mirror-offline", "offline", (3, 17, clock.time_ms()),
    )  # fmt: skip
    assert retention_of(note) == {LOGS: 5_000}
    clock.advance(TELL_EVERY_S - 1)
    assert made.due(17, topics) is None
    clock.advance(1)
    assert made.due(17, topics) is not None


def test_brokers_that_are_away_are_asked_again_later() -> None:
    """If the brokers do not answer the question for the topics' retention times, the counter makes
    no note. It asks the brokers again after 30 seconds (ASK_AGAIN_S), and then reports the
    retention times. If the counter counts no topic, it does not ask the brokers."""
    clock, brokers = ManualClock(), Brokers()
    topics: dict[str, Source] = {}
    made = Retentions(brokers, COUNTER, clock)  # type: ignore[arg-type]
    assert made.due(1, topics) is None
    topics["dc1.logs"], brokers.is_away = LOGS, True
    assert made.due(1, topics) is None
    brokers.is_away = False
    assert made.due(1, topics) is None
    clock.advance(ASK_AGAIN_S)
    value = made.due(1, topics)
    assert value is not None
    assert retention_of(notes.decode(value)) == {LOGS: 5_000}
