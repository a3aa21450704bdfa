import os
import random
import select
import shutil
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from watchdog.events import DirCreatedEvent, FileModifiedEvent

from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.watching import PATHS_MAX, RATE_MAX, REST_S, Inbox, Watch


def readable(inbox: Inbox) -> bool:
    return bool(select.select([inbox], [], [], 0)[0])


def test_paths_are_handed_over_once_and_wake_the_loop() -> None:
    """The inbox is a set of paths of changed files: a thread of watchdog fills it, and the agent's
    loop empties it. The loop gets a file's path once, however many file system events the file has.
    The descriptor on which the loop waits is readable until the loop has taken all paths."""
    inbox = Inbox()
    assert not readable(inbox)
    for _ in range(5):
        inbox.dispatch(FileModifiedEvent("/log/a"))
    inbox.dispatch(FileModifiedEvent("/log/b"))
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
    assert watch._watched == {str(tmp_path)}
    watch.mind(0, now=0.0)
    watch.mind(int(RATE_MAX) * 3, now=1.1)
    assert watch._watched == set()
    watch.mind(0, now=2.0)
    assert watch._watched == set()
    watch.mind(0, now=1.2 + REST_S)
    assert watch._watched == {str(tmp_path)}
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
    watch.mind(0, now=0.0)
    watch.follow(frozenset())
    assert watch.mind(0, now=2.0)
    assert watch._watched == {f"{tmp_path}/links"}
    watch.stop()


def heard(watch: Watch, path: Path) -> bool:
    """Whether the watch tells of a change at a path. It may say that everything has changed."""
    while select.select([watch.inbox], [], [], 30)[0]:
        paths, everything, _ = watch.inbox.take()
        if everything or str(path) in paths:
            return True
    return False


def test_a_renamed_directory_is_watched_under_its_new_name(tmp_path: Path) -> None:
    """The agent hears of writes in directories that were made or renamed below a watched directory,
    by the path that they have now, and looks once at everything."""
    watch = Watch([Pattern(f"{tmp_path}/**/*.log")])
    watch.start()
    watch.mind(0, now=0.0)
    old, new = tmp_path / "a" / "b", tmp_path / "c"
    old.mkdir(parents=True)
    assert heard(watch, old)
    (tmp_path / "a").rename(new)
    while not watch.mind(0, now=2.0):  # the new names count from the next second on
        assert heard(watch, new)
        watch._window_end = 0.5
    watch.inbox.take()
    (new / "b" / "app.log").write_text("x\n")
    assert select.select([watch.inbox], [], [], 30)[0]
    assert str(new / "b" / "app.log") in watch.inbox.take()[0]
    watch.stop()


def test_a_watch_begins_anew_at_most_every_ten_seconds(tmp_path: Path) -> None:
    """However often a user renames directories, the agent begins to watch anew at most every ten
    seconds, and looks at everything then."""
    watch = Watch([Pattern(f"{tmp_path}/**/*.log")])
    watch.start()
    (tmp_path / "0").mkdir()
    anew = []
    for now in range(1, 40):
        (tmp_path / str(now - 1)).rename(tmp_path / str(now))
        if watch._trees is not None:
            assert heard(watch, tmp_path / str(now))
        if watch.mind(0, now=float(now)):
            anew.append(now)
    watch.stop()
    assert len(anew) >= 3
    assert min(after - before for before, after in pairwise(anew)) >= REST_S


def test_a_directory_that_was_replaced_is_watched_again(tmp_path: Path) -> None:
    """If the directory of a pattern is deleted and made again, the agent hears of writes there from
    the next second on."""
    logs = tmp_path / "logs"
    logs.mkdir()
    watch = Watch([Pattern(f"{logs}/*.log")])
    watch.start()
    watch.mind(0, now=0.0)
    shutil.rmtree(logs)
    watch.mind(0, now=2.0)
    assert watch._watched == set()
    logs.mkdir()
    watch.mind(0, now=4.0)
    (logs / "app.log").write_text("x\n")
    assert heard(watch, logs / "app.log")
    watch.stop()


def test_no_rename_ends_the_watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However directories are made, renamed, moved into each other and deleted in a watched tree,
    no thread of the watch ends with an error, the watch can stop and begin again, and it still
    hears of changes afterwards."""
    failures: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: failures.append(str(args.exc_value)))
    chance = random.Random(1)
    watch = Watch([Pattern(f"{tmp_path}/**/*.log"), Pattern(f"{tmp_path}/a/*.log")])
    watch.start()
    for step in range(1_500):
        upset(tmp_path, chance)
        watch.mind(0, now=step / 100)  # every hundredth step ends a window
        if step % 150 == 0:
            watch.mind(int(RATE_MAX) * 3, now=step / 100 + 1.5)
            watch._rest_until = step / 100 + 1
    watch.mind(0, now=1e6)
    watch.mind(0, now=2e6)
    (tmp_path / "last").mkdir()
    assert heard(watch, tmp_path / "last")
    watch.stop()
    assert failures == []


def upset(folder: Path, chance: random.Random) -> None:
    """Makes, renames, moves or deletes a random directory in a folder."""
    one, other = (folder / chance.choice("abcdef") for _ in range(2))
    below = chance.choice("xyz")
    try:
        match chance.randrange(4):
            case 0:
                (one / below).mkdir(parents=True)
            case 1:
                one.rename(other)
            case 2:
                shutil.rmtree(one)
            case _:
                one.rename(other / below)
    except OSError:
        pass  # the directory is not there, or is full


def test_names_that_are_no_text_are_heard(tmp_path: Path) -> None:
    """The agent hears of files and directories whose names are not UTF-8."""
    folder = os.fsencode(tmp_path)
    watch = Watch([Pattern(f"{tmp_path}/**/*.log")])
    watch.start()
    os.mkdir(folder + b"/\xff")
    assert heard(watch, tmp_path / "none")
    with open(folder + b"/\xff/\xfe.log", "wb") as file:
        file.write(b"x\n")
    assert heard(watch, Path(os.fsdecode(folder + b"/\xff/\xfe.log")))
    watch.stop()


def test_a_very_deep_directory_is_no_error(tmp_path: Path) -> None:
    """Directories that lie deeper in each other than Python can recurse are watched as deep as a
    search goes, and neither the watch nor the search for real paths fails."""
    deep = make_deep(tmp_path)
    watch = Watch([Pattern(f"{tmp_path}/**/*.log")])
    watch.start()
    (tmp_path / "d" / "app.log").write_text("x\n")
    assert heard(watch, tmp_path / "d" / "app.log")
    watch.stop()
    host = OperatingSystem()
    assert host.resolve(f"{deep}/none") == f"{deep}/none"
    assert host.resolve(f"{tmp_path}{'/n' * 1_100}") == f"{tmp_path}{'/n' * 1_100}"
    scan = host.scan([Pattern(f"{tmp_path}/**/*.log")])
    assert [os.path.basename(each.path) for each in scan.found] == ["app.log"]
    remove_deep(tmp_path)


def make_deep(folder: Path) -> str:
    """Makes directories in each other, 1,200 levels deep; returns the path of the deepest."""
    path = str(folder)
    for _ in range(1_200):
        path += "/d"
        os.mkdir(path)
    return path


def remove_deep(folder: Path) -> None:
    """Removes what `make_deep` has made, because pytest's own removal fails for it."""
    (folder / "d" / "app.log").unlink()
    for depth in range(1_200, 0, -1):
        os.rmdir(str(folder) + "/d" * depth)
