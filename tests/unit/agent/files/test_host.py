import os
from pathlib import Path

import pytest

from skidway.agent.files.birth_times import born_at
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.operating_system import LEADS_NOWHERE, OperatingSystem
from skidway.agent.files.patterns import Pattern
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.tracked import Birth, Checkpoint, TrackedFile
from support.exchanges import exchanging
from support.promises import promise

HOST = OperatingSystem()


def tracked(path: Path, file: int = 1) -> TrackedFile:
    found = HOST.look(str(path))
    assert found is not None
    birth = Birth(file, file, "t", "", "h", str(path), found.key, Fingerprint(0, b""))
    return TrackedFile(birth, Checkpoint(0, 0, Guard(0, 0), ()), str(path))


def test_a_file_is_found_read_and_known(tmp_path: Path) -> None:
    """The agent gets the same key and time of birth of a file whether it asks by a pattern, by the
    file's path or by an open handle. The key of a file is its device and inode."""
    path = tmp_path / "a.log"
    path.write_bytes(b"hello")
    (tmp_path / "d").mkdir()
    (found,) = HOST.scan([Pattern(f"{tmp_path}/*"), Pattern(f"{tmp_path}/a*")]).found
    assert found == HOST.look(str(path))
    assert found.size == 5
    handle = HOST.open(str(path))
    assert handle.read(3, 1) == b"ell"
    assert handle.status()[:3] == (found.key, 5, 1)
    assert handle.status().born_ns == found.born_ns is not None
    path.unlink()
    assert handle.status().links == 0
    handle.close()


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    """The agent opens only regular files, because a pipe would block, and a directory has no
    lines."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError):
            HOST.open(str(path))
    assert HOST.scan([Pattern(f"{tmp_path}/*")]).found == []


@promise("1 links")
def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    """A search reports a dead symbolic link as unreadable, because the link's file may have unread
    lines. A search does not report a link that was removed."""
    (tmp_path / "dead.log").symlink_to(tmp_path / "nowhere")
    scan = HOST.scan([Pattern(f"{tmp_path}/*.log"), Pattern(f"{tmp_path}/dead.log")])
    path = str(tmp_path / "dead.log")
    assert (scan.found, scan.dead) == ([], [path])
    assert scan.unreadable == [(path, LEADS_NOWHERE)]
    (tmp_path / "dead.log").unlink()
    scan = HOST.scan([Pattern(f"{tmp_path}/dead.log")])
    assert (scan.found, scan.dead, scan.unreadable) == ([], [], [])


def test_a_renamed_file_is_found_in_its_directory(tmp_path: Path) -> None:
    """The agent finds a renamed file in its directory by the file's inode."""
    path = tmp_path / "a.log"
    path.write_bytes(b"x")
    found = HOST.look(str(path))
    assert found is not None
    path.rename(tmp_path / "a.log.1")
    assert HOST.find(str(tmp_path), found.key) == str(tmp_path / "a.log.1")
    assert HOST.find(str(tmp_path), FileKey(0, 0)) is None
    assert HOST.find(str(tmp_path / "nowhere"), found.key) is None


def test_a_file_that_is_renamed_while_it_is_looked_for_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a file is renamed after the agent listed the directory and before it asked for the file's
    inode, the agent lists the directory again. It does not conclude that the file is gone."""
    path = tmp_path / "a.log"
    path.write_bytes(b"x")
    found = HOST.look(str(path))
    assert found is not None
    names, real = iter(range(100)), os.stat

    def renamed_before(where: str) -> os.stat_result:
        if (count := next(names)) < renames:
            os.rename(where, tmp_path / f"a.log.{count}")
        return real(where)

    monkeypatch.setattr("skidway.agent.files.operating_system.os.stat", renamed_before)
    renames = 3
    assert HOST.find(str(tmp_path), found.key) == str(tmp_path / "a.log.2")
    renames = 99
    with pytest.raises(OSError, match="it is being renamed"):
        HOST.find(str(tmp_path), found.key)


def test_a_rotation_during_a_look_hides_no_time_of_birth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may be rotated after the agent asked for the file's size and before the agent asked
    for the file's time of birth. The agent then asks again, and describes the file that is at the
    path now, with its time of birth. If the path has another file each time the agent asks, or no
    file, the agent describes no file. It does not leave out the time of birth, because it would
    then not recognize the rotated file, and would declare that file lost."""
    path, real, times = tmp_path / "a.log", os.lstat, iter(range(100))

    def rotated_after(where: str) -> os.stat_result:
        status = real(where)
        if (count := next(times)) < rotations:
            os.rename(path, tmp_path / f"a.log.{99 - count}")
            path.write_bytes(b"new")
        return status

    path.write_bytes(b"x")
    host = OperatingSystem()
    with monkeypatch.context() as patch:
        patch.setattr("skidway.agent.files.operating_system.os.lstat", rotated_after)
        rotations = 3
        found = host.look(str(path))
    handle = host.open(str(path))
    assert found is not None
    assert (found.key, found.size, found.born_ns) == (
        handle.status().key,
        3,
        handle.status().born_ns,
    )
    handle.close()
    with monkeypatch.context() as patch:
        patch.setattr("skidway.agent.files.operating_system.os.lstat", rotated_after)
        rotations = 99
        scan = OperatingSystem().scan([Pattern(str(path))])
    assert (scan.found, scan.unreadable) == ([], [(str(path), "it is being renamed")])
    path.unlink()
    with pytest.raises(FileNotFoundError):
        born_at(str(path), found.key.inode)


def test_a_name_may_end_as_the_kernel_calls_a_deleted_file(tmp_path: Path) -> None:
    """The kernel appends " (deleted)" to the path of an open file that was deleted. A file whose
    own name ends in this text nevertheless counts as existing until it is deleted."""
    path = tmp_path / "a.log (deleted)"
    path.write_bytes(b"x")
    handle = HOST.open(str(path))
    assert handle.where() == str(path)
    path.unlink()
    assert handle.where() == ""
    handle.close()


def test_a_directory_that_is_not_there_lies_on_the_device_above_it(tmp_path: Path) -> None:
    """If a directory is missing, for example because its file system is not mounted, `device_of`
    returns the device of the nearest directory above it. An empty path has no device."""
    device = os.stat(tmp_path).st_dev
    assert HOST.device_of(str(tmp_path)) == HOST.device_of(str(tmp_path / "x" / "y")) == device
    (tmp_path / "file").touch()
    assert HOST.device_of(str(tmp_path / "file" / "y")) == device
    assert HOST.device_of("") is None


def test_descriptors_are_bounded(tmp_path: Path) -> None:
    """At most as many files are open as the limit allows: to open one more file, the agent closes
    the least recently used one. A closed file is opened again when it is needed."""
    handles = Handles(HOST, 2)
    files = []
    for index in range(4):
        path = tmp_path / f"{index}.log"
        path.write_bytes(b"%d" % index)
        files.append(tracked(path, index + 1))
    for used, is_open in (
        (1, {1}),
        (2, {1, 2}),
        (1, {1, 2}),
        (3, {1, 3}),
        (4, {3, 4}),
        (1, {1, 4}),
    ):
        assert handles.get(files[used - 1]).read(1, 0) == b"%d" % (used - 1)
        assert {each.file for each in files if handles.held(each.file)} == is_open
        assert len(handles) == len(is_open)
    handles.close()
    assert len(handles) == 0


@pytest.mark.parametrize("is_open", [False, True])
def test_a_handle_follows_a_rename_and_never_another_file(tmp_path: Path, is_open: bool) -> None:
    """The agent reads a file that was renamed in its directory, and never another file that now has
    the old path. This is so whether the file is open during the rename or is opened afterwards. If
    the file is gone and not open, `get` raises Moved."""
    path = tmp_path / "a.log"
    path.write_bytes(b"old")
    mine = tracked(path)
    handles = Handles(HOST, 2)
    if is_open:
        assert handles.get(mine).where() == str(path)
    path.rename(tmp_path / "a.log.1")
    path.write_bytes(b"new")
    assert handles.get(mine).read(3, 0) == b"old"
    assert handles.get(mine).where() == str(tmp_path / "a.log.1")
    handles.drop(mine.file)
    (tmp_path / "a.log.1").unlink()
    with pytest.raises(Moved):
        handles.get(mine)
    path.unlink()
    with pytest.raises(Moved):
        handles.get(mine)


@pytest.mark.parametrize(
    "text", ["", "one", "one/two", "loop", "loop/x", "none/x", "one/../k", "k/."]
)
def test_a_real_path_is_that_of_the_system(tmp_path: Path, text: str) -> None:
    """The real path of a directory has no link in it. If the directory does not exist, or its links
    lead round, the path has no link as far as the directory exists."""
    (tmp_path / "real" / "two").mkdir(parents=True)
    (tmp_path / "one").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "k").symlink_to(tmp_path / "one" / "two")
    path = f"{tmp_path}/{text}"
    assert HOST.resolve(path) == os.path.realpath(path)


def test_no_exchange_of_names_is_an_error(tmp_path: Path) -> None:
    """While a directory and a link have their names exchanged all the time, the agent always gets
    the real path of one of them, and always finds the file in one of them."""
    here, there, link = tmp_path / "here", tmp_path / "there", tmp_path / "link"
    for each in (here, there):
        each.mkdir()
        (each / "a.log").write_text("x\n")
    link.symlink_to(there)
    names = {f"{place}/a.log" for place in (here, there, link)}
    with exchanging(here, link) as count:
        while count[0] < 5_000:
            assert HOST.resolve(str(here)) in {str(here), str(there), str(link)}
            scan = HOST.scan([Pattern(f"{here}/*.log")])
            assert scan.unreadable == []
            assert {each.real_path for each in scan.found} <= names


def test_paths_that_take_much_memory_are_left_out(tmp_path: Path) -> None:
    """A file whose path people would see with thousands of characters, because its bytes are not
    UTF-8, is not read, also if a link leads to it. The lowest directory with a shorter path, or the
    link, is named once. A path as long in UTF-8 is read."""
    before, names = os.getcwd(), (b"\xff" * 240, "é".encode() * 120)
    try:
        for name in names:
            os.chdir(tmp_path)
            for _ in range(6):
                os.mkdir(name)
                os.chdir(name)
            for number in range(3):
                Path(f"{number}.log").touch()
    finally:
        os.chdir(before)
    long = os.fsencode(tmp_path) + 6 * (b"/" + names[0])
    (tmp_path / "link.log").symlink_to(os.fsdecode(long + b"/0.log"))
    scan = HOST.scan([Pattern(f"{tmp_path}/**")])
    assert len(scan.found) == 3
    lowest = os.fsdecode(long[: -2 * 241])
    assert [path for path, _ in scan.refused] == [f"{tmp_path}/link.log", lowest]
