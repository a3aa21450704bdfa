"""Makes the manifest of a load that replaces files by others with the same records: a compaction, a
rewriting for a new schema, or a reload.

Such a load reads no new offsets. Its manifest repeats the newest manifest's entries for partitions,
tables and the audit, adds the new files, and removes the old files. The entry for the audit has the
audit messages of the newest load: the newest load may have been killed before it published them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from skidway.loader.runs.columns_file import stage_columns
from skidway.loader.state import layout, operations, success_files
from skidway.loader.state.layout import LoadId
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import (
    ROWS,
    CarriedColumn,
    DataFile,
    Manifest,
    SchemaChoice,
)
from skidway.loader.store import Store
from skidway.schemas.client import Registered


@dataclass(frozen=True, slots=True)
class Exchange:
    """Files that a load replaces, and the files in their place.

    rows: all files of rows that the output has before the load, by path. old: the paths of the
    files that go. new: the files that come. schema: the newest schema, if the new files have its
    columns; None if the entry of each new file says which schema it follows. carried: the carried
    columns of all files after the load. success: the
    content of the `_SUCCESS` of hours that get this file. reopened: the hours that lose their
    `_SUCCESS`. All other hours of the new files keep theirs. Hours are written as `2026-01-31T07`.
    """

    rows: Mapping[str, LiveFile]
    old: Collection[str]
    new: Sequence[DataFile]
    schema: Registered | None = None
    carried: Iterable[CarriedColumn] = ()
    success: Mapping[str, bytes] = field(default_factory=dict)
    reopened: Collection[str] = ()


def replacing(
    store: Store, newest: Manifest, load: LoadId, now_ms: int, change: Exchange
) -> Manifest:
    """Returns the manifest of the load. Writes the files `_SUCCESS`, and the file with the columns
    of a new schema, into the load's staging directory. Raises StoreFailed, StoreUnreachable."""
    choice, columns = newest.schema, None
    if (schema := change.schema) is not None:
        choice = SchemaChoice(schema.subject, schema.version, schema.id)
        columns = stage_columns(store, load, schema.schema)
    hours = {layout.hour_of(each.path) for each in change.new if each.kind == ROWS}
    marks = success_files.marked(newest.topic, hours.difference(change.reopened))
    success = {**operations.run(marks, store), **change.success}
    changed = hours.union(change.reopened)
    return replace(
        newest,
        number=load.number,
        uuid=load.uuid,
        created=now_ms,
        program=version("skidway"),
        partitions=tuple(replace(x, first=x.end, gaps=()) for x in newest.partitions),
        files=tuple(change.new),
        removed=tuple(change.old),
        schema=choice,
        schemas=_schemas(newest, change, choice),
        carried=tuple(dict.fromkeys(change.carried)),
        schema_ids={},
        columns=columns,
        success=success_files.stage(store, load, success),
        reopened=tuple(layout.success(load.topic, hour) for hour in change.reopened),
        unmarked=success_files.unmarked(newest.unmarked, changed, now_ms, success),
    )


def _schemas(
    newest: Manifest, change: Exchange, choice: SchemaChoice | None
) -> tuple[SchemaChoice, ...]:
    """Returns the manifest's field `schemas`."""
    left = {each.schema_id for path, each in change.rows.items() if path not in change.old}
    own = None if choice is None else choice.id
    left |= {each.schema_id or own for each in change.new if each.kind == ROWS}
    older = tuple(each for each in newest.schemas if each.id in left and each.id != own)
    return (*older, choice) if choice is not None and own in left else older
