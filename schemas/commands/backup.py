"""`skidway schemas dump|restore`: writes the contents of a registry to a file or a topic, or
restores a registry from such a file or topic."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from skidway.cli.connection import connection
from skidway.cli.options import add_bootstrap_option
from skidway.cli.output import Progress, print_json
from skidway.cli.streams import write_data
from skidway.errors import UsageError
from skidway.files import write_atomically
from skidway.schemas.client import RegistryAdministration
from skidway.schemas.commands.connection import add_verb, connect
from skidway.schemas.dump import contents as dumped
from skidway.schemas.dump import registry
from skidway.schemas.dump.contents import Contents, only, replay
from skidway.schemas.dump.records import DumpRefused, Record, console_line, line, read_lines
from skidway.schemas.dump.restoring import Steps, live_losses, steps, supported, unsupported

TOPIC = "_schemas"
NAMED_MAX = 5
NOTICED_S = 1.0


def register(verbs: Any) -> None:
    """Adds the verbs `dump` and `restore`."""
    words = "write everything that a registry holds, as the records of a _schemas topic"
    dump = add_verb(verbs, "dump", words, _dump)
    dump.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="to write (standard output)"
    )
    dump.add_argument(
        "--console", action="store_true", help="write key, tab, value: for kafka-console-producer"
    )
    _add_topic(dump, "--to-topic", "write into this empty topic instead of a file")
    words = "restore a dump, with its ids and versions"
    restore = add_verb(verbs, "restore", words, _restore)
    restore.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="to read: a dump (standard input)"
    )
    _add_topic(restore, "--from-topic", "read this topic instead of a file")
    restore.add_argument("--no-modes", action="store_true", help="leave the modes as they are")
    restore.add_argument(
        "--skip-unsupported", action="store_true", help="leave out what this registry cannot keep"
    )
    restore.add_argument("--dry-run", action="store_true", help="only say what would be done")
    restore.add_argument(
        "--yes",
        action="store_true",
        help="also soft-delete what is live here and soft-deleted in the dump",
    )


def _add_topic(verb: argparse.ArgumentParser, option: str, words: str) -> None:
    verb.add_argument(
        "--subject", action="append", metavar="S", help="only this subject; may be repeated"
    )
    verb.add_argument(
        option, dest="topic", nargs="?", const=TOPIC, metavar="TOPIC", help=f"{words} ({TOPIC})"
    )
    add_bootstrap_option(verb)


def _dump(args: argparse.Namespace) -> int:
    found = _chosen(_contents(connect(args)), args)
    records = list(dumped.records(found))
    if args.topic is not None:
        from skidway.schemas.dump.topic import write_topic

        kafka = connection(args)
        with kafka.client() as client:
            write_topic(kafka, client, records, args.topic)
        where = f"topic {args.topic}"
    else:
        where = _write(args.file, records, console_line if args.console else line)
    summary = {
        "subjects": len(found.subjects()),
        "versions": len(found.versions),
        "deleted": sum(each.deleted for each in found.versions.values()),
        "highest_id": found.highest_id,
        "to": where,
    }
    _tell_summary(summary, args, to_stderr=args.topic is None and args.file == "-")
    return 0


def _restore(args: argparse.Namespace) -> int:
    wanted = _chosen(replay(_records(args)), args)
    client = connect(args)
    wanted = _supported(wanted, client.types(), args)
    there = _contents(client)
    planned = steps(wanted, there, with_modes=not args.no_modes)
    losses = live_losses(planned, there)
    if losses and not args.yes and not args.dry_run:
        named = ", ".join(map(str, losses[:NAMED_MAX]))
        raise UsageError(
            f"{len(losses)} versions are live here and soft-deleted in the dump ({named}): "
            "repeat with --yes to soft-delete them."
        )
    if planned and not args.dry_run:
        with Progress("restored", len(planned.imports) + len(planned.deletions)) as progress:
            registry.carry_out(client, planned, there, _patient(progress))
    _tell_summary(_summary(planned, wanted, done=not args.dry_run), args)
    return 0


def _contents(client: RegistryAdministration) -> Contents:
    with Progress("subjects read", 0) as progress:
        return registry.read(client, _patient(progress))


def _patient(progress: Progress) -> Callable[[int, int], None]:
    """Returns a function that shows progress with `progress`, but shows nothing in the first
    `NOTICED_S` seconds."""
    begin = time.monotonic()

    def tell(done: int, _: int) -> None:
        if time.monotonic() - begin > NOTICED_S:
            progress.show(done)

    return tell


def _chosen(found: Contents, args: argparse.Namespace) -> Contents:
    if not args.subject:
        return found
    missing = sorted(set(args.subject) - set(found.subjects()))
    if missing:
        raise DumpRefused(f"There is no subject {', '.join(missing)}.")
    return only(found, args.subject)


def _supported(wanted: Contents, types: list[str], args: argparse.Namespace) -> Contents:
    faults = unsupported(wanted, types)
    if not faults:
        return wanted
    named = "; ".join(faults[:NAMED_MAX]) + ("; ..." if len(faults) > NAMED_MAX else "")
    if not args.skip_unsupported:
        raise DumpRefused(
            f"This registry cannot keep {len(faults)} things of the dump ({named}): leave them out "
            "with --skip-unsupported."
        )
    print(f"left out: {named}", file=sys.stderr)
    return supported(wanted, types)


def _records(args: argparse.Namespace) -> Iterable[Record]:
    if args.topic is not None:
        from skidway.schemas.dump.topic import read_topic

        with connection(args).client() as client:
            return list(read_topic(client, args.topic))
    with ExitStack() as stack:
        try:
            lines = sys.stdin if args.file == "-" else stack.enter_context(_open(args.file))
            return list(read_lines(lines))
        except UnicodeDecodeError as error:
            raise DumpRefused(f"{args.file} is not UTF-8.") from error


def _open(file: str) -> Any:
    try:
        return Path(file).open(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"Cannot read {file}: {(error.strerror or str(error)).lower()}."
        ) from error


def _write(file: str, records: list[Record], shown: Callable[[Record], str]) -> str:
    text = "".join(shown(each) + "\n" for each in records)
    if file == "-":
        write_data(text.encode())
        return "standard output"
    try:
        _put(Path(file), text.encode())
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"Cannot write {file}: {why}.") from error
    return file


def _put(path: Path, data: bytes) -> None:
    """Writes a file atomically. If `path` is a symbolic link, replaces the file to which it points.
    If `path` is a device or a pipe, writes into it without replacing it."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        write_atomically(path, data)


def _summary(planned: Steps, wanted: Contents, *, done: bool) -> dict[str, Any]:
    return {
        "done": done,
        "in_dump": len(wanted.versions),
        "imported": len(planned.imports),
        "deleted": len(planned.deletions),
        "levels": len(planned.levels),
        "modes": len(planned.modes),
        "highest_id": wanted.highest_id,
        "passed_over": sum(wanted.passed_over.values()),
    }


def _tell_summary(
    summary: dict[str, Any], args: argparse.Namespace, *, to_stderr: bool = False
) -> None:
    if to_stderr:
        text = ", ".join(f"{value} {key}" for key, value in summary.items() if key != "to")
        print(text, file=sys.stderr)
    elif args.json:
        print_json(summary)
    else:
        for key, value in summary.items():
            print(f"{key.replace('_', ' ')}: {value}")
