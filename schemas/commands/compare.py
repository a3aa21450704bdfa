"""`skidway schemas diff|infer`: shows what differs between two schemas, and proposes a schema for a
log."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from skidway.cli.options import add_json_option
from skidway.cli.output import print_json, render_table
from skidway.errors import UsageError
from skidway.schemas.advice import advise
from skidway.schemas.avro_schema import AvroType, parse
from skidway.schemas.client import Registered, RegistryAdministration
from skidway.schemas.client.resolution import Resolver
from skidway.schemas.commands.arguments import add_subject, checked_text, references
from skidway.schemas.commands.connection import add_verb, connect
from skidway.schemas.commands.verdict import compatible_under
from skidway.schemas.compatibility import Level
from skidway.schemas.inference import Inference, infer, read_lines
from skidway.schemas.inference.formats import known


def register(verbs: Any) -> None:
    """Adds the verbs `diff` and `infer`."""
    words = "show what differs between two versions, or between a version and a file"
    diff = add_verb(verbs, "diff", words, _diff)
    add_subject(diff)
    diff.add_argument("file", nargs="?", metavar="FILE", help="the new schema; - is standard input")
    diff.add_argument(
        "--against",
        metavar="OLD",
        help="compare two files: diff --against OLD NEW; no registry is asked",
    )
    diff.add_argument(
        "--from", type=int, dest="old", metavar="N", help="the old version (the one before)"
    )
    diff.add_argument(
        "--to", type=int, dest="new", metavar="N", help="the new version (the latest)"
    )
    diff.add_argument(
        "--reference",
        action="append",
        default=[],
        metavar="NAME=SUBJECT:VERSION",
        help="what FILE references",
    )
    words = "propose a schema for the lines of a log, with the share of each field"
    infer_verb = verbs.add_parser("infer", help=words, description=words)
    infer_verb.add_argument("file", metavar="FILE", help="the log; - is standard input")
    infer_verb.add_argument("--name", default="Line", metavar="N", help="name of the record (Line)")
    infer_verb.add_argument("--namespace", metavar="N", help="namespace of its types (none)")
    infer_verb.add_argument(
        "--format",
        choices=list(known()),
        help="format of the lines (told by the first ones)",
    )
    add_json_option(infer_verb)
    infer_verb.set_defaults(run=_infer)


def _diff(args: argparse.Namespace) -> int:
    if args.against is not None:
        return _diff_files(args)
    client = connect(args)
    resolver = Resolver(client)
    if args.file is not None:
        if args.new is not None:
            raise UsageError("FILE is the new schema: --to names another.")
        old = _version(client, args.subject, args.old)
        new_name = args.file
        takes = references(args)
        new = resolver.parsed(checked_text(args.file, has_references=bool(takes)), takes)
    else:
        newest = _version(client, args.subject, args.new)
        old = client.version(args.subject, args.old or _before(client, newest))
        new_name = str(newest.version)
        new = resolver.of(newest)
    before = resolver.of(old)
    named = {"subject": args.subject, "from": old.version, "to": new_name}
    _show(args, f"{args.subject}: from version {old.version} to {new_name}", named, before, new)
    return 0


def _diff_files(args: argparse.Namespace) -> int:
    """Compares the schemas in two files. Called if --against is given; the argument SUBJECT is then
    the path of the new file."""
    if args.file is not None or args.old is not None or args.new is not None or args.reference:
        raise UsageError("--against OLD takes one FILE, and neither subject nor registry.")
    new_name = args.subject
    before, new = parse(checked_text(args.against)), parse(checked_text(new_name))
    named = {"from": args.against, "to": new_name}
    _show(args, f"from {args.against} to {new_name}", named, before, new)
    return 0


def _show(
    args: argparse.Namespace, title: str, named: dict[str, Any], before: AvroType, new: AvroType
) -> None:
    advice = advise([(1, before)], new, Level.NONE)
    # a transitive level also asks for the versions that are not compared here
    levels = [each.value for each in advice.allowed_by if not each.is_transitive]
    if args.json:
        rows = [asdict(each) for each in advice.differences]
        print_json({**named, "differences": rows, "allowed_by": levels})
        return
    print(title)
    for each in advice.differences:
        print(f"  {each}")
    if not advice.differences:
        print("  no difference")
    print(compatible_under(levels))


def _infer(args: argparse.Namespace) -> int:
    kind = None if args.format is None else known()[args.format]
    with _opened(args.file) as file:
        found = infer(read_lines(file), name=args.name, namespace=args.namespace, kind=kind)
    if args.json:
        print_json(
            {
                "schema": found.schema, "format": found.format.name, "lines": found.lines,
                "fitting": found.fitting, "unfit": found.unfit, "left_out": found.left_out,
                "fields": [asdict(each) for each in found.fields],
            }
        )  # fmt: skip
    else:
        sys.stderr.write(_shares(found))
        sys.stdout.write(found.text)
    return 0


def _shares(found: Inference) -> str:
    """Returns a text that says how many lines have each field of the proposed schema. The verb
    prints this text on standard error, because standard output gets only the schema."""
    rows = [
        {"field": each.place, "type": each.type, "lines": each.lines, "share": f"{each.share:.1%}"}
        for each in found.fields
    ]
    head = f"{found.format.name}: {found.fitting:,} of {found.lines:,} lines\n"
    unfit = "".join(f"  {count:,} lines: {why}\n" for why, count in found.unfit.items())
    left = f"{found.left_out:,} values are left out: too many\n" if found.left_out else ""
    return head + unfit + left + render_table(rows, ["field", "type", "lines", "share"])


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        opened = Path(file).open("rb")  # noqa: SIM115 closed below
    except OSError as error:
        raise UsageError(
            f"Cannot read {file}: {(error.strerror or str(error)).lower()}."
        ) from error
    with opened:
        yield opened


def _version(client: RegistryAdministration, subject: str, number: int | None) -> Registered:
    return client.latest(subject) if number is None else client.version(subject, number)


def _before(client: RegistryAdministration, newest: Registered) -> int:
    earlier = [each for each in client.versions(newest.subject) if each < newest.version]
    if not earlier:
        raise UsageError(
            f"{newest.subject} has no version before {newest.version}: name one with --from."
        )
    return earlier[-1]
