"""`skidway schemas who-uses`: shows which subjects have a schema, which schemas reference this
schema, and which agents have written with this schema, as far as the newest records of the topics
show it."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from typing import Any

from skidway.cli.output import print_json, print_rows
from skidway.errors import UsageError
from skidway.kafka.client import Client
from skidway.kafka.types import TopicPartition
from skidway.schemas.client import RegistryAdministration
from skidway.schemas.commands.connection import add_verb, connect

RECORDS = 1000
COLUMNS = ["topic", "part", "id", "records", "partitions", "newest", "agents"]


def register(verbs: Any) -> None:
    """Adds the verb `who-uses`."""
    words = "who has a schema, who refers to it, and which topics hold it in their newest records"
    verb = add_verb(verbs, "who-uses", words, _who_uses)
    verb.add_argument("what", metavar="SUBJECT|ID", help="a subject, or the id of one schema")
    verb.add_argument("--version", type=int, metavar="N", help="only this version of the subject")
    verb.add_argument(
        "--bootstrap-server", metavar="HOST:PORT", help="also look at the topics of this cluster"
    )
    verb.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="T",
        help="only this topic; may be repeated (all but internal ones)",
    )
    verb.add_argument(
        "--records",
        type=int,
        default=RECORDS,
        metavar="N",
        help=f"newest records of each partition ({RECORDS})",
    )


def _who_uses(args: argparse.Namespace) -> int:
    if args.records < 1:
        raise UsageError("--records must be at least 1")
    client = connect(args)
    ids = _ids(client, args)
    versions = [row for schema_id in ids for row in _versions(client, schema_id)]
    topics, looked_at = _topics(args, ids)
    if args.json:
        print_json({"versions": versions, "topics": topics, "looked_at": looked_at})
        return 0
    print_rows(versions, ["id", "subject", "version", "deleted", "referenced_by"], as_json=False)
    if topics:
        print()
        print_rows(topics, COLUMNS, as_json=False)
    print(_said(looked_at, bool(topics)))
    return 0


def _ids(client: RegistryAdministration, args: argparse.Namespace) -> list[int]:
    if args.what.isascii() and args.what.isdigit():
        if args.version is not None:
            raise UsageError("--version goes with a subject: an id already names one schema.")
        client.schema(int(args.what))  # raises an error if the id is unknown
        return [int(args.what)]
    numbers = client.versions(args.what, deleted=True) if args.version is None else [args.version]
    found = [client.version(args.what, each, deleted=True).id for each in numbers]
    return sorted(set(found))


def _versions(client: RegistryAdministration, schema_id: int) -> list[dict[str, Any]]:
    live = set(client.users(schema_id))
    rows = []
    for subject, version in client.users(schema_id, deleted=True):
        is_live = (subject, version) in live
        referring = client.referenced_by(subject, version) if is_live else []
        rows.append(
            {
                "id": schema_id, "subject": subject, "version": version,
                "deleted": not is_live, "referenced_by": referring,
            }
        )  # fmt: skip
    return rows


def _topics(
    args: argparse.Namespace, ids: list[int]
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    if args.bootstrap_server is None:
        if args.topic:
            raise UsageError("--topic needs --bootstrap-server.")
        return [], None
    from skidway.schemas.sightings import look

    with Client(args.bootstrap_server) as cluster:
        partitions = _partitions(cluster, args.topic)
        seen = look(cluster, partitions, args.records)
    found = [each for each in seen.found.values() if each.id in ids]
    rows: dict[tuple[str, str, int], dict[str, Any]] = {}
    for each in found:
        key = (each.tp.topic, each.part, each.id)
        row = rows.setdefault(key, dict(zip(COLUMNS, (*key, 0, [], 0, set()), strict=True)))
        row["records"] += each.records
        row["partitions"].append(each.tp.partition)
        row["newest"] = max(row["newest"], each.newest_ms)
        row["agents"] |= each.agents
    looked_at = {
        "cluster": args.bootstrap_server,
        "topics": len({tp.topic for tp in partitions}),
        "partitions": seen.partitions,
        "records": seen.records,
        "of_each_partition": args.records,
    }
    return [_shown(rows[key]) for key in sorted(rows)], looked_at


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    newest = datetime.fromtimestamp(row["newest"] / 1000, UTC).isoformat(timespec="milliseconds")
    return {
        **row,
        "partitions": sorted(row["partitions"]),
        "newest": newest.replace("+00:00", "Z"),
        "agents": [f"{each:016x}" for each in sorted(row["agents"])],
    }


def _partitions(client: Client, topics: list[str]) -> list[TopicPartition]:
    known = client.metadata().topics
    missing = sorted(set(topics) - set(known))
    if missing:
        raise UsageError(f"There is no topic {', '.join(missing)}.")
    wanted = topics or [each for each in known if not each.rpartition(".")[2].startswith("_")]
    return [
        TopicPartition(name, each.index)
        for name in sorted(wanted)
        for each in known[name].partitions
    ]


def _said(looked_at: dict[str, Any] | None, found: bool) -> str:
    """Returns a sentence that says which records were searched for the schema's id. It also says
    that other records, which were not searched, may have been written with the schema."""
    if looked_at is None:
        return "No topic was looked at: name a cluster with --bootstrap-server."
    return (
        f"Looked at {looked_at['records']:,} records, the newest "
        f"{looked_at['of_each_partition']:,} of each of {looked_at['partitions']} partitions of "
        f"{looked_at['topics']} topics of {looked_at['cluster']}"
        f"{'' if found else '; none was written with it'}. "
        "Older records may hold it all the same, and readers are not known."
    )
