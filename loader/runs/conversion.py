"""Which files must be rewritten before a load adds rows of a new schema.

Plain Spark reads a directory only if its files have alike columns (rewriting/alike.py). So if the
subject has a new schema, the loader first rewrites, in one load, every file whose columns are not
alike.
"""

from __future__ import annotations

from collections.abc import Iterable

from skidway.loader.rewriting.alike import are_alike
from skidway.loader.rewriting.groups import to_convert
from skidway.loader.runs.parts import Parts
from skidway.loader.runs.topic_rewrite import Rewrite
from skidway.loader.state import operations
from skidway.loader.state.live import live
from skidway.loader.state.manifest import Manifest
from skidway.schemas.client import SCHEMA_UNKNOWN, Registered, RegistryClient, RegistryRefused


def conversion(parts: Parts, newest: Manifest | None, schema: Registered) -> Rewrite | None:
    """What must be rewritten before rows of this schema are added; None if nothing must be. A file
    whose schema the registry does not know any more stays as it is."""
    if newest is None or newest.schema is None or newest.schema.id == schema.id:
        return None
    files = operations.run(live(newest), parts.store).values()
    known = _texts(parts.registry, {each.schema.id for each in files if each.schema is not None})
    texts = {at: text for at, text in known.items() if not are_alike(text, schema.schema)}
    target = parts.settings.compact_target_bytes
    groups = to_convert(files, target, lambda x: x.schema is not None and x.schema.id in texts)
    if not groups:
        return None
    return Rewrite(groups, parts.settings.compression, None, schema, texts)


def _texts(registry: RegistryClient, ids: Iterable[int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for each in ids:
        try:
            found[each] = registry.schema(each)
        except RegistryRefused as error:
            if error.error_code != SCHEMA_UNKNOWN:
                raise
    return found
