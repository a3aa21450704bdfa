"""Tests what counts as wrong at present, whichever bucket it concerns, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import Reading
from skidway.audit.explanation.next_command import Access
from skidway.audit.explanation.present_cause import PresentCause
from skidway.audit.explanation.present_causes import present_causes
from skidway.audit.explanation.stopped_programs import MISSED_MS
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.roster import Roster
from skidway.audit.topic.decisions import Retirement
from skidway.audit.topic.messages import Heartbeat, Message, Range, Sender, Tier
from skidway.audit.topic.source_report import SourceReport, UnreadPath
from support.audit_senders import AGENT, BROKER, LOGS
from support.fold import Fold
from support.one_bucket import COUNTERS, HDFS, MIRROR, NOW, POLICY, count, delta, good

LATE = NOW + MISSED_MS
OFTEN = replace(POLICY, loads_every_ms=1_000)
CLOSED = UnreadPath("logs", "/log/a.log", "Permission denied", holds=True)
OTHER = replace(BROKER, producer="broker-other", host="c9")
SECOND = Sender(Tier.AGENT, "dc1", "8", "web2", 1)


def found(
    *more: Message, policy: Policy = POLICY, compared: bool = True, lag_ms: int = 0,
    change: Callable[[Evidence], object] = lambda _: None,
) -> list[PresentCause]:  # fmt: skip
    """Returns the present causes of a good bucket and further messages. compared: whether the
    audit has compared the clocks of the counters with its own. lag_ms: by how much they are slow.
    """
    evidence = Fold([*good(), *more]).evidence()
    if compared:
        evidence.readings |= {(x.tier, x.producer): Reading(0, lag_ms) for x in COUNTERS}
    change(evidence)
    now = max(evidence.heard_ms(x[:2]) for x in evidence.senders)
    return present_causes(evidence, policy, now, Access())


def beats(at: int, *senders: Sender) -> list[Message]:
    return [Heartbeat(x, 1, at) for x in senders]


ALL_WELL = beats(NOW, AGENT, *COUNTERS)
STOPPED = [*ALL_WELL, *beats(LATE + 1, AGENT, MIRROR, HDFS)]


def test_a_counter_that_sends_nothing_beside_others_has_stopped() -> None:
    """A counter that has sent nothing for 30 s, while others of its cluster did, has stopped. It is
    told with the time, and with the command that starts it on its host."""
    assert found(*ALL_WELL) == []
    assert found(*ALL_WELL, *beats(LATE, AGENT, MIRROR, HDFS)) == []
    (said,) = found(*STOPPED)
    assert (said.cause, said.host, said.clusters) == (Cause.COUNTER_STOPPED, "c1", ("dc1",))
    assert said.words == (
        "Nothing has come from the broker counter broker-dc1 since 1970-01-01 00:11:15Z"
    )
    assert said.command.line == "systemctl start skidway-audit-count@dc1"
    (said,) = found(*ALL_WELL, *beats(LATE + 1, AGENT, BROKER))
    assert (said.cause, said.host, said.clusters) == (Cause.COUNTER_STOPPED, "c2", ())


@pytest.mark.parametrize(
    ("more", "options"),
    [
        pytest.param(beats(LATE + 1, MIRROR, HDFS), {}, id="nothing of its cluster arrives"),
        pytest.param(
            beats(LATE + 1, AGENT, MIRROR), {"lag_ms": 40_000}, id="its clock is known to be slow"
        ),
        pytest.param(
            beats(LATE + 1, AGENT, MIRROR), {"compared": False}, id="its clock may be slow"
        ),
        pytest.param(
            [*beats(LATE + 1, AGENT, MIRROR), delta(OTHER, 1), *beats(LATE, OTHER)], {},
            id="another counter took its place",
        ),
        pytest.param(
            [*beats(LATE + 1, AGENT, MIRROR), Retirement(1, NOW, "root", "", "broker dc1")],
            {}, id="it is retired",
        ),
        pytest.param(
            beats(LATE + 1, AGENT, MIRROR),
            {"policy": replace(POLICY, tiers=(Tier.AGENT, Tier.MIRROR, Tier.HDFS))},
            id="nobody needs its tier",
        ),
    ],
)  # fmt: skip
def test_a_counter_that_need_not_be_heard_has_not_stopped(
    more: list[Message], options: dict[str, object]
) -> None:
    """If another reason is as likely, or if nobody waits for the counter, it is not told."""
    assert found(*ALL_WELL, *more, **options) == []  # type: ignore[arg-type]


def test_an_output_that_is_late_is_told_while_records_wait() -> None:
    """With `loads.every.ms`, an output is told as late while another tier has more offsets of a
    topic. If nobody writes, no load is missing."""
    assert found(*ALL_WELL, *beats(NOW + 2_000, AGENT, BROKER), policy=OFTEN) == []
    waiting = delta(MIRROR, 2, count(0), ranges=(Range(LOGS, 0, 10, 12),))
    said = found(*ALL_WELL, waiting, *beats(NOW + 2_000, AGENT), policy=OFTEN)
    assert [(x.cause, x.host) for x in said] == [(Cause.LOAD_NOT_RUN, "l1")]
    assert said[0].words == (
        "Nothing has been loaded into /logs since 1970-01-01 00:11:15Z, and records wait for a load"
    )
    assert said[0].command.line == "systemctl start skidway-loader"
    assert found(*ALL_WELL, waiting, *beats(NOW + 2_000, AGENT)) == []


@pytest.mark.parametrize("exempt", ["hdfs /logs", "hdfs", "cluster offline"])
def test_a_retired_output_is_not_late(exempt: str) -> None:
    """Nobody waits for loads into a retired output."""
    waiting = delta(MIRROR, 2, count(0), ranges=(Range(LOGS, 0, 10, 12),))
    policy = replace(OFTEN, retired_places=(exempt,))
    assert found(*ALL_WELL, waiting, *beats(NOW + 2_000, AGENT), policy=policy) == []


def test_paths_that_hold_seals_are_told_as_one_cause() -> None:
    """The first path that an agent cannot read is told with topic, host and command, and how many
    more there are. A path that holds nothing is no cause."""

    def unread(evidence: Evidence) -> None:
        pipe = UnreadPath("logs", "/log/0", "it is a FIFO", holds=False)
        evidence.source_reports |= {
            7: SourceReport((pipe, CLOSED, replace(CLOSED, topic="auth", path="/log/b b"))),
            8: SourceReport((CLOSED,)),
        }

    (said,) = found(*ALL_WELL, *beats(NOW, SECOND), delta(SECOND, 1), change=unread)
    assert said.words == (
        "auth on web1: the agent cannot read /log/b b: Permission denied (and 2 more paths)"
    )
    assert str(said.command) == "on web1: ls -ld '/log/b b'"
    assert said.agents == {"7", "8"}


@pytest.mark.parametrize("case", ["silent", "retired", "another topic"])
def test_only_agents_that_are_waited_for_tell_paths(case: str) -> None:
    """A note of a silent agent is not about the present; nobody waits for a retired host; and if
    only some topics are asked for, the paths of others are not told."""

    def unread(evidence: Evidence) -> None:
        evidence.source_reports[7] = SourceReport((CLOSED,))
        evidence.asked = frozenset({"other"}) if case == "another topic" else None

    policy = replace(POLICY, roster=Roster([], ["web1"] if case == "retired" else []))
    later = NOW + POLICY.silence_ms + 1
    more = [*beats(NOW, AGENT), *beats(later, *COUNTERS)] if case == "silent" else ALL_WELL
    told = [x.cause for x in found(*more, policy=policy, change=unread)]
    assert Cause.FILE_UNREADABLE not in told


def test_a_cluster_that_is_away_does_not_hide_what_lies_elsewhere() -> None:
    """The counter of the mirror has stopped, too, if the source does not answer: only what lies in
    the cluster follows from it."""
    retired = replace(POLICY, retired_places=("cluster dc1",))
    silent = NOW + POLICY.silence_ms + 1
    quiet = [*beats(NOW, AGENT, BROKER), *beats(silent, MIRROR, HDFS)]
    assert [x.cause for x in found(*quiet)] == [Cause.CLUSTER_SILENT]
    assert found(*quiet, policy=retired) == []
