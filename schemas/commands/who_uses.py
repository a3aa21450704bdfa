"""`skidway schemas who-uses`: shows which subjects have a schema, which schemas reference this
schema, and which agents have written with this schema, as far as the newest records of the topics
show it.

The 5 bytes before a key or a value say with which schema the key or value was written. A record of
one of our agents also says which agent wrote it. So an id that is found here is in use. An id that
is not found may be in use, too, for example by a program that has written nothing lately.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from skidway.cli.connection import connection
from skidway.cli.output import print_json, print_rows
from skidway.errors import UsageError
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.columns import DecodedRecords
from skidway.kafka.types import TopicPartition
from skidway.schemas import wire
from skidway.schemas.client import RegistryAdministration
from skidway.schemas.commands.connection import add_verb, connect
from skidway.schemas.topic_reading import Range, read_ranges

RECORDS = 1000
AGENTS_MAX: Final = 1000
"""When a row has at least this many agents, no further agents are added to it. So the row may lack
some agents that write to the topic."""
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
    rows: dict[_Key, _Row] = {}
    records = 0
    with connection(args).client() as cluster:
        ranges = _newest(cluster, _partitions(cluster, args.topic), args.records)
        for tp, batch in read_ranges(cluster, ranges):
            first, end = ranges[tp]
            wanted = (batch.offsets >= first) & (batch.offsets < end)
            records += int(wanted.sum())
            for part, schema_id, mine in _written_with(ids, batch, wanted):
                row = rows.setdefault((tp.topic, part, schema_id), _Row())
                row.add(tp.partition, batch, mine)
    looked_at = {
        "cluster": args.bootstrap_server,
        "topics": len({tp.topic for tp in ranges}),
        "partitions": len(ranges),
        "records": records,
        "of_each_partition": args.records,
    }
    return [rows[key].document(key) for key in sorted(rows)], looked_at


_Key = tuple[str, str, int]
"""The topic, "key" or "value", and the schema id."""


@dataclass(slots=True)
class _Row:
    """The records of one topic whose keys, or whose values, were written with one schema."""

    records: int = 0
    partitions: set[int] = field(default_factory=set)
    newest_ms: int = 0
    agents: set[int] = field(default_factory=set)

    def add(self, partition: int, batch: DecodedRecords, mine: Any) -> None:
        """Counts the records of a batch for which `mine`, an array of bools, is true."""
        self.records += int(mine.sum())
        self.partitions.add(partition)
        self.newest_ms = max(self.newest_ms, int(batch.timestamps[mine].max()))
        if batch.origins is not None and len(self.agents) < AGENTS_MAX:
            agents = batch.origins.agent[mine & batch.has_origin]
            self.agents.update(np.unique(agents).tolist())

    def document(self, key: _Key) -> dict[str, Any]:
        """Returns the row as the command prints it."""
        newest = datetime.fromtimestamp(self.newest_ms / 1000, UTC)
        text = newest.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        agents = [f"{each:016x}" for each in sorted(self.agents)]
        shown = (*key, self.records, sorted(self.partitions), text, agents)
        return dict(zip(COLUMNS, shown, strict=True))


def _written_with(
    ids: list[int], batch: DecodedRecords, wanted: Any
) -> Iterator[tuple[str, int, Any]]:
    """Yields which of the wanted records have each of the ids in their keys, and in their values,
    as an array of bools with at least one true."""
    for part, column in (("key", batch.keys), ("value", batch.values)):
        found, _ = wire.split(column)
        for schema_id in ids:
            mine = wanted & (found == schema_id)
            if mine.any():
                yield part, schema_id, mine


def _newest(
    client: Client, partitions: list[TopicPartition], records_max: int
) -> Mapping[TopicPartition, Range]:
    """Returns the range of the last `records_max` offsets of each partition."""
    first = client.list_offsets(dict.fromkeys(partitions, EARLIEST))
    end = client.list_offsets(dict.fromkeys(partitions, LATEST))
    return {
        tp: (max(first[tp].offset, end[tp].offset - records_max), end[tp].offset)
        for tp in partitions
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
