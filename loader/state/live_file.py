"""Defines a file of an output, with the number of the load that added it and the id of its
schema."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.loader.state.manifest import DataFile, Manifest


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A file of the output, the load that added the file, and the id of the schema that the file's
    columns follow. bucket_ms: the size of the audit's buckets in which the file's rows were
    counted."""

    file: DataFile
    load: int
    schema_id: int | None
    bucket_ms: int = 0


def added(manifest: Manifest, file: DataFile) -> LiveFile:
    """Returns the `LiveFile` of a file that the load of `manifest` adds. Takes the load's number
    and the size of the buckets from the manifest. If the file has no `schema_id`, its schema is the
    schema of the manifest."""
    schema_id = file.schema_id
    if schema_id is None and manifest.schema is not None:
        schema_id = manifest.schema.id
    return LiveFile(file, manifest.number, schema_id, manifest.audit.get("bucket_ms", 0))
