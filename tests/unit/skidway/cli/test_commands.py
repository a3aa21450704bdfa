from __future__ import annotations

import argparse
import errno
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from skidway.cli import commands, main
from skidway.errors import ConfigurationRefused, Unreachable

ASKED: list[argparse.Namespace] = []


def register(subparsers: Any) -> None:
    """Adds the noun `fake` (the first word of a command) with the verbs (second words) of RUNS."""
    parser = subparsers.add_parser("fake", help="a fake")
    verbs = parser.add_subparsers(dest="verb")
    for verb, run in RUNS.items():
        each = verbs.add_parser(verb)
        each.add_argument("--long-option")
        each.set_defaults(run=run)


def _go(args: argparse.Namespace) -> int:
    ASKED.append(args)
    return 1


def _raise(error: BaseException) -> Any:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


RUNS = {
    "go": _go,
    "refuse": _raise(ConfigurationRefused("broker.yml, line 3: unknown key 'x'")),
    "unreachable": _raise(Unreachable("nobody at 127.0.0.1:9092")),
    "interrupt": _raise(KeyboardInterrupt()),
    "lack": _raise(ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql")),
    "mistake": _raise(KeyError("x")),
    "full": _raise(OSError(errno.ENOSPC, "No space left on device")),
    "device": _raise(OSError(errno.EIO, "Input/output error")),
    "not-utf8": lambda _: len("\udcff".encode()),
    "print": lambda _: print("said") or 0,
    "own": _raise(ModuleNotFoundError("No module named 'skidway.x'", name="skidway.x")),
}


@pytest.fixture(autouse=True)
def _fake_nouns(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[__name__]
    monkeypatch.setitem(sys.modules, "a_fake_noun", module)
    points = [
        EntryPoint("fake", "a_fake_noun:register", commands.GROUP),
        EntryPoint("load", "a_module_that_is_not_there:register", commands.GROUP),
    ]
    monkeypatch.setattr(commands, "entry_points", lambda group: points)


@pytest.mark.parametrize(
    ("verb", "status", "sentence"),
    [
        ("full", 1, "skidway: cannot write: No space left on device\n"),
        ("not-utf8", 2, "skidway: an argument is not UTF-8, but what it names must be\n"),
    ],
)
def test_what_the_caller_can_mend_is_no_mistake_of_ours(
    verb: str, status: int, sentence: str,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """If the disk to which a command writes its output is full, or if an argument is not UTF-8, the
    command prints one sentence. It does not end with status 70, which means a fault of Skidway."""
    monkeypatch.setattr(commands, "_forget_output", lambda: None)
    assert main(["fake", verb]) == status
    assert capsys.readouterr().err == sentence
    assert main(["fake", "device"]) == 70


def test_an_output_that_is_closed_is_no_mistake_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command whose standard output is closed (`>&-`) ends with status 0."""
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["fake", "print"]) == 0
    sys.stdout.close()  # `main` had put a new stream in place of the missing one


def test_verb_gets_its_options_and_gives_its_status() -> None:
    """The exit status of a command is the value that its function returns."""
    ASKED.clear()
    assert main(["fake", "go", "--long-option", "x"]) == 1
    assert ASKED[0].long_option == "x"


@pytest.mark.parametrize(("verb", "status"), [("refuse", 78), ("unreachable", 3)])
def test_known_error_is_one_sentence(
    verb: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A known error is printed as one line on standard error, and the command ends with the exit
    status for this kind of error."""
    assert main(["fake", verb]) == status
    err = capsys.readouterr().err
    assert err.startswith("skidway fake: ")
    assert err.count("\n") == 1


def test_a_mistake_of_our_own_is_status_70(capsys: pytest.CaptureFixture[str]) -> None:
    """After an unexpected exception the command prints a traceback and ends with status 70. Status
    1 would be mistaken for a negative result of the command."""
    assert main(["fake", "mistake"]) == 70
    assert "KeyError: 'x'" in capsys.readouterr().err


def test_missing_extra_names_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    """On a host without Spark, a command that needs Spark prints one sentence that says what to
    install. It does not matter whether the import fails when the command is looked up or while the
    command runs."""
    assert main(["load", "run"]) == 1
    err = capsys.readouterr().err
    assert "a_module_that_is_not_there is not installed here" in err
    assert f"{sys.executable} -m pip install" in err
    assert "'pyspark<4.4,>=4.1'" in err
    assert "skidway[" not in err, "nothing is published under that name"
    assert main(["fake", "lack"]) == 1
    assert "the Python module pyspark.sql is not installed here" in capsys.readouterr().err


def test_missing_own_module_is_not_blamed_on_an_extra(capsys: pytest.CaptureFixture[str]) -> None:
    """If one of Skidway's own modules is missing, the error names it, and names no packages to
    install."""
    assert main(["fake", "own"]) == 1
    err = capsys.readouterr().err
    assert "lacks its own module skidway.x" in err
    assert "pip install" not in err


def test_asking_for_one_noun_imports_no_other() -> None:
    """If all modules for a command's noun (its first word) are installed, the command works, even
    if the modules for another noun are missing."""
    assert main(["fake", "print"]) == 0


def test_unknown_noun_is_a_usage_error_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """A command with a mistyped noun ends with status 2 and a sentence that names the most similar
    noun."""
    assert main(["fkae"]) == 2
    assert "did you mean 'fake'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [["fake"], ["fake", "nothing"], ["fake", "go", "--nothing"], ["fake", "go", "--long", "x"]],
)
def test_usage_error_is_status_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """After a missing or unknown verb, or an unknown or abbreviated option, the command prints its
    usage on stderr and ends with status 2."""
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert "usage: skidway fake" in captured.err
    assert captured.out == ""


def test_overview_lists_nouns_without_importing_them(capsys: pytest.CaptureFixture[str]) -> None:
    """`skidway --help` works on a host on which only Skidway's core is installed, without the
    programs' modules."""
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "fake" in out
    assert "load" in out
    assert main([]) == 2


def test_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """`skidway --version` names the program and its version."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("skidway ")


def test_interrupt_is_status_130() -> None:
    """Ctrl-C ends a command with status 130, as shells expect."""
    assert main(["fake", "interrupt"]) == 130
