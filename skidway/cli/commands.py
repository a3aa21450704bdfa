"""Runs the command that argv gives, and returns its exit status. Finds the entry point of the noun,
and imports only this noun's module."""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import re
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points, version
from typing import NoReturn

from skidway import extras, lean_arrow
from skidway.cli import streams
from skidway.errors import UNEXPECTED_EXIT_CODE, SkidwayError, UsageError

GROUP = "skidway.commands"
OUR_PACKAGE = "skidway"

NOUNS: dict[str, tuple[str, str]] = {
    # maps each noun to the extra (the optional packages) that it needs, and to its help text
    "acls": ("broker", "list, add and remove rules of access control, or apply a file of them"),
    "agent": ("agent", "tail log files of this host and publish them"),
    "audit": ("audit", "count, compare and report completeness"),
    "broker": ("broker", "take, keep and hand out record batches"),
    "completion": ("broker", "print the completion script for bash or zsh"),
    "consume": ("registry", "print records of a topic, Avro by the schemas of a registry"),
    "demo": ("demo", "run the whole pipeline on this machine"),
    "doctor": ("broker", "say what this machine lacks, and what to do about it"),
    "groups": ("columns", "list, describe and reset consumer groups"),
    "load": ("loader", "load topics into Parquet on Spark"),
    "mirror": ("broker", "show how the mirrors of a broker follow their sources"),
    "produce": ("columns", "send lines from standard input to a topic"),
    "registry": ("registry", "serve schemas by subject, version and id"),
    "rejected": ("registry", "show rejected lines, the reasons, and where the lines are"),
    "schemas": ("registry", "define, evolve and retire schemas; dump and restore a registry"),
    "topics": ("broker", "list, create, describe, alter and delete topics"),
    "unit": ("broker", "print the systemd units of this version"),
    "users": ("broker", "list, add and remove users with passwords"),
    "zookeeper": ("zookeeper", "run a real ZooKeeper server in the foreground"),
}

INTERRUPTED = 130
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SURROGATES = re.compile(r"[\ud800-\udfff]")
PIPE_CLOSED = 141


class Parser(argparse.ArgumentParser):
    """A parser that accepts no abbreviated options. If it accepted them, a new option could make an
    abbreviation ambiguous, and scripts that use this abbreviation would fail.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns the command's own exit status: 0, 1, 2, 3, 65 or 78 (`skidway demo`
    has others, too). Returns 70 after a bug in Skidway, 130 after Ctrl-C, and 141 if the program
    that reads the output has ended."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _narrow_umask()
    _open_closed_outputs()
    with streams.guarded():
        return _status(arguments)


def _status(arguments: list[str]) -> int:
    """Runs one command. Returns the exit status, whatever ends the command."""
    try:
        return _run_to_end(arguments)
    except SkidwayError as error:
        noun = next((a for a in arguments if not a.startswith("-")), "")
        # flush first, so that the error is last if both outputs go to one file
        _flush_output()
        sys.stderr.write(f"{f'skidway {noun}'.strip()}: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return PIPE_CLOSED
    except UnicodeEncodeError as error:
        if not _SURROGATES.search(error.object):
            return _our_mistake()
        sys.stderr.write("skidway: an argument is not UTF-8, but what it names must be\n")
        return UsageError.exit_code
    except OSError as error:
        if error.errno not in _NO_ROOM:
            return _our_mistake()
        _forget_output()
        sys.stderr.write(f"skidway: cannot write: {error.strerror}\n")
        return SkidwayError.exit_code
    except Exception:  # noqa: BLE001 - the outermost frame of a command
        return _our_mistake()
    except SystemExit as error:  # argparse raises it: with 0 after --help, 2 after a usage error
        return error.code if isinstance(error.code, int) else 2


def _narrow_umask() -> None:
    """Lets nobody else read what this process makes, unless unit or shell have set another umask
    than the usual one. Code that makes files for others sets their mode itself."""
    before = os.umask(0o077)
    if before & ~0o022:
        os.umask(before)


def _open_closed_outputs() -> None:
    """Replaces standard output or standard error by /dev/null if the caller has closed it (`>&-`),
    so that writing to it does not fail."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - open until the end


def _run_to_end(arguments: list[str]) -> int:
    """Runs the command, then flushes standard output. Returns the exit status. Raises an error if
    the output cannot be written."""
    status = _run(arguments)
    sys.stdout.flush()
    return status


def _our_mistake() -> int:
    _flush_output()
    traceback.print_exc()
    sys.stderr.write("skidway: this is a mistake of Skidway's own; please report it\n")
    return UNEXPECTED_EXIT_CODE


def _flush_output() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()


def _forget_output() -> None:
    """Sends the rest of the output to /dev/null, because the output's reader (such as head or less)
    has ended, or because the disk is full. If the rest stayed in the buffer, the flush that Python
    itself does at exit would raise a second error.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    commands = {point.name: point for point in entry_points(group=GROUP)}
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        sys.stdout.write(_overview(commands))
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version"):
        sys.stdout.write(f"skidway {version('skidway')}\n")
        return 0
    noun = arguments[0]
    if noun not in commands:
        near = difflib.get_close_matches(noun, commands, n=1)
        hint = f"; did you mean '{near[0]}'?" if near else "; `skidway --help` lists them"
        sys.stderr.write(f"skidway: no such command: '{noun}'{hint}\n")
        return 2
    lean_arrow.leave_out()
    try:
        parser, noun_parser = _parsers(commands[noun])
        args, unknown = parser.parse_known_args(arguments)
        if unknown:
            noun_parser.error(f"unknown arguments: {' '.join(unknown)}")
        return int(args.run(args))
    except ModuleNotFoundError as error:
        _refuse_missing(noun, error)


def _parsers(point: EntryPoint) -> tuple[Parser, Parser]:
    parser = Parser(prog="skidway")
    subparsers = parser.add_subparsers(dest="noun", metavar="NOUN", required=True)
    point.load()(subparsers)
    noun_parser = subparsers.choices[point.name]
    if noun_parser.get_default("run") is None:
        noun_parser.set_defaults(run=lambda _args: _verb_missing(noun_parser))
    return parser, noun_parser


def _verb_missing(parser: argparse.ArgumentParser) -> int:
    parser.print_help(sys.stderr)
    return 2


def _refuse_missing(noun: str, error: ModuleNotFoundError) -> NoReturn:
    missing = (error.name or "").partition(".")[0]
    if missing == OUR_PACKAGE:
        raise SkidwayError(f"this installation lacks its own module {error.name}") from error
    extra = NOUNS.get(noun, (noun, ""))[0]
    raise SkidwayError(
        f"the Python module {error.name} is not installed here; "
        f"install what this command needs with: {extras.how(extra)}"
    ) from error


def _overview(commands: dict[str, EntryPoint]) -> str:
    width = max(map(len, commands), default=0)
    lines = [f"  {noun:<{width}}  {NOUNS.get(noun, ('', ''))[1]}" for noun in sorted(commands)]
    return "\n".join(
        [
            "usage: skidway NOUN VERB [options]",
            "",
            "Moves application logs into Hadoop, exactly once, and proves that nothing was lost.",
            "",
            *[line.rstrip() for line in lines],
            "",
            "`skidway NOUN --help` lists the verbs, `skidway NOUN VERB --help` the options.",
            "",
        ]
    )
