"""Who may read the files that programs make, under every umask with which they may be started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from skidway import files
from skidway.agent.state.database import open_state
from skidway.audit.evidence.ledger import Ledger
from skidway.cli import main
from skidway.clock import SystemClock
from skidway.files import DirectoryLock
from skidway.loader.runs.textfile import Recorded
from skidway.loader.store.local import LocalStore
from skidway.schemas.consuming.rejected import _new_file

UMASKS = (0o000, 0o022, 0o027, 0o077)


@contextmanager
def umask(number: int) -> Iterator[None]:
    before = os.umask(number)
    try:
        yield
    finally:
        os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {each.name: each.stat().st_mode & 0o777 for each in directory.iterdir()}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (0o022, 0o077), (0o002, 0o077), (0o000, 0o077), (0o020, 0o077),
        (0o027, 0o027), (0o077, 0o077), (0o007, 0o007), (0o026, 0o026), (0o137, 0o137),
    ],
)  # fmt: skip
def test_nobody_else_reads_what_a_program_makes(given: int, kept: int) -> None:
    """A program that is started with a usual umask makes its files for its own user only. A umask
    that unit or shell have chosen stays."""
    with umask(given):
        main(["--version"])
        assert os.umask(kept) == kept


@pytest.mark.parametrize("given", UMASKS)
def test_what_is_made_for_others_has_its_mode(tmp_path: Path, given: int) -> None:
    """The metrics for node_exporter can be read by everybody, and local output by its group. Lines
    that were exported can be read by nobody else. All of this holds under each umask."""
    with umask(given):
        with Recorded(tmp_path / "loader.prom", SystemClock()):
            pass
        with _new_file(str(tmp_path / "export")):
            pass
        store = LocalStore(str(tmp_path / "output"))
        store.create("logs/a").close()
        store.create_if_absent("logs/b", b"", "scratch")
    output = tmp_path / "output"
    assert modes(tmp_path) == {"loader.prom": 0o644, "export": 0o600, "output": 0o750}
    assert modes(output) == {"logs": 0o750, "scratch": 0o750}
    assert modes(output / "logs") == {"a": 0o640, "b": 0o640}


def test_the_group_of_a_unit_reads_a_store(tmp_path: Path) -> None:
    """Under the umask of a unit, its group may read a state; under the umask that programs set
    themselves, nobody else."""
    for given, wanted in ((0o027, 0o640), (0o077, 0o600)):
        state = tmp_path / oct(given)
        with umask(given), DirectoryLock(state):
            Ledger(state / "audit.db").close()
            open_state(state, create=True).close()
            files.write_atomically(state / "note", b"")
        assert set(modes(state).values()) == {wanted}
        assert state.stat().st_mode & 0o777 == 0o777 & ~given


def test_a_lock_is_no_link(tmp_path: Path) -> None:
    """A link in the place of a lock is not followed: what it leads to is neither locked nor
    changed, and the error names the directory."""
    (tmp_path / "victim").write_text("kept")
    state = tmp_path / "state"
    state.mkdir()
    (state / files.LOCK_FILE).symlink_to(tmp_path / "victim")
    with pytest.raises(files.SkidwayError, match=r"cannot lock the directory .*/state"):
        DirectoryLock(state).acquire()
    assert (tmp_path / "victim").read_text() == "kept"
