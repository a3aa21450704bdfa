"""Finds the files that must be rewritten before a load adds rows of a new schema.

Plain Spark reads a directory correctly only if the schemas of its files are alike
(rewriting/alike.py). So before the loader adds rows of a new schema, one load rewrites the files
whose schemas are not like the new schema. If a file cannot be rewritten, later runs try again. If
no file of a schema can be rewritten, its files stay as they are, and each run says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from skidway.errors import SkidwayError
from skidway.loader.reading.projection import NotProjectable
from skidway.loader.rewriting.alike import unlike
from skidway.loader.rewriting.dropped import dropped, nested_dropped
from skidway.loader.rewriting.groups import to_convert
from skidway.loader.rewriting.rewriter import Rewriter
from skidway.loader.runs.newest_schema import schema_text
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.topic_rewrite import Rewrite
from skidway.loader.state import operations
from skidway.loader.state.live import live
from skidway.loader.state.manifest import Manifest, SchemaChoice
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
    older = [] if newest is None else [each for each in newest.schemas if each.id != schema.id]
    if newest is None or not older:
        return Conversion()
    found = {each.id: schema_text(parts.registry, each.id) for each in older}
    texts = {key: text for key, text in found.items() if text is not None}
    notes = [_unknown(newest.topic, each) for each in older if each.id not in texts]
    files = operations.run(live(newest), parts.store)
    followed = {each.schema_id for each in files.values()}
    ids, problems = set(), list[SkidwayError]()
    for each in (x for x in older if x.id in texts):
        names = unlike(texts[each.id], schema.schema)
        if each.id not in followed:
            others = [text for key, text in texts.items() if key in followed]
            names = sorted(_carried(texts[each.id], others).intersection(names))
        if not names:
            continue
        if _is_newer(each, schema):
            problems.append(_rolled_back(newest.topic, each, schema))
        elif each.id not in followed:
            problems.append(_apart(newest.topic, each, schema, f"{names[0]} has another type"))
        elif fault := _fault(texts[each.id], schema.schema):
            problems.append(_apart(newest.topic, each, schema, fault))
        else:
            ids.add(each.id)
    groups = to_convert(files.values(), ids)
    carried = [each for each in ids if dropped(texts[each], schema.schema)]
    rewrite = Rewrite(groups, files, parts.settings.compression, schema, texts, carried)
    return Conversion(rewrite if groups else None, problems, notes)


def _carried(text: str, others: Iterable[str]) -> set[str]:
    """Returns those fields of a schema that no file follows any more that files of the other
    schemas may carry, because these schemas lack them."""
    return {name for each in others for name in dropped(text, each)}


def _fault(old: str, new: str) -> str:
    """Returns why no file of the old schema can get the columns of the new schema, or ""."""
    if gone := nested_dropped(old, new):
        return f"it has no field {gone[0]}, whose values would be gone"
    try:
        Rewriter(old, new)
    except NotProjectable as error:
        return str(error)
    return ""


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


def _rolled_back(topic: str, choice: SchemaChoice, schema: Registered) -> SkidwayError:
    return SkidwayError(
        f"{topic}: the newest version of {schema.subject} is {schema.version}, but files follow "
        f"version {choice.version}, which plain Spark cannot read beside it; register that schema "
        "again: files are never rewritten to an older version"
    )


def _apart(topic: str, choice: SchemaChoice, schema: Registered, fault: str) -> SkidwayError:
    return SkidwayError(
        f"{topic}: files with columns of version {choice.version} of {choice.subject} stay as they "
        f"are beside version {schema.version}: {fault}; plain Spark cannot read this column of "
        "both together, so read them apart, or give the new field another name"
    )
