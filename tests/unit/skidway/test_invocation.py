"""Tests what a program says about how it was started, and the commands that are printed from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway import invocation
from skidway.invocation import Invocation, invocation_of, of_arguments, record_of

HERE = "/home/me/site"


@pytest.mark.parametrize(
    ("arguments", "unit", "start", "other"),
    [
        (["agent", "run"], "skidway-agent", "systemctl start skidway-agent", "skidway V"),
        (
            ["audit", "count", "--config", "/etc/skidway/audit-count-dc1.yml"],
            "skidway-audit-count@dc1",
            "systemctl start skidway-audit-count@dc1",
            "skidway V --config /etc/skidway/audit-count-dc1.yml",
        ),
        (
            ["broker", "run", "--config", "/etc/skidway/broker.yml"], "",
            "skidway broker run", "skidway V",
        ),
        (
            ["broker", "run", "--config=/my site/b.yml", "--log-level", "debug"], "",
            "skidway broker run --config '/my site/b.yml'", "skidway V --config '/my site/b.yml'",
        ),
        (
            ["agent", "run", "--config", "agent.yml"], "",
            f"cd {HERE} && skidway agent run --config agent.yml",
            f"cd {HERE} && skidway V --config agent.yml",
        ),
        (
            ["broker", "run", "--set", "log.dirs=data", "--set", "a=b c"], "",
            f"cd {HERE} && skidway broker run --set log.dirs=data --set 'a=b c'",
            f"cd {HERE} && skidway V --set log.dirs=data --set 'a=b c'",
        ),
    ],
)  # fmt: skip
def test_a_program_is_started_and_asked_with_its_settings(
    arguments: list[str], unit: str, start: str, other: str
) -> None:
    """A printed command starts a program as it was started, or runs another verb with the same
    settings. It names no file that the verb reads anyway. If the options are paths below the
    directory in which the program was started, it begins in this directory. A record of an
    invocation gives the same commands."""
    made = of_arguments(["/opt/tests", *arguments], unit=unit, directory=HERE)
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
    "record",
    [
        None, 7, {}, {"call": 3},
        *({**record_of(Invocation()), **x} for x in (
            {"options": "--config"}, {"call": "rm -rf / #"}, {"call": "skidway; rm"},
            {"call": "$(rm)/skidway"}, {"call": "python -m other"}, {"verb": "agent run; rm"},
            {"unit": "a b"}, {"call": "'"},
        )),
    ],
)  # fmt: skip
def test_what_has_another_form_says_nothing(record: object) -> None:
    """A record that lacks parts or has another form, as a newer version may write it, gives the
    commands of a program that has told nothing. So does a record whose commands would run another
    program than `skidway`."""
    assert invocation_of(record) == Invocation()
