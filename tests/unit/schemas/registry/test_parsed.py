"""The registry caches parsed schemas. The cache has a limit for the total size of the schemas, not
for their number."""

from __future__ import annotations

import pytest

from skidway.schemas.avro_schema import SchemaInvalid
from skidway.schemas.registry.kept import Kept, Reference, everything_needed
from skidway.schemas.registry.parsed import ParsedSchemas
from support.registry_http import record


def kept(number: int, text: str, *needs: Kept) -> Kept:
    references = tuple(Reference(f"R{each.id}", f"s{each.id}", 1, each.id) for each in needs)
    return Kept(number, text, references, needs)


def test_what_was_parsed_is_remembered() -> None:
    """A schema that is requested twice is parsed once. Both requests get the same object."""
    schemas, one = ParsedSchemas(), kept(1, record(a=None))
    assert schemas.of(one) is schemas.of(one)


def test_the_least_used_is_forgotten_first() -> None:
    """If a new schema would make the cache larger than its limit, the least recently used schemas
    are dropped first."""
    texts = [record(f"R{n}", **{"a" * 100: None}) for n in range(4)]
    size = len(texts[0])
    schemas = ParsedSchemas(characters_max=2 * size)
    one, two, three = (kept(n, texts[n]) for n in range(3))
    first = schemas.of(one)
    second = schemas.of(two)
    assert schemas.of(one) is first
    schemas.of(three)
    assert schemas.characters == 2 * size
    assert schemas.of(one) is first
    assert schemas.of(two) is not second


def test_one_that_is_larger_than_all_is_not_remembered() -> None:
    """A schema larger than the cache's limit is not cached, and displaces no cached schema."""
    small, large = kept(1, record(a=None)), kept(2, record(a=None, b=None))
    schemas = ParsedSchemas(characters_max=len(small.text))
    first = schemas.of(small)
    assert schemas.of(large) is not schemas.of(large)
    assert schemas.of(small) is first
    assert schemas.characters == len(small.text)


def test_what_is_needed_comes_first_and_once() -> None:
    """The list of the schemas that a schema needs contains each of them only once, even if several
    others reference it. Each schema comes after all schemas that it references."""
    bottom = kept(1, record("R1", a=None))
    left, right = kept(2, record("R2", a="R1"), bottom), kept(3, record("R3", a="R1"), bottom)
    top = kept(4, record("R4", a="R2", b="R3", c="R1"), left, right)
    order = [each.id for each in everything_needed([top])]
    assert sorted(order) == [1, 2, 3, 4]
    assert order.index(1) < order.index(2) < order.index(4)
    assert order.index(3) < order.index(4)
    parsed = ParsedSchemas().of(top)
    assert sorted(parsed.known) == ["R1", "R2", "R3"]


def test_two_meanings_of_one_name_are_refused() -> None:
    """A schema is refused if its references lead to two different types of the same name."""
    old, new = kept(1, record("P", a=None)), kept(2, record("P", b=None))
    left, right = kept(3, record("L", p="P"), old), kept(4, record("M", p="P"), new)
    with pytest.raises(SchemaInvalid, match="declare P"):
        ParsedSchemas().new(record("T", left="L", right="M"), (left, right))


def test_the_guid_tells_schemas_apart() -> None:
    """A schema's guid depends on its text and references, not on ids, so two registries give the
    same schema the same guid."""
    part = kept(1, record("R1", a=None))
    texts = record("R2", a="R1")
    assert kept(2, texts, part).guid == kept(9, texts, part).guid
    assert len({kept(2, texts).guid, kept(2, texts, part).guid, part.guid}) == 3
