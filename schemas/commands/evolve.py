"""`skidway schemas register|check`: registers a schema as the next version of a subject, or checks
whether the registration is allowed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from skidway.cli.output import print_json
from skidway.errors import SkidwayError, Unreachable, UsageError
from skidway.schemas.avro_schema import parse
from skidway.schemas.client import SUBJECT_UNKNOWN, RegistryAdministration, RegistryRefused
from skidway.schemas.commands.arguments import (
    add_schemas,
    checked_text,
    references,
    subjects_and_files,
    version_number,
)
from skidway.schemas.commands.connection import add_verb, connect
from skidway.schemas.commands.verdict import Asked, Verdict, local_verdict, notes, verdict
from skidway.schemas.compatibility import Level

INCOMPATIBLE = 409
NOTES_MAX = 20


def register(verbs: Any) -> None:
    """Adds the verbs `register` and `check`."""
    words = "register a schema under a subject, and print its id"
    made = add_verb(verbs, "register", words, _register)
    add_schemas(made)
    made.add_argument("--dry-run", action="store_true", help="only say what would happen")
    words = "say whether a schema is compatible with earlier versions; exit status 1 if not"
    check = add_verb(verbs, "check", words, _check)
    add_schemas(check)
    check.add_argument(
        "--version", metavar="N", help="only with version N, or latest (as a registration compares)"
    )
    check.add_argument(
        "--new-subject", action="store_true", help="accept a SUBJECT that has no version yet"
    )
    check.add_argument(
        "--against", metavar="OLD", help="compare with a file instead; no registry is asked"
    )
    check.add_argument(
        "--level", default=Level.BACKWARD.value, choices=[each.value for each in Level],
        help="level for --against (BACKWARD)",
    )  # fmt: skip


def _register(args: argparse.Namespace) -> int:
    asked = _schemas(args)
    client = connect(args)
    act = _would_register if args.dry_run else _registered
    return _every(args, asked, lambda each: act(client, each))


def _registered(client: RegistryAdministration, asked: Asked) -> Verdict:
    """Registers a schema. If the schema is incompatible, does not register it, and returns the same
    verdict as the verb `check`."""
    try:
        schema_id = client.register(asked.subject, asked.text, asked.takes)
    except RegistryRefused as refused:
        if refused.status != INCOMPATIBLE:
            raise
        why = verdict(client, asked, None)
        if why.is_good:  # the schema became compatible after the registration was refused
            raise
        return why
    found = client.lookup(asked.subject, asked.text, asked.takes)
    version = None if found is None else found.version
    return Verdict(
        True,
        {"subject": asked.subject, "version": version, "id": schema_id},
        f"{asked.subject} version {version} has id {schema_id}\n",
        notes(client, asked),
    )


def _would_register(client: RegistryAdministration, asked: Asked) -> Verdict:
    found = client.lookup(asked.subject, asked.text, asked.takes)
    if found is None:
        return verdict(client, asked, None)
    return Verdict(
        True,
        {"subject": asked.subject, "version": found.version, "id": found.id},
        f"{asked.subject} version {found.version} is this schema, with id {found.id}\n",
    )


def _check(args: argparse.Namespace) -> int:
    if args.against is not None:
        return _check_files(args)
    asked = _schemas(args)
    version = None if args.version is None else version_number(args.version)
    client = connect(args)

    def check(each: Asked) -> Verdict:
        if not args.new_subject:
            _check_known(client, each.subject)
        return verdict(client, each, version)

    return _every(args, asked, check)


def _check_files(args: argparse.Namespace) -> int:
    if len(args.names) != 1 or args.by_name or args.reference or args.version:
        raise UsageError("--against OLD takes one FILE, and neither subject nor registry.")
    old, (new,) = checked_text(args.against), args.names
    text = checked_text(new)
    found = local_verdict(args.against, parse(old), parse(text), Level(args.level))
    return _every(args, [Asked(new, text, ())], lambda _: found)


def _every(args: argparse.Namespace, asked: list[Asked], act: Callable[[Asked], Verdict]) -> int:
    """Calls `act` for each schema and prints the verdicts. If the registry becomes unreachable at
    one of the schemas, still prints the verdicts on the earlier schemas. Returns the exit status: 1
    if a verdict is bad, otherwise 0."""
    found: list[Verdict] = []
    try:
        for each in asked:
            found.append(_one_of_several(each, act) if args.by_name else act(each))
            _say_notes(each.subject, found[-1].notes)
            if not args.json:
                sys.stdout.write(found[-1].text)
    finally:
        if args.json and found:
            documents = [each.document for each in found]
            print_json(documents if args.by_name else documents[0])
    return 0 if all(each.is_good for each in found) else 1


def _one_of_several(asked: Asked, act: Callable[[Asked], Verdict]) -> Verdict:
    """Returns the verdict of `act` on one of several schemas. If `act` raises an error, returns a
    bad verdict with the error, so that the other schemas still get their verdicts. Raises only
    `Unreachable`."""
    try:
        return act(asked)
    except Unreachable:
        raise
    except SkidwayError as error:
        document = {"subject": asked.subject, "error": str(error)}
        return Verdict(False, document, f"{asked.subject}: {error}\n")


def _say_notes(subject: str, notes: tuple[str, ...]) -> None:
    for line in notes[:NOTES_MAX]:
        print(f"{subject}: {line}", file=sys.stderr)
    if len(notes) > NOTES_MAX:
        print(f"{subject}: and {len(notes) - NOTES_MAX} more", file=sys.stderr)


def _schemas(args: argparse.Namespace) -> list[Asked]:
    takes = references(args)
    return [
        Asked(subject, checked_text(file, has_references=bool(takes)), takes)
        for subject, file in subjects_and_files(args)
    ]


def _check_known(client: RegistryAdministration, subject: str) -> None:
    """Raises `SkidwayError` if the subject is unknown to the registry. For such a subject, the
    registry would say that every schema is compatible, so a check would succeed for a mistyped
    subject.
    """
    try:
        client.versions(subject)
    except RegistryRefused as refused:
        if refused.error_code != SUBJECT_UNKNOWN:
            raise
        raise SkidwayError(
            f"no such subject: {subject} (--new-subject, if it is to get its first version)"
        ) from None
