"""What an agent cannot read is named in its report, in its state and in its log. A source of which
no file was ever found makes the agent's seals say so."""

from __future__ import annotations

import pytest

from skidway.agent.loop import source_reports
from skidway.audit.topic.messages import Seal
from skidway.audit.topic.notes import Note
from skidway.audit.topic.source_report import KIND, FilelessSource, SourceReport, report_of
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw("logs", "/log/*.log", exclude=["/log/b*"])))


def told(world: World) -> SourceReport:
    """Returns the newest report that the agent has published."""
    notes = [note for note in world.of(Note) if note.kind == KIND]
    return report_of(notes[-1].body)


def sealed(world: World) -> int:
    """Returns the time up to which the newest seal vouches for lines of the topic."""
    return world.of(Seal)[-1].topics[0].sealed_until


@promise("6 source without files")
def test_a_source_that_never_had_a_file_vouches_for_nothing(world: World) -> None:
    """While no file has matched a source since it was configured, the seals of its topic say so,
    with the time since when. When a file appears, they vouch for all lines up to now. If the file
    is gone later, they go on to do so, and the source is only named."""
    began_ms = world.clock.time_ms()
    world.start()
    world.settle(30, 1)
    since_ms = -sealed(world)
    assert began_ms <= since_ms <= began_ms + 1_000
    assert told(world).fileless == (FilelessSource("logs", ("/log/*.log",), since_ms),)
    world.kill()
    world.start()
    world.settle(30, 1)
    assert sealed(world) == -since_ms
    world.files.append(A, b"1\n")
    world.settle(30, 1)
    assert sealed(world) > since_ms
    assert told(world) == SourceReport()
    world.files.delete(A)
    world.settle(30, 1)
    world.kill()
    world.start()
    world.settle(30, 1)
    assert sealed(world) > since_ms + 100_000
    assert told(world).fileless == (FilelessSource("logs", ("/log/*.log",), None),)


@promise("6 source without files")
@pytest.mark.parametrize("name", ["/log/b.log", "/log/x/a.log", "/log/.a.log"])
def test_a_file_that_the_source_leaves_out_is_no_file_of_it(world: World, name: str) -> None:
    """A file that `exclude` leaves out, or that no pattern means, does not count as a file of the
    source."""
    world.files.append(name, b"1\n")
    world.start()
    world.settle(30, 1)
    assert sealed(world) < 0


def test_an_optional_source_may_have_no_file(world: World) -> None:
    """If a source says `optional: true`, its files may be missing: the seals vouch for its lines,
    and nobody names it."""
    world.settings = settings(raw("logs", optional=True))
    world.start()
    world.settle(30, 1)
    assert sealed(world) > 0
    assert world.agent.source_reports.report == SourceReport()


@promise("6 source without files")
def test_a_source_that_is_no_longer_optional_is_missed_from_then_on(world: World) -> None:
    """If a source without files was optional and is so no more, what the agent vouched for before
    stays so."""
    world.settings = settings(raw("logs", optional=True))
    world.start()
    world.settle(30, 1)
    vouched_ms = sealed(world)
    world.kill()
    world.settings = settings(raw("logs"))
    world.start()
    world.settle(30, 1)
    assert -sealed(world) > vouched_ms > 0


@promise("6 unreadable")
def test_a_path_that_was_repaired_while_no_agent_ran_is_told(world: World) -> None:
    """After its start, an agent tells what it can read now, even if that is everything: an earlier
    process may have told a path that it could not read."""
    world.files.append(A, b"1\n").unreadable = True
    world.start()
    world.settle(30, 1)
    assert told(world).unread
    world.kill()
    world.files.by_path[A].unreadable = False
    world.start()
    world.settle(30, 1)
    assert told(world) == SourceReport()


def test_what_cannot_be_read_is_told_again(world: World) -> None:
    """While an agent cannot read a path, it tells so every hour, because messages expire. It tells
    only once that it can read everything."""
    world.files.append(A, b"1\n").unreadable = True
    world.start()
    world.settle(30, 1)
    world.clock.advance(2 * source_reports.TELL_AGAIN_S)
    world.settle(30, 1)
    assert len([x for x in world.of(Note) if x.kind == KIND]) == 2
    world.files.by_path[A].unreadable = False
    world.settle(30, 1)
    world.clock.advance(2 * source_reports.TELL_AGAIN_S)
    world.settle(30, 1)
    assert len([x for x in world.of(Note) if x.kind == KIND]) == 3


def test_a_changed_source_begins_anew(world: World) -> None:
    """If the patterns of a source change, no file has matched the source since then. So a wrong new
    pattern is noticed, although the old one had files."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(30, 1)
    world.kill()
    world.settings = settings(raw("logs", "/logs/*.log"))
    began_ms = world.clock.time_ms()
    world.start()
    world.settle(30, 1)
    assert began_ms <= -sealed(world) <= began_ms + 1_000


def test_a_file_that_the_state_knows_has_matched(world: World) -> None:
    """A state of a version that did not note matches still shows that a file matched a source, if
    it knows such a file."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(30, 1)
    world.kill()
    world.connection.execute("DELETE FROM meta WHERE key LIKE 'match %'")
    world.files.delete(A)
    world.start()
    world.settle(3, 1)
    assert [each.since_ms for each in world.agent.tracker.matches.fileless] == [None]


def test_it_is_logged_once_and_again_daily(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent logs a source without files once, and again every day. The metric counts the
    sources of each topic."""
    logged: list[str] = []
    counts: list[list[str]] = []
    events = source_reports.events
    monkeypatch.setattr(
        events, "source_without_files", lambda topic, _paths, _since: logged.append(topic)
    )
    monkeypatch.setattr(
        events, "sources_without_files", lambda _topics, found: counts.append([*found])
    )
    world.start()
    world.settle(30, 1)
    assert (logged, counts[-1]) == (["logs"], ["logs"])
    world.clock.advance(86_400)
    world.settle(30, 1)
    assert logged == ["logs", "logs"]


def test_a_path_that_holds_nothing_is_logged_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path at which the agent reads nothing, and which holds no seal, is logged once."""
    logged: list[tuple[str, str, str]] = []
    monkeypatch.setattr(source_reports.events, "not_read", lambda *said: logged.append(said))
    world.files.link("/log/dead.log", "/nowhere")
    world.start()
    world.settle(30, 1)
    assert logged == [("logs", "/log/dead.log", "it is a link that leads nowhere")]


@promise("6 unreadable")
def test_a_path_that_cannot_be_read_is_told_from_afar(world: World) -> None:
    """The report on the audit topic names each path that holds a seal, with the reason, also if the
    host has another name than its own. It is empty again when the path can be read."""
    world.files.append(A, b"1\n").unreadable = True
    world.start()
    world.settle(30, 1)
    (found,) = told(world).unread
    assert (found.topic, found.path, found.reason, found.holds) == (
        "logs", A, "Permission denied", True
    )  # fmt: skip
    assert world.of(Seal)[-1].topics[0].sealed_until == 0
    world.files.by_path[A].unreadable = False
    world.settle(30, 1)
    assert told(world) == SourceReport()
    assert sealed(world) > 0
