"""The files of an output: those that a manifest adds and no later manifest removes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from skidway.loader.state import commit
from skidway.loader.state.manifest import ROWS, DataFile, Manifest
from skidway.loader.state.operations import Steps


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of the output, the load that added it, and the id of the schema that its columns
    follow."""

    file: DataFile
    load: int
    schema_id: int | None


def live(
    newest: Manifest, kinds: Collection[str] = (ROWS,), since: int = 1
) -> Steps[Mapping[str, LiveFile]]:
    """The files of these kinds, by path, as the newest manifest's load left them. since: only files
    that this load or a later load added. Raises StateRefused if a manifest is missing."""
    found: dict[str, LiveFile] = {}
    for number in range(since, newest.number + 1):
        manifest = newest
        if number < newest.number:
            manifest = yield from commit.read(newest.topic, number)
        for path in manifest.removed:
            found.pop(path, None)
        for file in manifest.files:
            if file.kind in kinds:
                schema_id = file.schema_id
                if schema_id is None and manifest.schema is not None:
                    schema_id = manifest.schema.id
                found[file.path] = LiveFile(file, number, schema_id)
    return found
