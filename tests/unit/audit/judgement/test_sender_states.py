"""Tests the states of the programs that send counts: good, silent, late or retired."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.sender_states import SenderState, sender_states
from skidway.audit.topic.messages import Delta, Heartbeat, Range, Sender, Tier
from support.audit_senders import BROKER, LOGS
from support.fold import Fold

HOUR = 3_600_000
LOADED = Sender(Tier.HDFS, "dc1", "/lake/dc1.logs", "l1", 1)
QUIET = Sender(Tier.HDFS, "dc1", "/lake/dc1.quiet", "l1", 1)
POLICY = Policy(silence_ms=180_000)


def states(policy: Policy, now_ms: int) -> dict[str, SenderState]:
    said = [
        Delta(BROKER, 1, 0, ranges=(Range(LOGS, 0, 0, 5),)),
        Heartbeat(BROKER, 1, 20 * HOUR),
        Delta(LOADED, 1, 10 * HOUR, ranges=(Range(LOGS, 0, 0, 5),)),
        Delta(QUIET, 1, HOUR, ranges=(Range(LOGS, 0, 0, 5),)),
    ]
    return {x.key.producer: x for x in sender_states(Fold(said).evidence(), policy, now_ms)}


def test_a_loader_is_not_silent_between_its_loads() -> None:
    """A loader sends no heartbeats, so it does not count as silent between its loads. A counter
    that sends no heartbeats counts as silent."""
    found = states(POLICY, 21 * HOUR)
    assert (found["/lake/dc1.logs"].words, found["/lake/dc1.logs"].status) == (
        "loaded last at 1970-01-01 10:00:00Z", "complete"
    )  # fmt: skip
    assert (found["broker-dc1"].words, found["broker-dc1"].status) == (
        "silent for 60 minutes", "incomplete"
    )  # fmt: skip


@pytest.mark.parametrize(("hours", "late"), [(34, False), (35, True)])
def test_an_output_is_late_by_the_schedule_that_the_audit_is_told(hours: int, late: bool) -> None:
    """A setting of the audit says how often the loader runs. An output is late if no topic was
    loaded into this output within the time that this setting allows. One topic without a recent
    load does not make the output late, because the loader does not load a topic that has no new
    records."""
    found = states(replace(POLICY, loads_every_ms=24 * HOUR), hours * HOUR)
    for name in ("/lake/dc1.logs", "/lake/dc1.quiet"):
        assert found[name].words.startswith("late: ") is late
        assert found[name].status == ("incomplete" if late else "complete")


def test_what_is_retired_is_called_so_and_is_neither_silent_nor_late() -> None:
    """The settings list retired counters and outputs by the names that reports print, for example
    `broker dc1`. The audit calls them retired, and never silent or late."""
    policy = replace(POLICY, loads_every_ms=HOUR, retired_places=("hdfs /lake", "broker dc1"))
    assert {(x.words, x.status) for x in states(policy, 99 * HOUR).values()} == {
        ("retired", "none")
    }
