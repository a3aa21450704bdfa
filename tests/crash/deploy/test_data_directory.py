"""Root makes and empties directories in which a program's user may put links."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from deploy.ansible.plugins.modules.data_directory import Refused, empty, make
from support.other_users import as_user

pytestmark = pytest.mark.root

USER, OTHER = 63_001, 63_002
OWNER = str(USER), str(USER)


class Site(NamedTuple):
    """disks: a directory of root, on a way that only root may change. precious: another one, with
    a file of root."""

    disks: Path
    precious: Path

    def link(self, path: Path, user: int = USER) -> None:
        as_user(user, [], partial(os.symlink, self.precious, path))

    def is_whole(self) -> bool:
        file = self.precious / "file"
        return (self.precious.stat().st_uid, file.read_text()) == (0, "of root")


@pytest.fixture
def site() -> Iterator[Site]:
    root = Path(f"/srv/skidway-test-{uuid4().hex[:8]}")
    made = Site(root / "disks", root / "precious")
    for each in made:
        each.mkdir(parents=True, mode=0o755)
    (made.precious / "file").write_text("of root")
    yield made
    shutil.rmtree(root)


def give(path: str | Path) -> bool:
    return make(str(path), OWNER, 0o750)


def owner(path: Path) -> tuple[int, int]:
    return path.lstat().st_uid, path.lstat().st_mode & 0o7777


def test_parents_are_root_s_and_the_directory_the_user_s(site: Site) -> None:
    """Of a path that is missing, only the last directory is the user's. So the user can exchange
    no directory, and a second run changes nothing. A look at what is to be done needs no user."""
    path = site.disks / "a" / "b" / "data"
    assert make(str(path), ("no-such-user", "root"), 0o750, only_look=True)
    assert not (site.disks / "a").exists()
    before = os.umask(0o077)
    try:
        assert give(path)
    finally:
        os.umask(before)
    assert owner(path) == (USER, 0o750)
    assert owner(path.parent) == owner(site.disks / "a") == (0, 0o755)
    assert not give(path)
    assert give(path.parent)  # an operator names it now


def user_s_parent(site: Site) -> Path:
    parent = site.disks / "parent"
    give(parent)
    site.link(parent / "data")
    return parent / "data"


def user_s_link(site: Site) -> Path:
    site.disks.chmod(0o777)
    site.link(site.disks / "data")
    site.disks.chmod(0o755)
    return site.disks / "data"


def user_s_link_on_the_way(site: Site) -> Path:
    return user_s_link(site) / "below"


def link_of_another_in_a_directory_like_tmp(site: Site) -> Path:
    site.disks.chmod(0o1777)
    site.link(site.disks / "data", OTHER)
    return site.disks / "data"


def root_s_link_through_a_user_s_directory(site: Site) -> Path:
    (site.disks / "data").symlink_to(user_s_parent(site))
    return site.disks / "data"


def directory_that_everybody_writes(site: Site) -> Path:
    site.disks.chmod(0o777)
    site.link(site.disks / "data")
    return site.disks / "data"


def directory_that_the_group_writes(site: Site) -> Path:
    os.chown(site.disks, 0, USER)
    site.disks.chmod(0o775)
    site.link(site.disks / "data")
    return site.disks / "data"


def up_again_from_a_user_s_directory(site: Site) -> Path:
    path = user_s_parent(site)
    return path.parent / ".." / path.parent.name / path.name


@pytest.mark.parametrize(
    "way",
    [
        user_s_parent, user_s_link, user_s_link_on_the_way, link_of_another_in_a_directory_like_tmp,
        root_s_link_through_a_user_s_directory, directory_that_everybody_writes,
        directory_that_the_group_writes, up_again_from_a_user_s_directory,
    ],
)  # fmt: skip
def test_nobody_but_root_leads_root_elsewhere(site: Site, way: Callable[[Site], Path]) -> None:
    """If a user other than root could lead a path elsewhere, root neither gives away nor empties
    what is there, and the sentence says which directory or link is in the way."""
    path = way(site)
    for act in (give, empty):
        with pytest.raises(Refused, match=r"^/srv/.* (put a link|made; remove it)"):
            act(str(path))
        assert site.is_whole()
    assert sorted(site.precious.iterdir()) == [site.precious / "file"]


def test_links_of_root_are_followed(site: Site) -> None:
    """An operator may keep data elsewhere by links of root, absolute or relative."""
    (site.disks / "far").symlink_to(site.disks.parent / "elsewhere")
    (site.disks / "near").symlink_to("far/../elsewhere")
    (site.disks.parent / "elsewhere").mkdir()
    assert give(site.disks / "near" / "data")
    assert owner(site.disks.parent / "elsewhere" / "data") == (USER, 0o750)
    assert owner(site.disks.parent / "elsewhere") == (0, 0o755)


def test_links_in_a_circle_and_what_is_no_directory_are_refused(site: Site) -> None:
    """A path that leads nowhere ends with an error, and changes nothing."""
    (site.disks / "circle").symlink_to("circle")
    with pytest.raises(Refused, match="too many links"):
        give(site.disks / "circle")
    (site.disks / "file").write_text("x")
    os.mkfifo(site.disks / "pipe")
    for name in ("file", "pipe", "file/below"):
        with pytest.raises(NotADirectoryError):
            give(site.disks / name)
    with pytest.raises(Refused, match="not absolute"):
        give("data")
    with pytest.raises(Refused, match="no user no-such-user"):
        make(str(site.disks / "data"), ("no-such-user", "root"), 0o750)


def test_a_directory_is_emptied_and_links_in_it_lead_nowhere(site: Site) -> None:
    """Everything in a directory is removed, but nothing to which its links lead; the directory
    itself stays, for it may be where a disk is mounted."""
    path = site.disks / "data"
    assert not empty(str(path))
    give(path)
    site.link(path / "link")
    (path / ".hidden").write_text("x")
    as_user(USER, [], partial(os.mkdir, path / "nginx-0"))
    site.link(path / "nginx-0" / "link")
    assert empty(str(path), only_look=True)
    assert empty(str(path))
    assert list(path.iterdir()) == []
    assert owner(path) == (USER, 0o750)
    assert site.is_whole()
    assert not empty(str(path))
