from __future__ import annotations

import os
from pathlib import Path

import pytest

from skidway import files
from skidway.errors import SkidwayError, StateRefused
from skidway.files import DirectoryLock


def test_write_atomically_replaces_the_whole_content(tmp_path: Path) -> None:
    """After an atomic write the file contains exactly the new bytes, and no other file is left in
    the directory."""
    path = tmp_path / "checkpoint"
    files.write_atomically(path, b"a longer old content")
    files.write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["checkpoint"]


@pytest.mark.parametrize("point", ["fsync", "rename", "write"])
def test_write_atomically_keeps_the_old_content_when_a_step_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """If any step of an atomic write up to the rename fails, the error is raised, the file's old
    content stays, and no temporary file is left."""
    path = tmp_path / "checkpoint"
    files.write_atomically(path, b"old")

    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, point, failing)
    with pytest.raises(OSError, match="Input/output error"):
        files.write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_a_lock_names_any_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory is locked, and its holder is named, whatever bytes the holder's arguments are."""
    monkeypatch.setattr("sys.argv", ["skidway", os.fsdecode(bytes([0xFF]))])
    with DirectoryLock(tmp_path), pytest.raises(StateRefused, match=r"\(skidway .udcff\)"):
        DirectoryLock(tmp_path).acquire()


def test_a_lock_needs_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory is locked although the disk is full. Only the words about the process that holds
    the lock are then missing."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with (
        DirectoryLock(tmp_path),
        pytest.raises(StateRefused, match="in use by another process"),
    ):
        DirectoryLock(tmp_path).acquire()


def test_write_atomically_syncs_file_before_rename_and_directory_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An atomic write makes the file durable in three steps: it calls fsync for the temporary file,
    renames it, and calls fsync for the directory."""
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename
    monkeypatch.setattr(
        os,
        "fsync",
        lambda fd: (
            steps.append("directory" if os.path.isdir(f"/proc/self/fd/{fd}") else "file"),
            fsync(fd),
        )[1],
    )
    monkeypatch.setattr(os, "rename", lambda a, b: (steps.append("rename"), rename(a, b))[1])
    files.write_atomically(tmp_path / "x", b"1")
    assert steps == ["file", "rename", "directory"]


def test_lock_is_exclusive_and_names_the_holder(tmp_path: Path) -> None:
    """While the lock is held, a second holder is refused with an error that names the first
    holder's process. After its release the lock can be taken again."""
    directory = tmp_path / "made" / "on the way"
    with DirectoryLock(directory):
        with pytest.raises(StateRefused) as refused, DirectoryLock(directory):
            pass
        assert f"process {os.getpid()}" in str(refused.value)
        assert str(directory) in str(refused.value)
    with DirectoryLock(directory):
        pass


def test_lock_cannot_be_taken_twice_by_one_owner(tmp_path: Path) -> None:
    """If the owner of a lock takes it again, this is a programming error and raises an
    exception."""
    lock = DirectoryLock(tmp_path)
    with lock, pytest.raises(RuntimeError):
        lock.acquire()


def test_lock_below_a_file_is_one_sentence(tmp_path: Path) -> None:
    """If the path of the lock's directory is a regular file, the error names the path."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SkidwayError, match="cannot use the directory"):
        DirectoryLock(tmp_path / "file").acquire()


def test_made_directories_are_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When directories are made, fsync is called for the parent directory of each new directory."""
    synced: list[Path] = []
    monkeypatch.setattr(files, "fsync_directory", synced.append)
    files.make_directory(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert synced == [tmp_path, tmp_path / "a"]


def test_what_keeps_everybody_from_a_directory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nobody can create files in a directory, or make it, the reason is told with the directory
    that is there. A lack of permission is no such reason: another user may have it."""
    missing = tmp_path / "missing" / "deep"
    assert (files.obstacle(tmp_path), files.obstacle(missing)) == ("", "")
    assert list(tmp_path.iterdir()) == []
    (link := tmp_path / "link").symlink_to(missing)
    assert files.obstacle(link / "x").startswith(f"cannot create files in {link}: No such")
    assert files.obstacle(Path("/dev/null/x")).startswith("cannot create files in /dev/null: ")

    def refuse(dir: Path) -> None:
        raise refusal

    monkeypatch.setattr("skidway.files.tempfile.TemporaryFile", refuse)
    refusal: OSError = OSError(30, "Read-only file system")
    assert files.obstacle(missing) == f"cannot create files in {tmp_path}: Read-only file system"
    refusal = PermissionError(13, "Permission denied")
    assert files.obstacle(missing) == ""
