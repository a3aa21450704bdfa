from __future__ import annotations

import json
from pathlib import Path

import pytest

from skidway.audit.output.local import LocalOutput
from skidway.audit.recount import manifests
from skidway.audit.recount.manifests import ManifestUnreadable


def test_the_load_of_an_unreadable_first_manifest_is_named(tmp_path: Path) -> None:
    """If the oldest existing manifest of a topic cannot be read, the error names the load to which
    the manifest belongs."""
    manifest = {
        "format": 1, "number": 5, "producer": "p", "source": {}, "files": [], "audit": {},
        "removed": [], "partitions": [],
    }  # fmt: skip
    path = tmp_path / "_skidway" / "logs" / f"{5:020}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(manifest))
    with pytest.raises(ManifestUnreadable, match="the manifest of load 5 of logs lacks"):
        manifests.head(LocalOutput(str(tmp_path)), "logs")
