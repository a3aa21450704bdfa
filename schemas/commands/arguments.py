"""Arguments that several verbs take: a schema's file, its references, a version."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schemas.client import Reference
from skidway.errors import SkidwayError, UsageError

LATEST = "latest"


def add_subject(parser: argparse.ArgumentParser) -> None:
    """Adds SUBJECT."""
    parser.add_argument("subject", metavar="SUBJECT", help="for example hdfs-logs-value")


def add_schema(parser: argparse.ArgumentParser) -> None:
    """Adds SUBJECT, FILE and --reference."""
    add_subject(parser)
    parser.add_argument("file", metavar="FILE", help="the schema, JSON; - is standard input")
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME=SUBJECT:VERSION",
        help="a type that the schema takes from another subject; may be repeated",
    )


def references(args: argparse.Namespace) -> tuple[Reference, ...]:
    """What --reference names. Raises `UsageError`."""
    return tuple(map(_reference, args.reference))


def version_number(text: str) -> int | str:
    """A version's number, or `latest`. Raises `UsageError`."""
    if text == LATEST:
        return text
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise UsageError(f"--version: {text!r} is neither a number nor latest.")
    return int(text)


def schema_text(file: str) -> str:
    """The text of a file, as it is. Raises `UsageError`, `SkidwayError`."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"Cannot read {file}: {why}.") from error
    except UnicodeDecodeError as error:
        raise SkidwayError(f"{file} is not UTF-8.") from error


def _reference(text: str) -> Reference:
    name, equals, rest = text.partition("=")
    subject, colon, version = rest.rpartition(":")
    good = name and equals and subject and colon and version.isascii() and version.isdigit()
    if not good:
        raise UsageError(f"--reference: {text!r} is not NAME=SUBJECT:VERSION.")
    return Reference(name, subject, int(version))
