from __future__ import annotations

import os
import resource
import socket
from importlib import util
from pathlib import Path

import pytest

from skidway import extras, machine
from skidway.machine import GIB

INFINITY = resource.RLIM_INFINITY


def test_old_python_is_missing() -> None:
    """The result of `skidway doctor` for Python is "good" if the version is 3.11 or newer, and
    otherwise "missing"."""
    assert machine.python((3, 10, 9)).verdict == "missing"
    assert machine.python((3, 11, 0)).verdict == "good"
    assert machine.python((3, 14, 1)).verdict == "good"


@pytest.mark.parametrize(
    ("soft", "hard", "verdict"),
    [
        (512, 4096, "missing"),
        (1024, 1 << 20, "advice"),
        (16_384, 16_384, "good"),
        (INFINITY, INFINITY, "good"),
    ],
)
def test_open_files_limit_is_judged(soft: int, hard: int, verdict: str) -> None:
    """The result of `skidway doctor` for the limit of open files is "missing" below 1024, and
    "advice" from 1024 to 16,383. The result is "good" if the limit is 16,384 or more, or if there
    is no limit."""
    finding = machine.open_files(soft, hard)
    assert finding.verdict == verdict
    assert bool(finding.advice) == (verdict != "good")


def test_low_hard_limit_is_told() -> None:
    """If the hard limit of open files is so low that a shell cannot raise the soft limit far
    enough, the advice of `skidway doctor` names limits.conf."""
    assert "limits.conf" in machine.open_files(1024, 4096).advice
    assert "limits.conf" not in machine.open_files(1024, INFINITY).advice


def test_names_that_anybody_can_give_a_file_are_told() -> None:
    """`skidway doctor` advises to set fs.protected_hardlinks if it is 0, as the kernel says it."""
    assert machine.hard_links(is_protected=True).verdict == "good"
    found = machine.hard_links(is_protected=False)
    assert (found.verdict, found.advice[:31]) == ("advice", "set fs.protected_hardlinks = 1 ")
    assert machine.hard_links(None).verdict == "advice"
    said = {"0\n": "advice", "1\n": "good"}[Path("/proc/sys/fs/protected_hardlinks").read_text()]
    assert [x.verdict for x in machine.examine(Path.cwd()) if x.name == "hard links"] == [said]


def test_disk_and_memory_are_judged() -> None:
    """The result of `skidway doctor` for a disk is "missing" if half a GiB is free, and "advice" if
    two GiB are free. For the memory it is "advice" if the machine has one GiB, or if the amount is
    unknown."""
    where = Path("/data")
    assert machine.disk("x", where, GIB // 2).verdict == "missing"
    assert machine.disk("x", where, 2 * GIB).verdict == "advice"
    assert machine.disk("x", where, 10 * GIB).verdict == "good"
    assert machine.memory(GIB).verdict == "advice"
    assert machine.memory(8 * GIB).verdict == "good"
    assert machine.memory(None).verdict == "advice"


def test_writability_is_tried(tmp_path: Path) -> None:
    """The result of `skidway doctor` for a directory is "good" if a file can be created in it.
    Otherwise the result is "missing", and the text names the directory."""
    assert machine.writable("data", tmp_path).verdict == "good"
    assert list(tmp_path.iterdir()) == []
    finding = machine.writable("data", tmp_path / "none")
    assert finding.verdict == "missing"
    assert str(tmp_path / "none") in finding.says


def test_used_port_is_advice_that_names_the_holder() -> None:
    """If a program's default port is in use, the result of `skidway doctor` is only "advice",
    because this program itself may be running and using the port. The text names the process that
    uses the port."""
    assert machine.free_port(9092, "broker", None).verdict == "good"
    finding = machine.free_port(9092, "broker", "process 7 (java)")
    assert finding.verdict == "advice"
    assert "process 7 (java)" in finding.says


def test_part_without_its_modules_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """If Spark is not installed, the result of `skidway doctor` for the loader is only "advice",
    and its text says what to install."""
    without(monkeypatch, "pyspark")
    findings = {finding.name: finding for finding in machine.parts()}
    assert findings["part loader"].verdict == "advice"
    assert findings["part loader"].advice.endswith("-m pip install 'pyspark<4.4,>=4.1'")
    assert findings["part agent"].verdict == "good"


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Makes the given Python packages appear not to be installed."""
    installed = extras._is_installed
    monkeypatch.setattr(
        extras,
        "_is_installed",
        lambda requirement: not requirement.startswith(names) and installed(requirement),
    )


def test_missing_java_matters_only_where_spark_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If Java is not installed, the result of `skidway doctor` is "missing" on a host with Spark.
    On a host without Spark it is only "advice": such a host runs no loader, and an agent needs no
    Java."""
    monkeypatch.setenv("SKIDWAY_JAVA", str(tmp_path / "none"))
    by_name = {f.name: f for f in machine.examine(tmp_path)}
    assert by_name["java"].verdict == "missing"
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    by_name = {f.name: f for f in machine.examine(tmp_path)}
    assert by_name["java"].verdict == "advice"


@pytest.mark.parametrize("absent", ["db7", "localhost"])
def test_a_name_without_address_matters_only_where_spark_is_installed(
    absent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this machine's name or `localhost` has no address, Spark does not start. On a host with
    Spark `skidway doctor` calls it missing, and names the line that /etc/hosts lacks."""
    nameless(monkeypatch, absent)
    found = [each for each in machine.names() if each.verdict != "good"]
    assert [(each.verdict, absent in each.says) for each in found] == [("missing", True)]
    line = f"127.0.{'1' if absent == 'db7' else '0'}.1 {absent}"
    assert f"`{line}` to /etc/hosts" in found[0].advice
    monkeypatch.setattr(util, "find_spec", lambda _: None)
    assert [each.verdict for each in machine.names() if each.advice] == ["advice"]


def test_spark_may_have_an_address_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """With SPARK_LOCAL_IP, the machine's own name needs no address."""
    nameless(monkeypatch, "db7")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert [each.verdict for each in machine.names()] == ["good", "good"]


def nameless(monkeypatch: pytest.MonkeyPatch, absent: str) -> None:
    """Makes the machine appear to be named db7, and `absent` to have no address."""

    def resolved(name: str, _: None) -> list[object]:
        if name == absent:
            raise socket.gaierror(-2, "Name or service not known")
        return []

    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    monkeypatch.setattr(socket, "gethostname", lambda: "db7")
    monkeypatch.setattr(socket, "getaddrinfo", resolved)


def test_noexec_temporary_directory_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the directory for temporary files is on a noexec mount, the result of `skidway doctor` is
    "advice", because Java cannot load libraries from this directory."""
    assert machine.executable_temporary(tmp_path).verdict == "good"
    stat = os.statvfs(tmp_path)

    class NoExec:
        f_flag = stat.f_flag | os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda _: NoExec)
    assert machine.executable_temporary(tmp_path).verdict == "advice"


@pytest.mark.parametrize(("text", "verdict"), [("ab12\n", "good"), ("uninitialized\n", "advice")])
def test_a_machine_without_an_id_gets_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, verdict: str
) -> None:
    """`skidway doctor` says if the machine has no machine id, to which an agent's state could be
    bound, and what to do."""
    (tmp_path / "id").write_text(text)
    monkeypatch.setattr("skidway.machine_id.PATHS", (tmp_path / "id",))
    found = {each.name: each for each in machine.examine(tmp_path)}["machine id"]
    assert found.verdict == verdict
    assert ("/etc/machine-id" in found.advice) is (verdict == "advice")
