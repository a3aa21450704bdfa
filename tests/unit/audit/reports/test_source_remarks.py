"""What a report says about sources without files, and about paths that agents cannot read."""

from __future__ import annotations

from skidway.audit.evidence.evidence import Evidence
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
