"""The tables of docs/ that come from the code are up to date."""

from __future__ import annotations

import pytest

from support import generated_tables


@pytest.mark.parametrize("name", generated_tables.TABLES)
def test_tables_are_those_of_the_code(name: str) -> None:
    """Formats, settings, columns and codecs stand in the docs as the code defines them (`make
    docs-tables` writes them)."""
    page = (generated_tables.DOCS / name).read_text()
    assert generated_tables.updated(name, page) == page
