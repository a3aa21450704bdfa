"""Finds the files that must be rewritten before a load adds rows of a new schema.

Plain Spark reads a directory correctly only if the schemas of its files are alike
(rewriting/alike.py). So before the loader adds rows of a new schema, one load rewrites the files
whose schemas are not like the new schema. If a file cannot be rewritten, later runs try again. If
no file of a schema can be rewritten, its files stay as they are, and each run says why. Each run
also names columns of older files that readers would take for a field of another schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from skidway.errors import SkidwayError
from skidway.loader.reading.projection import NotProjectable
from skidway.loader.rewriting.alike import clashing, unlike
from skidway.loader.rewriting.dropped import dropped, fields, nested_dropped
from skidway.loader.rewriting.groups import to_convert
from skidway.loader.rewriting.rewriter import Rewriter
from skidway.loader.runs.newest_schema import schema_text
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.rewrite_attempt import Rewrite
from skidway.loader.state import operations
from skidway.loader.state.live import live
from skidway.loader.state.manifest import CarriedColumn, Manifest, SchemaChoice
from skidway.schemas.client import Registered


@dataclass(frozen=True, slots=True)
class Conversion:
    """What to do before rows of a new schema are added. rewrite: the files that must be rewritten;
    None if there are none. problems, notes: sentences about files that cannot be rewritten.
    Problems make the run fail, notes do not."""

    rewrite: Rewrite | None = None
    problems: list[SkidwayError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def conversion(parts: Parts, newest: Manifest | None, schema: Registered) -> Conversion:
    """Returns what must be rewritten before a load adds rows of this schema."""
    if newest is None:
        return Conversion()
    own = SchemaChoice(schema.subject, schema.version, schema.id)
    older = {*newest.schemas, *(each.schema for each in newest.carried)} - {own}
    found = {each: schema_text(parts.registry, each.id) for each in sorted(older, key=_id)}
    texts = {each: text for each, text in found.items() if text is not None} | {own: schema.schema}
    notes = [_unknown(newest.topic, each) for each in found if each not in texts]
    problems, rewritten = list[SkidwayError](), list[SchemaChoice]()
    columns = {own: fields(schema.schema)}
    for each in (x for x in newest.schemas if x in texts and x != own):
        if not unlike(texts[each], schema.schema):
            columns[each] = fields(texts[each])
        elif fault := _fault(each, texts[each], schema):
            problems.append(SkidwayError(f"{newest.topic}: {fault}"))
        else:
            rewritten.append(each)
    carried = [
        CarriedColumn(name, each)
        for each in rewritten
        for name in sorted(dropped(texts[each], schema.schema))
    ]
    for column in (*newest.carried, *carried):
        columns.setdefault(column.schema, set()).add(column.name)
    problems += (SkidwayError(f"{newest.topic}: {each}") for each in _clashes(columns, texts))
    files = operations.run(live(newest), parts.store) if rewritten else {}
    groups = to_convert(files.values(), {each.id for each in rewritten})
    known = {each.id: text for each, text in texts.items()}
    rewrite = Rewrite(groups, files, parts.settings.compression, schema, known, carried)
    return Conversion(rewrite if groups else None, problems, notes)


def _id(choice: SchemaChoice) -> int:
    return choice.id


def _fault(old: SchemaChoice, text: str, schema: Registered) -> str:
    """Returns why no file of an older schema can get the columns of the newest schema, or ""."""
    if _is_newer(old, schema):
        return (
            f"the newest version of {schema.subject} is {schema.version}, but files follow "
            f"version {old.version}, which plain Spark cannot read beside it; register that schema "
            "again: files are never rewritten to an older version"
        )
    if gone := nested_dropped(text, schema.schema):
        return _apart(old, schema.version, f"it has no field {gone[0]}, whose values would be gone")
    try:
        Rewriter(text, schema.schema)
    except NotProjectable as error:
        return _apart(old, schema.version, str(error))
    return ""


def _clashes(
    columns: Mapping[SchemaChoice, Collection[str]], texts: Mapping[SchemaChoice, str]
) -> Iterator[str]:
    """Yields a sentence for each pair of schemas that have different columns of one name. columns:
    the columns that files have of each schema."""
    for old, new in combinations(sorted(columns, key=_id), 2):
        if old in texts and new in texts:
            names = clashing(texts[old], columns[old], texts[new], columns[new])
            if names:
                yield _apart(old, new.version, f"{names[0]} is another column there")


def _apart(old: SchemaChoice, version: int, fault: str) -> str:
    return (
        f"files with columns of version {old.version} of {old.subject} stay as they are beside "
        f"version {version}: {fault}; readers cannot take this column of both together, so read "
        "them apart, or give the newer field another name"
    )


def _is_newer(choice: SchemaChoice, schema: Registered) -> bool:
    """Returns whether `choice`, the schema of some files, is a newer version of the subject than
    `schema`. This happens if somebody deleted the newer version in the registry. The version
    numbers alone do not show this: if a subject was deleted and registered again, its versions
    begin at 1 again, but the schema ids continue to grow.
    """
    same_subject = choice.subject == schema.subject
    return same_subject and choice.version > schema.version and choice.id > schema.id


def _unknown(topic: str, choice: SchemaChoice) -> str:
    return (
        f"{topic}: the registry no longer has the schema {choice.id}, which older files follow; "
        "nobody can say whether plain Spark reads them beside the new ones"
    )
