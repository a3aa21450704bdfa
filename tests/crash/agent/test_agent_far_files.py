"""A user who writes logs links to files of his own, so that the agent takes other users' files for
rotated files. Files and links belong to real users of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skidway.agent.files.access import access_of
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.values.found import NOBODY
from support.running_agent import running

pytestmark = pytest.mark.root

WRITER, VICTIM = 63_002, 63_003


def write(path: Path, text: str, owner: int) -> None:
    if not path.parent.exists():
        path.parent.mkdir()
        os.chown(path.parent, owner, owner)
    path.write_text(text)
    os.chown(path, owner, owner)


def link(path: Path, target: Path, owner: int = WRITER) -> None:
    """Makes a link, or sets it to another target."""
    new = path.with_suffix(".new")
    new.symlink_to(target)
    os.chown(new, owner, owner, follow_symlinks=False)
    new.rename(path)


@pytest.mark.parametrize("owner", [WRITER, 0])
def test_a_link_that_is_set_anew_publishes_no_file_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: int
) -> None:
    """A file between the two to which a link led is read only if it belongs to the same user.
    Otherwise the agent declares that files may be unread."""
    jobs, logs = tmp_path / "jobs", tmp_path / "mall"
    jobs.mkdir()
    logs.mkdir()
    write(jobs / "m1" / "out.txt", "1\n", WRITER)
    link(logs / "x.log", jobs / "m1" / "out.txt", owner)
    with running(tmp_path, monkeypatch) as site:
        site.write(sources=[site.source("logs", "mall/*.log")])
        site.reload()
        assert site.lines("logs") == 1
        write(jobs / "victim" / "out.txt", "SECRET\n", VICTIM)
        write(jobs / "m2" / "out.txt", "2\n", WRITER)
        write(jobs / "m3" / "out.txt", "3\n", WRITER)
        link(logs / "x.log", jobs / "m3" / "out.txt", owner)
        site.turns(60)
        assert site.lines("logs") == 3


@pytest.mark.parametrize("is_known", [True, False])
def test_the_neighbours_of_what_a_link_leads_to_stay_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    """In a directory into which everybody may write, a user's link does not make the agent take
    files of other users for rotated files, not even if what it led to is renamed or gone."""
    shared, logs = tmp_path / "shared", tmp_path / "mall"
    shared.mkdir()
    shared.chmod(0o1777)
    logs.mkdir()
    mine = shared / "out.txt"
    write(mine, "1\n", WRITER)
    link(logs / "x.log", mine)
    with running(tmp_path, monkeypatch) as site:
        site.write(sources=[site.source("logs", "mall/*.log")])
        site.reload()
        assert site.lines("logs") == 1
        if is_known:
            mine.rename(shared / "my out.txt")
        else:
            mine.unlink()
            (logs / "x.log").unlink()
        for name in ("out.txt.1", "out.txt.2.gz", "his out.txt", "out.txt-20261120"):
            write(shared / name, f"SECRET {name}\n", VICTIM)
        write(shared / "out.txt.3", "2\n", WRITER)
        site.turns(60)
        assert site.lines("logs") == 2


def test_a_link_that_leads_nowhere_says_whose_it_is(tmp_path: Path) -> None:
    """After a restart, a link that is there tells whose rotated files count, also if it leads
    nowhere: a user's its owner's, root's everybody's; without a link, nobody knows."""
    host = OperatingSystem(access_of("owner", Path("/nowhere")))
    logs = tmp_path / "logs"
    logs.mkdir()
    link(logs / "users.log", tmp_path / "gone")
    link(logs / "roots.log", tmp_path / "gone", 0)
    link(tmp_path / "way", logs)
    found = [host.lender(str(logs / name)) for name in ("users.log", "roots.log", "none.log")]
    assert found == [WRITER, None, NOBODY]
    assert host.lender(str(tmp_path / "way" / "roots.log")) == WRITER
