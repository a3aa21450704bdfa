"""`skidway schemas delete|undelete`: deletes versions, or restores soft-deleted versions."""

from __future__ import annotations

import argparse
from typing import Any

from skidway.cli.output import print_json, print_rows
from skidway.cli.plan import add_plan_options, agreed
from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.canonical import canonical
from skidway.schemas.client import Registered, RegistryAdministration
from skidway.schemas.client.resolution import Resolver
from skidway.schemas.commands.arguments import add_subject
from skidway.schemas.commands.browse import live_numbers
from skidway.schemas.commands.connection import add_verb, connect

PLAN = ["subject", "version", "id", "now", "then", "referenced_by"]


def register(verbs: Any) -> None:
    """Adds the verbs `delete` and `undelete`."""
    words = "soft-delete a subject or a version (undelete brings it back), or delete it permanently"
    delete = add_verb(verbs, "delete", words, _delete)
    add_subject(delete)
    delete.add_argument("--version", type=int, metavar="N", help="only version N")
    delete.add_argument(
        "--permanent",
        action="store_true",
        help="delete permanently: once no subject has its id, records with that id cannot be read",
    )
    add_plan_options(delete)
    words = "register again, under the same id, what was soft-deleted"
    undelete = add_verb(verbs, "undelete", words, _undelete)
    add_subject(undelete)
    undelete.add_argument("--version", type=int, metavar="N", help="only version N")
    undelete.add_argument("--dry-run", action="store_true", help="only say what would come back")


def _delete(args: argparse.Namespace) -> int:
    client = connect(args)
    live, deleted = _versions(client, args)
    going = [*live, *deleted] if args.permanent else live
    if not going:
        raise SkidwayError(_nothing(args, deleted))
    rows = [_row(client, args, each, each in deleted) for each in going]
    done = agreed(args, sorted(rows, key=lambda row: int(row["version"])), PLAN)
    if done:
        _carry_out(client, args, live, {each.version for each in going})
    if args.json:
        print_json({"subject": args.subject, "deleted": done, "versions": rows})
    elif done:
        print(f"deleted {len(rows)} of {args.subject}" + (" permanently" if args.permanent else ""))
    return 0


def _carry_out(
    client: RegistryAdministration,
    args: argparse.Namespace,
    live: list[Registered],
    agreed_to: set[int],
) -> None:
    """Soft-deletes the versions that the arguments select. With --permanent, then deletes them
    permanently; a registry demands the soft deletion first. If a whole subject is to be deleted
    permanently, but has a version that is not in `agreed_to` (the versions whose deletion a person
    has confirmed), raises SkidwayError and deletes nothing permanently."""
    if args.version is not None:
        if live:
            client.delete_version(args.subject, args.version)
        if args.permanent:
            client.delete_version(args.subject, args.version, permanent=True)
        return
    if live:
        client.delete_subject(args.subject)
    if args.permanent:
        late = set(client.versions(args.subject, deleted=True)) - agreed_to
        if late:
            named = ", ".join(map(str, sorted(late)))
            raise SkidwayError(
                f"{args.subject} got version {named} meanwhile: nothing was deleted permanently; "
                "undelete brings back what was soft-deleted."
            )
        client.delete_subject(args.subject, permanent=True)


def _undelete(args: argparse.Namespace) -> int:
    client = connect(args)
    _, deleted = _versions(client, args)
    if not deleted:
        which = "" if args.version is None else f" version {args.version}"
        raise SkidwayError(f"{args.subject}{which} has nothing that was soft-deleted.")
    rows = [_back(client, each, dry_run=args.dry_run) for each in deleted]
    print_rows(rows, ["subject", "version", "id", "back_as_version"], as_json=args.json)
    return 0


def _back(client: RegistryAdministration, gone: Registered, *, dry_run: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"subject": gone.subject, "version": gone.version, "id": gone.id}
    _check_meaning(client, gone)
    if dry_run:
        return row | {"back_as_version": None}
    schema_id = client.register(gone.subject, gone.schema, gone.references)
    if schema_id != gone.id:
        raise SkidwayError(
            f"{gone.subject} version {gone.version} came back with id {schema_id} instead of "
            f"{gone.id}: this registry does not keep the ids of what was deleted."
        )
    found = client.lookup(gone.subject, gone.schema, gone.references)
    return row | {"back_as_version": None if found is None else found.version}


def _check_meaning(client: RegistryAdministration, gone: Registered) -> None:
    """Raises SkidwayError if the references of `gone`, a soft-deleted version, mean other schemas
    now. If they do, a registration with these references would add another schema than the deleted
    one."""
    if not gone.references:
        return
    resolver = Resolver(client)
    try:
        before, now = resolver.of(gone), resolver.parsed(gone.schema, gone.references)
        is_same = canonical(before) == canonical(now)
    except SchemaInvalid:
        return  # our parser cannot read the schema, so the registry decides
    if not is_same:
        raise SkidwayError(
            f"{gone.subject} version {gone.version} cannot come back: a version that it references "
            "was deleted permanently, and its number has another schema now."
        )


def _versions(
    client: RegistryAdministration, args: argparse.Namespace
) -> tuple[list[Registered], list[Registered]]:
    """Returns the versions that the arguments select, as two ascending lists: first the live
    versions, then the soft-deleted versions."""
    numbers = client.versions(args.subject, deleted=True)
    live = live_numbers(client, args.subject)
    if args.version is not None:
        if args.version not in numbers:
            raise SkidwayError(f"{args.subject} has no version {args.version}.")
        numbers = [args.version]
    found = [client.version(args.subject, each, deleted=True) for each in sorted(numbers)]
    return [e for e in found if e.version in live], [e for e in found if e.version not in live]


def _row(
    client: RegistryAdministration, args: argparse.Namespace, each: Registered, deleted: bool
) -> dict[str, Any]:
    return {
        "subject": each.subject,
        "version": each.version,
        "id": each.id,
        "now": "soft-deleted" if deleted else "live",
        "then": "gone" if args.permanent else "soft-deleted",
        "referenced_by": None if deleted else client.referenced_by(each.subject, each.version),
    }


def _nothing(args: argparse.Namespace, deleted: list[Registered]) -> str:
    which = args.subject if args.version is None else f"{args.subject} version {args.version}"
    if deleted:
        return f"{which} is soft-deleted already; --permanent deletes it permanently."
    return f"{which} is not there."
