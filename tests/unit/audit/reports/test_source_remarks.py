"""What a report says about sources without files, and about paths that agents cannot read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.judgement.hosts import survey
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import host_report
from skidway.audit.reports.source_remarks import SHOWN, unread
from skidway.audit.topic.messages import Heartbeat
from skidway.audit.topic.source_report import (
    FilelessSource,
    SourceReport,
    UnreadPath,
    body_of,
    report_of,
)
from support.audit_senders import AGENT
from support.fold import Fold
from support.one_bucket import NOW, POLICY, START, seal
from support.promises import promise

CLOSED = UnreadPath("logs", "/log/app.log", "Permission denied", holds=True)
PIPE = UnreadPath("logs", "/log/pipe", "it is a FIFO, and is not read", holds=False)
NEVER = FilelessSource("logs", ("/log/auth.log",), START)
BEFORE = FilelessSource("logs", ("/log/old.log",), None)
REPORT = SourceReport((CLOSED, PIPE), (NEVER, BEFORE))


def evidence(until: int, report: SourceReport | None) -> Evidence:
    found = Fold([seal(AGENT, 1, until, 0), Heartbeat(AGENT, 1, NOW)]).evidence()
    if report is not None:
        found.source_reports[7] = report
    return found


@promise("6 source without files")
def test_a_topic_without_a_record_is_told() -> None:
    """A source that has never matched a file is told with topic, pattern, host and time, although
    no bucket has a record. Its topic is unknown. A source that matched a file before is told, too,
    and changes nothing."""
    found = unread(evidence(-START, REPORT), POLICY, NOW)
    held = (
        "logs on web1: the agent cannot read /log/app.log: Permission denied, and does not seal the"
        " topic."
    )
    assert found.beside == [
        "dc1.logs is unknown: source /log/auth.log on web1 has matched no file since"
        " 1970-01-01 00:10:00Z.",
        "If such a log may be missing, set optional: true for its source.",
        "logs on web1: the agent cannot read /log/pipe: it is a FIFO, and is not read.",
        "logs on web1: source /log/old.log matches no file now, and did before.",
    ]
    assert found.sentences == [held, *found.beside]
    assert len(found.fileless) == 1


@pytest.mark.parametrize(
    ("report", "lacks"),
    [
        (SourceReport(), False),
        (SourceReport((PIPE,)), False),
        (SourceReport((PIPE, CLOSED)), True),
        (SourceReport((replace(CLOSED, topic="never-sealed"),)), True),
        (SourceReport((), (NEVER,)), True),
        (SourceReport((), (BEFORE,)), True),
    ],
)
def test_all_hosts_report_never_stands_alone_if_a_log_is_not_read(
    report: SourceReport, *, lacks: bool
) -> None:
    """Beside "all hosts report" stand the hosts that lack a log: whose agent cannot read one, also
    if nothing of its topic was ever sealed, or has a source without files. A FIFO is no log. The
    sentence about the hosts is not that of a fleet in which all is well."""
    given = evidence(-START if NEVER in report.fileless else NOW, report)
    states, found = survey(given, POLICY, NOW), unread(given, POLICY, NOW)
    assert found.hosts == (("web1",) if lacks else ())
    but = ", but not all logs are read on web1" if lacks else ""
    assert host_report.sentence(states, found.hosts) == f"All 1 expected hosts report{but}."
    assert (host_report.status(states, found.hosts) is Status.COMPLETE) is not lacks
    assert len(found.sentences) >= len(report.unread) + len(report.fileless)


def test_hosts_that_lack_a_log_are_named_beside_those_that_are_missed() -> None:
    """If a host is silent, those that lack a log are named in a sentence of their own; only the
    first are named."""
    late = NOW + POLICY.silence_ms + 1
    states = survey(evidence(NOW, None), POLICY, late)
    said = host_report.sentence(states, [f"app{n}" for n in range(5)])
    assert said == (
        "1 of 1 expected hosts does not report (silent: web1)."
        " Not all logs are read on app0, app1, app2 and 2 more."
    )


def test_the_seal_decides_and_the_note_only_helps() -> None:
    """Whether a topic is unknown follows from the seal alone. Without a note, the pattern is not
    named. If the newest seal vouches for lines, a note does not make the topic unknown."""
    (said, _) = unread(evidence(-START, None), POLICY, NOW).sentences
    assert said.startswith("dc1.logs is unknown: a source on web1 has matched no file since")
    assert unread(evidence(NOW, REPORT), POLICY, NOW).fileless == ()


def test_silent_agents_and_other_topics_say_nothing() -> None:
    """A note of a silent agent is not about the present. If a report is about some topics, it says
    nothing about others."""
    late = NOW + POLICY.silence_ms + 1
    found = unread(evidence(NOW, REPORT), POLICY, late)
    assert (found.held, found.others) == ((), ())
    found = unread(evidence(-START, REPORT), POLICY, NOW, lambda x: x.topic == "other")
    assert found.sentences == []


def test_few_are_named() -> None:
    """A report names only the first paths, and says how many more there are."""
    paths = tuple(UnreadPath("logs", f"/log/{n}", "closed", holds=True) for n in range(SHOWN + 3))
    said = unread(evidence(NOW, SourceReport(paths)), POLICY, NOW).sentences
    assert len(said) == SHOWN + 1
    assert said[-1] == "Agents name 3 more such paths and sources."


def test_a_note_says_what_it_was_made_of() -> None:
    """The body of a note gives the report back. Parts that have another form are left out."""
    assert report_of(body_of(REPORT)) == REPORT
    body = {"unread": [3, {"topic": "a"}], "fileless": [{"paths": [1]}, None], "more": "x"}
    assert report_of(body) == SourceReport()
    assert report_of({"unread": "x"}) == SourceReport()
