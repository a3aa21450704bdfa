"""Finds the files that must be rewritten before a load adds rows of a new schema.

Plain Spark reads a directory correctly only if the schemas of its files are alike
(rewriting/alike.py defines when two schemas are alike). So before the loader adds rows of a new
schema, one load rewrites the files whose schemas are not like the new schema. If a file cannot be
rewritten, later runs try again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from skidway.errors import SkidwayError
from skidway.loader.rewriting.alike import are_alike
from skidway.loader.rewriting.groups import to_convert
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.topic_rewrite import Rewrite
from skidway.loader.state import operations
from skidway.loader.state.live import live
from skidway.loader.state.manifest import Manifest, SchemaChoice
from skidway.schemas.client import SCHEMA_UNKNOWN, Registered, RegistryClient, RegistryRefused


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
    followed = [each for each in newest.schemas if each.id != schema.id]
    texts = _texts(parts.registry, followed)
    notes = [_unknown(newest.topic, each) for each in followed if each.id not in texts]
    unlike = [
        each
        for each in followed
        if each.id in texts and not are_alike(texts[each.id], schema.schema)
    ]
    newer = [each for each in unlike if _is_newer(each, schema)]
    problems = [_rolled_back(newest.topic, each, schema) for each in newer]
    ids = {each.id for each in unlike} - {each.id for each in newer}
    if not ids:
        return Conversion(None, problems, notes)
    files = operations.run(live(newest), parts.store)
    groups = to_convert(files.values(), ids)
    rewrite = Rewrite(groups, files, parts.settings.compression, schema, texts)
    return Conversion(rewrite if groups else None, problems, notes)


def _is_newer(choice: SchemaChoice, schema: Registered) -> bool:
    """Returns whether `choice`, the schema of some files, is a newer version of the subject than
    `schema`. This happens if somebody deleted the newer version in the registry. The version
    numbers alone do not show this: if a subject was deleted and registered again, its versions
    begin at 1 again, but the schema ids continue to grow.
    """
    same_subject = choice.subject == schema.subject
    return same_subject and choice.version > schema.version and choice.id > schema.id


def _texts(registry: RegistryClient, choices: Iterable[SchemaChoice]) -> dict[int, str]:
    found: dict[int, str] = {}
    for each in choices:
        try:
            found[each.id] = registry.schema(each.id)
        except RegistryRefused as error:
            if error.error_code != SCHEMA_UNKNOWN:
                raise error.about(each.id) from error
    return found


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
