"""Skidway also reports whether Apache Avro's Python library accepts a schema (a second opinion)."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from skidway.schemas.avro_schema import parse
from skidway.schemas.second_opinion import second_opinion

OURS = resources.files("skidway.schemas")


@pytest.mark.parametrize(
    "name", [each.name for each in OURS.iterdir() if each.name.endswith(".avsc")]
)
def test_our_own_schemas_are_read_by_everybody(name: str) -> None:
    """Apache's Python library accepts every schema of Skidway's own messages."""
    assert second_opinion(OURS.joinpath(name).read_text()) is None


def test_what_it_does_not_take_is_told() -> None:
    """Skidway reports a schema that Apache's Python library refuses. In this test, a type without a
    namespace is used inside a type that has a namespace. The Python library does not find the type
    without a namespace, but Java's library does."""
    inner = {
        "type": "record",
        "name": "I",
        "namespace": "n",
        "fields": [{"name": "e", "type": "E"}],
    }
    text = json.dumps({
        "type": "record", "name": "O", "fields": [
            {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
            {"name": "i", "type": inner},
        ],
    })  # fmt: skip
    parse(text)
    assert '"E"' in str(second_opinion(text))
