"""Makes contents of schema registries for tests: random contents that a real registry could have,
and single versions of a subject."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from skidway.schemas.client import Reference
from skidway.schemas.dump.contents import Contents, StoredVersion

SUBJECTS = ("a", "b/c", "ü\t")
LEVELS = ("NONE", "BACKWARD", "FULL_TRANSITIVE")
MODES = ("READONLY", "READWRITE", "IMPORT")


def stored(subject: str, version: int, schema_id: int, **more: Any) -> StoredVersion:
    """Returns a version of a subject. The version's schema is a fixed whose name contains
    `schema_id`, so that versions with different ids have different schemas."""
    schema = f'{{"type":"fixed","name":"F{schema_id}","size":1}}'
    return StoredVersion(subject, version, schema_id, schema, **more)


@st.composite
def contents(draw: st.DrawFn) -> Contents:
    """Draws the contents of a registry. A schema references only versions that have lower schema
    ids. No schema has two ids. The version numbers of a subject may have gaps."""
    made = Contents()
    takes: dict[int, tuple[Reference, ...]] = {}
    for schema_id in draw(st.lists(st.integers(1, 9), unique=True, max_size=6).map(sorted)):
        known = sorted(made.versions)
        for subject in draw(st.sets(st.sampled_from(SUBJECTS), min_size=1)):
            version = max((v for s, v in made.versions if s == subject), default=0)
            version += draw(st.integers(1, 2))
            if schema_id not in takes:
                keys = draw(st.sets(st.sampled_from(known), max_size=2)) if known else set()
                takes[schema_id] = tuple(Reference(f"n{s}", s, v) for s, v in sorted(keys))
            deleted = draw(st.booleans())
            made.add(
                stored(subject, version, schema_id, references=takes[schema_id], deleted=deleted)
            )
    names = st.none() | st.sampled_from(SUBJECTS)
    level = st.sampled_from(LEVELS).map(lambda name: {"compatibilityLevel": name})
    made.levels = draw(st.dictionaries(names, level, max_size=2))
    made.modes = draw(st.dictionaries(names, st.sampled_from(MODES), max_size=2))
    made.highest_id += draw(st.integers(0, 3))
    return made
