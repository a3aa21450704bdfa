"""Each run of the loader gives Spark a scratch directory (a directory for temporary files). The run
deletes this directory when it ends. If the run was killed, the next run deletes the directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skidway.errors import ConfigurationRefused
from skidway.loader.spark.scratch import Scratch, check


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_run_leaves_nothing(tmp_path: Path) -> None:
    """The files that Spark wrote to its scratch directory are deleted at the end of the run."""
    scratch = Scratch()
    (scratch.path / "blockmgr").mkdir()
    (scratch.path / "blockmgr" / "spilled").write_bytes(b"x")
    scratch.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_deleted_by_the_next() -> None:
    """The scratch directory that a killed run left is deleted by the next run."""
    killed = Scratch()
    (killed.path / "spilled").write_bytes(b"x")
    killed.lock.release()  # the kernel releases a dead process's lock
    scratch = Scratch()
    assert not killed.path.exists()
    scratch.close()


def test_a_run_that_lives_keeps_its_directory() -> None:
    """A run of the loader does not delete the scratch directory of another run that is still
    alive."""
    first, second = Scratch(), Scratch()
    third = Scratch()
    assert first.path.exists()
    assert second.path.exists()
    for each in (first, second, third):
        each.close()


def test_strange_directories_are_left_alone(tmp_path: Path) -> None:
    """A run of the loader deletes only directories that have the name of a scratch directory and
    contain the loader's lock file. It does not follow symbolic links."""
    (tmp_path / "skidway-spark-new").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".lock").touch()
    os.symlink(tmp_path / "other", tmp_path / "skidway-spark-link")
    Scratch().close()
    assert (tmp_path / "skidway-spark-new").exists()
    assert (tmp_path / "other" / ".lock").exists()


def test_directories_of_others_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run does not touch what another user left, even if it could, as root can."""
    (tmp_path / "skidway-spark-other").mkdir()
    (tmp_path / "skidway-spark-other" / ".lock").write_text("theirs")
    owner = os.geteuid()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: owner + 1)
        Scratch().close()
    assert (tmp_path / "skidway-spark-other" / ".lock").read_text() == "theirs"
    Scratch().close()
    assert not (tmp_path / "skidway-spark-other").exists()


def test_directories_of_which_spark_can_use_none_are_refused(tmp_path: Path) -> None:
    """Directories for Spark's temporary files are refused if none of them can be used, by an error
    that names the property. One that can be used, or made, is enough, and the check makes none."""
    file = tmp_path / "file"
    file.write_bytes(b"")
    for bad in ("/dev/null/x", str(file), f"{file}/below"):
        with pytest.raises(ConfigurationRefused, match=r"^spark.conf: spark.local.dir .* in /\S"):
            check([bad])
        check([bad, str(tmp_path / "new" / "deep")])
    check([str(tmp_path)])
    assert list(tmp_path.iterdir()) == [file]
