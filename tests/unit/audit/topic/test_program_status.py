"""Tests the notes in which programs say how they were started and what they wait for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from skidway.audit.counter.brokers import status_with_brokers
from skidway.audit.evidence.ledger import ledger_of
from skidway.audit.topic import notes
from skidway.audit.topic.messages import Sender, Tier
from skidway.audit.topic.program_status import (
    OBSTACLES_MAX,
    BrokerStatus,
    Kind,
    Obstacle,
    ProgramStatus,
    body_of,
    document_of,
    status_of,
)
from skidway.audit.topic.status_notes import ASK_EVERY_S, TELL_EVERY_S, StatusNotes
from skidway.errors import Unreachable
from skidway.invocation import Invocation
from support.clock import ManualClock

COUNTER = Sender(Tier.MIRROR, "offline", "mirror-offline", "audit1", 3)
AWAY = Obstacle(Kind.CLUSTER, "dc1", "refused", 1_000)
BROKER = BrokerStatus("b1:9092", "b1", Invocation(verb="broker run"), (AWAY,), ("dc1",))
STATUS = ProgramStatus(Invocation(unit="x"), (AWAY,), (BROKER,), "MIRROR")


def test_a_status_is_told_when_it_changes_and_from_time_to_time() -> None:
    """A sender tells its status at once, again when it has changed, and otherwise once in five
    minutes, because messages expire. The ledger keeps the newest status of each sender."""
    clock, present = ManualClock(), [STATUS]
    made = StatusNotes(COUNTER, clock)
    told = [made.told(present[0], 7)]
    for _ in range(3):
        assert not made.is_due
        clock.advance(ASK_EVERY_S)
        assert made.is_due
        assert made.told(present[0], 7) is None
    present[0] = replace(STATUS, obstacles=())
    clock.advance(ASK_EVERY_S)
    told.append(made.told(present[0], 7))
    clock.advance(TELL_EVERY_S)
    told.append(made.told(present[0], 7))
    values = [x for x in told if x is not None]
    assert [status_of(notes.decode(x)) for x in values] == [STATUS, present[0], present[0]]
    ledger = ledger_of(reversed(values))
    assert [status for _, status in ledger.evidence().statuses.told] == [present[0]]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"invocation": 7, "obstacles": {"a": 1}, "brokers": "b1"},
        {"obstacles": [1, {"name": "a"}], "brokers": [None]},
    ],
)
def test_parts_of_another_form_are_left_out(body: dict[str, object]) -> None:
    """A reader leaves out parts of a status that have another form, as a newer version may write
    them."""
    note = notes.Note("status", "7", "web1", "dc1", 1, 1, 1, body)
    assert status_of(note) == ProgramStatus()


def test_a_status_is_bounded() -> None:
    """A note about ten thousand obstacles has a size that the audit accepts."""
    many = tuple(Obstacle(Kind.OTHER, str(n), "x" * 10_000) for n in range(10_000))
    note = notes.Note("status", "7", "web1", "dc1", 1, 1, 1, body_of(ProgramStatus(obstacles=many)))
    assert len(status_of(notes.decode(notes.encode(note))).obstacles) == OBSTACLES_MAX


class Brokers:
    """Stands for the client of a cluster."""

    def __init__(self, told: dict[str, str] | None) -> None:
        self.told = told

    def config_of_brokers(self, key: str) -> dict[str, str]:
        assert key == "skidway.status"
        if self.told is None:
            raise Unreachable("nobody answers")
        return self.told


def test_a_counter_tells_what_its_brokers_say() -> None:
    """A counter tells the audit what each broker of its cluster says about itself. A broker whose
    answer cannot be read says nothing. If the cluster does not answer, there is nothing to tell."""
    told = {"b1:9092": json.dumps(document_of(BROKER)), "b2:9092": "no JSON"}
    found = status_with_brokers(Brokers(told), Tier.MIRROR)  # type: ignore[arg-type]
    assert found is not None
    assert found.brokers == (BROKER, BrokerStatus("b2:9092", ""))
    assert status_with_brokers(Brokers(None), Tier.MIRROR) is None  # type: ignore[arg-type]
