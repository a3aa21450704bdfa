"""A schema of ours, as Apache Avro's own Python library reads it."""

from __future__ import annotations

from importlib import resources

import pytest

from schemas.avro_schema import parse
from schemas.second_opinion import second_opinion


@pytest.mark.parametrize("name", ["announcement", "audit", "rejected"])
def test_our_own_schemas_are_read_by_everybody(name: str) -> None:
    """What we publish can be read without us."""
    assert second_opinion(resources.files("schemas").joinpath(f"{name}.avsc").read_text()) is None


def test_what_it_does_not_take_is_told() -> None:
    """The specification allows a type in an object of its own twice; that library does not."""
    text = '{"type": {"type": "int"}}'
    parse(text)
    assert "Undefined type" in str(second_opinion(text))
