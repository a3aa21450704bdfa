"""Tests the demo's command line."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skidway import machine
from skidway.cli import main
from skidway.demo.cli import check_logs
from skidway.errors import UsageError
from skidway.machine import Finding


def test_a_pattern_that_matches_no_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demo refuses a pattern of --logs that matches no regular file, for example a wrong name,
    a directory, an empty text, or a ~ that no shell has expanded. It also refuses a pattern that is
    not UTF-8."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.log").write_bytes(b"x\n")
    check_logs(["*.log", str(tmp_path / "a.log")])
    check_logs([])
    for pattern in ("b.log", "*.txt", str(tmp_path), "", "~/a.log"):
        with pytest.raises(UsageError, match=r"the pattern matches no regular file$"):
            check_logs(["*.log", pattern])
    with pytest.raises(UsageError, match=r"--logs '\\udcff' has a character that no path has"):
        check_logs(["\udcff"])


def test_a_file_that_cannot_be_read_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a path that --logs matches cannot be read, the demo names it with the reason, and does not
    start: it could not end complete."""
    (tmp_path / "a.log").write_bytes(b"x\n")
    (tmp_path / "b.log").symlink_to("nowhere")
    logs = str(tmp_path / "*.log")
    with pytest.raises(UsageError, match=r"cannot read .*/b\.log: it is a link that leads nowhere"):
        check_logs([logs])
    (tmp_path / "b.log").unlink()

    def refuse(path: str, *_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(UsageError, match=r"/a\.log: Permission denied$"):
        check_logs([logs])


def test_a_machine_on_which_spark_cannot_start_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a name that Spark needs has no address, the demo says so in one sentence with what to do,
    and neither starts a program nor writes a file."""
    lacking = Finding("host name", "missing", "'db7' has no address", "add it to /etc/hosts")
    monkeypatch.setattr(machine, "names", lambda: iter([lacking]))
    assert main(["demo", "--quick", "--dir", str(tmp_path / "demo")]) == 1
    assert capsys.readouterr().err == ("skidway demo: 'db7' has no address; add it to /etc/hosts\n")
    assert list(tmp_path.iterdir()) == []


def test_a_machine_without_openssl_is_told_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If --tls cannot make certificates, the demo says so in one sentence with what to do, and
    neither starts a program nor writes a file."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["demo", "--tls", "--dir", str(tmp_path / "demo")]) == 1
    assert capsys.readouterr().err == (
        "skidway demo: the command openssl, which makes certificates, is missing;"
        " install it (Debian, Ubuntu: apt-get install openssl)\n"
    )
    assert list(tmp_path.iterdir()) == []
