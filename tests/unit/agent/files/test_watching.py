import select
from pathlib import Path

from watchdog.events import DirCreatedEvent, FileModifiedEvent, FileMovedEvent

from skidway.agent.files.patterns import Pattern
from skidway.agent.files.watching import PATHS_MAX, RATE_MAX, REST_S, Inbox, Watch


def readable(inbox: Inbox) -> bool:
    return bool(select.select([inbox], [], [], 0)[0])


def test_paths_are_handed_over_once_and_wake_the_loop() -> None:
    """The inbox is a set of paths of changed files: a thread of watchdog fills it, and the agent's
    loop empties it. The loop gets a file's path once, however many file system events the file has.
    If a file is renamed, the loop gets the old and the new path. The descriptor on which the loop
    waits is readable until the loop has taken all paths."""
    inbox = Inbox()
    assert not readable(inbox)
    for _ in range(5):
        inbox.dispatch(FileModifiedEvent("/log/a"))
    inbox.dispatch(FileMovedEvent("/log/a", "/log/b"))
    assert readable(inbox)
    assert inbox.take() == (["/log/a", "/log/b"], False, 6)
    assert not readable(inbox)
    assert inbox.take() == ([], False, 0)
    inbox.close()


def test_too_many_paths_mean_everything() -> None:
    """If too many paths have changed, or if a directory was created, the agent's loop looks at all
    files."""
    inbox = Inbox()
    for index in range(PATHS_MAX + 1):
        inbox.dispatch(FileModifiedEvent(f"/log/{index}"))
    paths, everything, _ = inbox.take()
    assert (len(paths), everything) == (PATHS_MAX, True)
    inbox.dispatch(DirCreatedEvent("/log/d"))
    assert inbox.take()[:2] == ([], True)
    inbox.close()


def test_the_watch_rests_when_events_come_too_fast(tmp_path: Path) -> None:
    """If too many file system events arrive, the agent stops watching directories for a while,
    because handling so many events costs more than finding the new lines without events."""
    watch = Watch([Pattern(f"{tmp_path}/*.log"), Pattern("/nowhere/at/all/*.log")])
    watch.start()
    assert watch._watched.keys() == {str(tmp_path)}
    watch.mind(0, now=0.0)
    watch.mind(int(RATE_MAX) * 3, now=1.1)
    assert watch._watched == {}
    watch.mind(0, now=2.0)
    assert watch._watched == {}
    watch.mind(0, now=1.2 + REST_S)
    assert watch._watched.keys() == {str(tmp_path)}
    watch.stop()


def test_directories_that_links_lead_to_are_watched(tmp_path: Path) -> None:
    """As long as a link points into a directory, the agent watches this directory. Writes to the
    link's target cause events only in this directory."""
    (tmp_path / "links").mkdir()
    (tmp_path / "pods").mkdir()
    watch = Watch([Pattern(f"{tmp_path}/links/*.log")])
    watch.start()
    watch.follow(frozenset({f"{tmp_path}/pods", f"{tmp_path}/links"}))
    (tmp_path / "pods" / "0.log").write_text("x\n")
    assert select.select([watch.inbox], [], [], 30)[0]
    assert f"{tmp_path}/pods/0.log" in watch.inbox.take()[0]
    watch.follow(frozenset())
    assert watch._watched.keys() == {f"{tmp_path}/links"}
    watch.stop()
