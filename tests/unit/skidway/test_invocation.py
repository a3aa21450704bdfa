"""Tests what a program says about how it was started, and the commands that are printed from it."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from skidway import invocation
from skidway.invocation import Invocation, invocation_of, of_arguments, record_of

HERE = "/home/me/site"
OWN = "/opt/tests/skidway"
RUNNER = "runuser --pty -u skidway-x -g skidway-x -G adm --"


@pytest.mark.parametrize(
    ("arguments", "unit", "start", "other"),
    [
        (["agent", "run"], "skidway-agent", "systemctl start skidway-agent", f"{RUNNER} {OWN} V"),
        (
            ["audit", "count", "--config", "/etc/skidway/audit-count-dc1.yml"],
            "skidway-audit-count@dc1",
            "systemctl start skidway-audit-count@dc1",
            f"{RUNNER} {OWN} V --config /etc/skidway/audit-count-dc1.yml",
        ),
        (
            ["broker", "run", "--config", "/etc/skidway/broker.yml"], "",
            f"{OWN} broker run", f"{OWN} V",
        ),
        (
            ["broker", "run", "--config=/my site/b.yml", "--log-level", "debug"], "",
            f"{OWN} broker run --config '/my site/b.yml'", f"{OWN} V --config '/my site/b.yml'",
        ),
        (
            ["agent", "run", "--config", "agent.yml"], "",
            f"cd {HERE} && {OWN} agent run --config agent.yml",
            f"cd {HERE} && {OWN} V --config agent.yml",
        ),
        (
            ["broker", "run", "--set", "log.dirs=data", "--set", "a=b c"], "",
            f"cd {HERE} && {OWN} broker run --set log.dirs=data --set 'a=b c'",
            f"cd {HERE} && {OWN} V --set log.dirs=data --set 'a=b c'",
        ),
    ],
)  # fmt: skip
def test_a_program_is_started_and_asked_with_its_settings(
    arguments: list[str], unit: str, start: str, other: str
) -> None:
    """A printed command starts a program as it was started, or runs another verb with the same
    settings. It names no file that the verb reads anyway. If the options are paths below the
    directory in which the program was started, it begins in this directory. For a program of a unit
    it names the user, the groups and the path of the unit. A record of an invocation gives the same
    commands."""
    runner = RUNNER.split() if unit else ()
    made = of_arguments([OWN, *arguments], unit=unit, directory=HERE, runner=runner)
    for each in (made, invocation_of(record_of(made))):
        assert (each.start(), each.command("V")) == (start, other)


def test_a_program_is_called_as_its_own_process_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If `skidway` on the PATH is the program that runs, printed commands call it by this name. If
    not, they name its file, or the Python whose module it is."""
    monkeypatch.setattr(invocation.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "/nowhere")

    def called(path: str) -> str:
        return of_arguments([path, "agent", "run"], unit="", directory=HERE).call

    assert called(str(tmp_path / "skidway")) == str(tmp_path / "skidway")
    for module in ("/x/skidway/__main__.py", "/x/skidway/cli/__main__.py"):
        assert called(module) == f"{tmp_path}/python -m skidway"
    (tmp_path / "skidway").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert called("/x/skidway/__main__.py") == "skidway"


@pytest.mark.parametrize(
    ("arguments", "start"),
    [
        (["load", "run"], "systemctl start skidway-loader"),
        (["load", "run", "--config", "/etc/skidway/load.yml"], "systemctl start skidway-loader"),
        (["load", "run", "--set", "topics=[a]"], f"cd {HERE} && {{}} load run --set 'topics=[a]'"),
        (["load", "run", "--config", "/my.yml"], "{} load run --config /my.yml"),
    ],
)
def test_an_installed_program_is_started_by_its_unit(
    arguments: list[str], start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a person, who may be root, runs an installed program with the settings of its unit, advice
    names the unit: as root the command would make files that the unit cannot write."""
    monkeypatch.setenv("PATH", "/nowhere")
    path = "/opt/skidway/current/loader/bin/skidway"
    made = of_arguments([path, *arguments], unit="", directory=HERE)
    assert made.start() == start.format(path)
    assert invocation_of(record_of(made)) == made


def test_a_unit_without_notifications_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load that a unit of Type=oneshot runs names its unit, and a child of a service such as cron
    names none."""
    monkeypatch.setattr(invocation, "_CGROUP", Cgroup("0::/system.slice/our-load.service"))
    monkeypatch.setattr(invocation.sys, "argv", ["/x/skidway", "load", "run"])
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getpid()))
    assert invocation.of_this_process().start() == "systemctl start our-load"
    monkeypatch.setenv("SYSTEMD_EXEC_PID", str(os.getppid()))
    assert invocation.of_this_process().unit == ""


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([500, 60], ""),
        ([500, 60, 4], "-g g500 -G g60 -G g4 "),
    ],
)
def test_a_command_has_the_groups_of_the_unit(
    groups: list[int], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that runs as a unit's user has the groups that the unit gives it: an agent reads
    logs by the group adm."""
    own = SimpleNamespace(pw_name="u", pw_uid=500)
    monkeypatch.setattr(invocation.pwd, "getpwuid", lambda _: own)
    monkeypatch.setattr(invocation.grp, "getgrgid", lambda x: SimpleNamespace(gr_name=f"g{x}"))
    monkeypatch.setattr(invocation.os, "getegid", lambda: 500)
    monkeypatch.setattr(invocation.os, "getgrouplist", lambda *_: [500, 60])
    monkeypatch.setattr(invocation.os, "getgroups", lambda: groups)
    monkeypatch.setattr(invocation, "_CGROUP", Cgroup("0::/system.slice/our-agent.service"))
    monkeypatch.setattr(invocation.sys, "argv", ["/x/skidway", "agent", "run"])
    monkeypatch.setenv("NOTIFY_SOCKET", "/x")
    made = invocation.of_this_process()
    assert (
        made.command("agent validate") == f"runuser --pty -u u {words}-- /x/skidway agent validate"
    )
    assert invocation_of(record_of(made)) == made


class Cgroup:
    """Stands for the file that names the control group of this process."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read_text(self) -> str:
        return self._text


@pytest.mark.parametrize(
    "record",
    [
        None, 7, {}, {"call": 3},
        *({**record_of(Invocation()), **x} for x in (
            {"options": "--config"}, {"call": "rm -rf / #"}, {"call": "skidway; rm"},
            {"call": "$(rm)/skidway"}, {"call": "python -m other"}, {"verb": "agent run; rm"},
            {"unit": "a b"}, {"call": "'"}, {"call": "rm -- skidway"},
            {"call": "runuser --pty -u u -- rm"}, {"call": "runuser -u u -- skidway"},
            {"call": "runuser --pty -c id -u u -- skidway"},
        )),
    ],
)  # fmt: skip
def test_what_has_another_form_says_nothing(record: object) -> None:
    """A record that lacks parts or has another form, as a newer version may write it, gives the
    commands of a program that has told nothing. So does a record whose commands would run another
    program than `skidway`."""
    assert invocation_of(record) == Invocation()
