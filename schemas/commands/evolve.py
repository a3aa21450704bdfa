"""`skidway schemas register|check`: a schema's next version."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from schemas.avro_schema import parse
from schemas.client import (
    SUBJECT_UNKNOWN,
    Reference,
    RegistryAdministration,
    RegistryRefused,
)
from schemas.commands.arguments import (
    add_schema,
    references,
    schema_text,
    version_number,
)
from schemas.commands.connection import add_verb, connect
from schemas.commands.verdict import verdict
from schemas.second_opinion import second_opinion
from skidway.cli.output import print_json
from skidway.errors import SkidwayError


def register(verbs: Any) -> None:
    """Adds `register` and `check`."""
    words = "register a schema under a subject, and print its id"
    made = add_verb(verbs, "register", words, _register)
    add_schema(made)
    made.add_argument("--dry-run", action="store_true", help="only say what would happen")
    words = "say whether a schema may follow; exit status 1 if not"
    check = add_verb(verbs, "check", words, _check)
    add_schema(check)
    check.add_argument(
        "--version", metavar="N", help="number, or latest; else as a registration is measured"
    )
    check.add_argument(
        "--new-subject", action="store_true", help="good also where SUBJECT has no version yet"
    )


def _register(args: argparse.Namespace) -> int:
    text, takes = _schema(args)
    client = connect(args)
    if args.dry_run:
        return _would_register(client, args, text, takes)
    schema_id = client.register(args.subject, text, takes)
    found = client.lookup(args.subject, text, takes)
    version = None if found is None else found.version
    if args.json:
        print_json({"subject": args.subject, "version": version, "id": schema_id})
    else:
        print(f"{args.subject} version {version} has id {schema_id}")
    _say_second_opinion(text, takes)
    return 0


def _would_register(
    client: RegistryAdministration,
    args: argparse.Namespace,
    text: str,
    takes: tuple[Reference, ...],
) -> int:
    found = client.lookup(args.subject, text, takes)
    if found is not None:
        if args.json:
            print_json({"subject": args.subject, "version": found.version, "id": found.id})
        else:
            print(f"{args.subject} version {found.version} is this schema, with id {found.id}")
        return 0
    return verdict(client, args, text, takes, None)


def _check(args: argparse.Namespace) -> int:
    text, takes = _schema(args)
    version = None if args.version is None else version_number(args.version)
    client = connect(args)
    if not args.new_subject:
        _check_known(client, args.subject)
    status = verdict(client, args, text, takes, version)
    _say_second_opinion(text, takes)
    return status


def _check_known(client: RegistryAdministration, subject: str) -> None:
    """A subject without versions takes any schema: a name that is mistyped would pass."""
    try:
        client.versions(subject)
    except RegistryRefused as refused:
        if refused.error_code != SUBJECT_UNKNOWN:
            raise
        raise SkidwayError(
            f"no such subject: {subject} (--new-subject, if it is to get its first version)"
        ) from None


def _schema(args: argparse.Namespace) -> tuple[str, tuple[Reference, ...]]:
    takes, text = references(args), schema_text(args.file)
    if not takes:
        parse(text)  # says where it is wrong, before anybody is asked
    return text, takes


def _say_second_opinion(text: str, takes: tuple[Reference, ...]) -> None:
    refusal = None if takes else second_opinion(text)
    if refusal is not None:
        print(f"Apache Avro's Python library does not read it: {refusal}", file=sys.stderr)
