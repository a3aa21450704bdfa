"""Adds and reads the arguments that several verbs share: a schema's file, its references, a
version."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from skidway.errors import SkidwayError, UsageError
from skidway.schemas.avro_schema import SchemaInvalid, parse
from skidway.schemas.client import Reference
from skidway.text_file import NotUtf8, decoded, read_text

LATEST = "latest"
SUFFIX = ".avsc"


def add_subject(parser: argparse.ArgumentParser) -> None:
    """Adds the argument SUBJECT to a verb."""
    parser.add_argument("subject", metavar="SUBJECT", help="for example hdfs-logs-value")


def add_schemas(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments SUBJECT and FILE, and the options --reference and --by-name. With
    --by-name, the user gives several files and no SUBJECT, because each file is named after its
    subject."""
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="SUBJECT and FILE (JSON; - is standard input); with --by-name files alone",
    )
    parser.add_argument(
        "--by-name",
        action="store_true",
        help=f"files, or directories of *{SUFFIX}: each is named after its subject",
    )
    parser.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME=SUBJECT:VERSION",
        help="a type that the schema takes from another subject; may be repeated",
    )


def subjects_and_files(args: argparse.Namespace) -> list[tuple[str, str]]:
    """Returns the subject and file of each schema in the arguments. Raises `UsageError`."""
    if not args.by_name:
        if len(args.names) != 2:
            raise UsageError("Name SUBJECT and FILE, or files with --by-name.")
        return [(args.names[0], args.names[1])]
    if args.reference:
        raise UsageError("--reference belongs to one schema: do not use it with --by-name.")
    files = [file for name in args.names for file in _files(Path(name))]
    return [(file.name.removesuffix(SUFFIX), str(file)) for file in files]


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob(f"*{SUFFIX}"))
    if not found:
        raise UsageError(f"{path} has no file *{SUFFIX}.")
    return found


def checked_text(file: str, *, has_references: bool = False) -> str:
    """Returns the text of a schema's file after a check that needs no registry. If the schema has
    references, only checks that the text is JSON. Raises `SchemaInvalid` with the file's name in
    the message, and the errors of `schema_text`."""
    text = schema_text(file)
    try:
        if has_references:
            json.loads(text)
        else:
            parse(text)
    except (SchemaInvalid, ValueError, RecursionError) as error:
        raise SchemaInvalid(f"{file}: {error}") from None
    return text


def references(args: argparse.Namespace) -> tuple[Reference, ...]:
    """Returns the references that the options --reference give. Raises `UsageError`."""
    return tuple(map(_reference, args.reference))


def version_number(text: str) -> int | str:
    """Returns the number of a version that the user has given, or `latest`. Raises `UsageError` for
    any other text."""
    if text == LATEST:
        return text
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise UsageError(f"--version: {text!r} is neither a number nor latest.")
    return int(text)


def schema_text(file: str) -> str:
    """Returns the text of a file without any check of the schema. Raises `UsageError` or
    `SkidwayError` if the file cannot be read."""
    try:
        return decoded(sys.stdin.buffer.read()) if file == "-" else read_text(Path(file))
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"Cannot read {file}: {why}.") from error
    except NotUtf8 as error:
        raise SkidwayError(f"{file}: {error}.") from error


def _reference(text: str) -> Reference:
    name, equals, rest = text.partition("=")
    subject, colon, version = rest.rpartition(":")
    good = name and equals and subject and colon and version.isascii() and version.isdigit()
    if not good:
        raise UsageError(f"--reference: {text!r} is not NAME=SUBJECT:VERSION.")
    return Reference(name, subject, int(version))
