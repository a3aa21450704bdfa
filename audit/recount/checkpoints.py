"""Reads the checkpoints that the loader writes for a topic. The checkpoints replace manifests that
were deleted. (The checkpoint of an agent is something else.)

A checkpoint of the loader is a file with a JSON object in each line:

    first line      {"load": number of a load, "files": the number of lines that follow, ...}
    a further line  {"file": {... as in a manifest ...}, "load": ..., "bucket_ms": ...}: a file of
                    rows or rejects that belonged to the output after the load of the first line
"""

from __future__ import annotations

import json
from typing import Final

from skidway.audit.output import Output
from skidway.audit.recount.manifests import Checkpoint, ManifestUnreadable
from skidway.audit.recount.named_files import OF_A_FILE, NamedFile

FORMAT: Final = 1


def files_of(output: Output, checkpoint: Checkpoint) -> list[NamedFile]:
    """The files that a checkpoint names. Raises ManifestUnreadable."""
    data = output.read(checkpoint.path)
    if data is None:
        raise ManifestUnreadable(f"{checkpoint.path} vanished while it was read")
    try:
        first, *lines = data.splitlines()
        head = json.loads(first)
        if (head["format"], head["load"], head["files"]) != (FORMAT, checkpoint.load, len(lines)):
            raise ManifestUnreadable(
                f"{checkpoint.path} is no checkpoint of load {checkpoint.load} in format {FORMAT} "
                f"with {len(lines)} files"
            )
        return [_file(line) for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise ManifestUnreadable(f"{checkpoint.path} is no checkpoint: {error!r}") from error


def _file(line: bytes) -> NamedFile:
    content = json.loads(line)
    known = {name: content["file"][name] for name in OF_A_FILE}
    return NamedFile(**known, load=content["load"], bucket_ms=content["bucket_ms"])
