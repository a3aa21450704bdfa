"""`skidway schemas list|versions|get`: shows subjects, versions and schemas."""

from __future__ import annotations

import argparse
import json
from typing import Any

from skidway.cli.output import print_json, print_rows
from skidway.errors import UsageError
from skidway.schemas.client import (
    SUBJECT_UNKNOWN,
    Registered,
    RegistryAdministration,
    RegistryRefused,
)
from skidway.schemas.commands.arguments import LATEST, add_subject, version_number
from skidway.schemas.commands.connection import add_verb, connect

COLUMNS = ["subject", "version", "id"]


def register(verbs: Any) -> None:
    """Adds the verbs `list`, `versions` and `get`."""
    listing = add_verb(verbs, "list", "list subjects with their latest version and its id", _list)
    listing.add_argument(
        "--prefix", default="", metavar="TEXT", help="only subjects that begin with it"
    )
    listing.add_argument(
        "--deleted", action="store_true", help="also every version that was soft-deleted"
    )
    versions = add_verb(
        verbs, "versions", "list the versions of a subject with their ids", _versions
    )
    add_subject(versions)
    versions.add_argument(
        "--deleted", action="store_true", help="also versions that were soft-deleted"
    )
    get = add_verb(verbs, "get", "print a schema: by subject, subject and version, or id", _get)
    get.add_argument("subject", nargs="?", metavar="SUBJECT", help="for example hdfs-logs-value")
    get.add_argument("--version", default=LATEST, metavar="N", help="number, or latest (latest)")
    get.add_argument("--id", type=int, metavar="N", help="schema id instead of a subject")
    get.add_argument("--deleted", action="store_true", help="also a version that was soft-deleted")


def _list(args: argparse.Namespace) -> int:
    client = connect(args)
    found = [each for each in client.all_versions(latest_only=True) if _wanted(each, args)]
    rows: list[dict[str, Any]] = [_row(each) for each in found]
    columns = COLUMNS
    if args.deleted:
        rows = [row | {"deleted": False} for row in rows] + _deleted(client, args)
        rows.sort(key=lambda row: (row["subject"], row["version"]))
        columns = [*COLUMNS, "deleted"]
    print_rows(rows, columns, as_json=args.json)
    return 0


def _versions(args: argparse.Namespace) -> int:
    client = connect(args)
    numbers = client.versions(args.subject, deleted=args.deleted)
    found = [client.version(args.subject, each, deleted=args.deleted) for each in numbers]
    rows, columns = [_row(each) for each in found], COLUMNS
    if args.deleted:
        live = live_numbers(client, args.subject)
        rows = [row | {"deleted": row["version"] not in live} for row in rows]
        columns = [*COLUMNS, "deleted"]
    print_rows(rows, columns, as_json=args.json)
    return 0


def _get(args: argparse.Namespace) -> int:
    if (args.subject is None) == (args.id is None):
        raise UsageError("Name a subject, or an id with --id.")
    client = connect(args)
    if args.id is not None:
        text = client.schema(args.id)
        print_json({"id": args.id, "schema": text} if args.json else json.loads(text))
        return 0
    found = _version(client, args)
    print_json(document(found) if args.json else json.loads(found.schema))
    return 0


def document(found: Registered) -> dict[str, Any]:
    """Returns a version as the JSON object that verbs print as their JSON output. The keys are
    those of the REST API."""
    made: dict[str, Any] = {**_row(found), "schema": found.schema}
    if found.references:
        made["references"] = [each.document() for each in found.references]
    return made


def deleted_versions(client: RegistryAdministration) -> list[Registered]:
    """Returns every version that is soft-deleted."""
    everything = list(client.all_versions(deleted=True))
    live = {(each.subject, each.version) for each in client.all_versions()}
    return [each for each in everything if (each.subject, each.version) not in live]


def live_numbers(client: RegistryAdministration, subject: str) -> set[int]:
    """Returns the numbers of the subject's versions that are not deleted. Returns an empty set if
    the subject does not exist."""
    try:
        return set(client.versions(subject))
    except RegistryRefused as refused:
        if refused.error_code == SUBJECT_UNKNOWN:
            return set()
        raise


def _deleted(client: RegistryAdministration, args: argparse.Namespace) -> list[dict[str, Any]]:
    found = [each for each in deleted_versions(client) if _wanted(each, args)]
    return [_row(each) | {"deleted": True} for each in found]


def _wanted(found: Registered, args: argparse.Namespace) -> bool:
    return found.subject.startswith(args.prefix)


def _row(found: Registered) -> dict[str, Any]:
    return {"subject": found.subject, "version": found.version, "id": found.id}


def _version(client: RegistryAdministration, args: argparse.Namespace) -> Registered:
    number = version_number(args.version)
    if isinstance(number, str):
        if args.deleted:
            raise UsageError("--deleted: say which version with --version.")
        return client.latest(args.subject, inlined=False)
    return client.version(args.subject, number, deleted=args.deleted)
