"""What is read from a manifest's file equals the manifest that was written. The error about a
damaged manifest names the file."""

from __future__ import annotations

import json

import pytest

from skidway.errors import StateRefused
from skidway.loader.state.manifest import Manifest
from support.loading import WHOLE


def test_a_manifest_comes_back_as_it_was_written() -> None:
    """A manifest that is written and read back equals the original. Writing it again gives the same
    bytes."""
    data = WHOLE.to_json()
    assert Manifest.from_json(data, "x") == WHOLE
    assert Manifest.from_json(data, "x").to_json() == data


def test_each_field_has_a_line() -> None:
    """Each field of a manifest is on one line of its own, even the field with the counts of all
    agents. So an operator can read the manifest even if there are very many agents."""
    lines = WHOLE.to_json().decode().splitlines()
    assert (lines[0], lines[-1]) == ("{", "}")
    names = [next(iter(json.loads("{" + line.rstrip(",") + "}"))) for line in lines[1:-1]]
    assert names == list(json.loads(WHOLE.to_json()))


def test_readers_find_plain_json() -> None:
    """The manifest is plain JSON, so that a recount finds each file's path, length, rows and
    checksum."""
    content = json.loads(WHOLE.to_json())
    assert content["format"] == 1
    assert content["files"][0] == {
        "kind": "rows", "path": "p", "staged": "s", "length": 100, "rows": 8, "checksum": -5,
        "crc32c": 9, "schema_id": None,
    }  # fmt: skip
    assert content["source"]["topic"] == "logs"
    assert content["partitions"][0]["below"]["crc"] == 5


def test_rows_and_rejects_are_told_apart() -> None:
    """A manifest has separate counts of rows and of rejected records."""
    assert (WHOLE.rows(), WHOLE.rejects()) == (8, 2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content.pop("uuid"),
        lambda content: content.update(files=[{}]),
        lambda content: content.update(partitions=None),
        lambda content: content.update(surprise=1),
        lambda content: content.pop("removed"),
        lambda content: content.pop("format"),
        lambda content: content.update(source={"cluster": "x"}),
    ],
)
def test_a_damaged_manifest_is_named(damage: object) -> None:
    """A damaged manifest stops the loader, and the error names the file."""
    content = json.loads(WHOLE.to_json())
    damage(content)  # type: ignore[operator]
    with pytest.raises(StateRefused, match="where/it/lies"):
        Manifest.from_json(json.dumps(content).encode(), "where/it/lies")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff"])
def test_bytes_that_are_no_manifest(data: bytes) -> None:
    """A manifest file is refused as damaged if it is empty, if its end is missing, or if it is no
    JSON object."""
    with pytest.raises(StateRefused, match="damaged"):
        Manifest.from_json(data, "x")


def test_another_format_is_refused() -> None:
    """A manifest with another format number is refused."""
    content = {**json.loads(WHOLE.to_json()), "format": 2}
    with pytest.raises(StateRefused, match="another program version"):
        Manifest.from_json(json.dumps(content).encode(), "x")
