"""Defines a draft, which is a schema that is being edited. The methods of a `Draft` return and
replace the type at a path such as `/fields/1/type/0`."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from skidway.schemas.avro_schema import Array, AvroType, Field, Map, Named, Record, Union


class PlaceMissing(LookupError):
    """Raised if a path does not exist in the schema, or leads into a referenced schema, which must
    not be edited."""


class Draft:
    """A schema that is being edited. The types of `root` are changed in place, so no other code may
    use the same schema object."""

    def __init__(self, root: AvroType, known: Collection[str] = ()) -> None:
        self.root = root
        self._known = known

    def type_at(self, place: str) -> AvroType:
        """Returns the type at the path `place`. Raises `PlaceMissing`."""
        at = self.root
        for step in _steps(place):
            at = _inside(at, step)
            if isinstance(at, Named) and at.name in self._known:
                raise PlaceMissing(place)
        return at

    def put(self, place: str, avro: AvroType) -> None:
        """Replaces the type at the path `place` by `avro`. Raises `PlaceMissing`."""
        steps = [*_steps(place)]
        if not steps:
            self.root = avro
            return
        last = steps.pop()
        at = self.type_at("/".join(["", *steps]))
        if isinstance(at, Record):
            at.fields[_number(last, len(at.fields))].type = avro
        elif isinstance(at, Union):
            branches = [*at.branches]
            branches[_number(last, len(branches))] = avro
            at.branches = tuple(branches)
        elif isinstance(at, Array):
            at.items = avro
        elif isinstance(at, Map):
            at.values = avro
        else:
            raise PlaceMissing(place)

    def record_at(self, place: str) -> Record:
        """Returns the record at the path `place`. Raises `PlaceMissing` if the schema has no record
        at this path."""
        found = self.type_at(place)
        if not isinstance(found, Record):
            raise PlaceMissing(place)
        return found

    def field_at(self, path: str) -> Field:
        """Returns the field at a path that ends in `/fields/N`. Raises `PlaceMissing`."""
        place, _, last = path.rpartition("/fields/")
        record = self.record_at(place)
        return record.fields[_number(last, len(record.fields))]


def place_name(root: AvroType, path: str) -> str:
    """Returns the path in a form for people, for example `order.lines[].price`. This form leaves
    out the branches of unions, and parts of a type such as its size."""
    at, name = root, ""
    for step in _steps(path):
        if isinstance(at, Record) and step.isdigit() and int(step) < len(at.fields):
            name += f".{at.fields[int(step)].name}"
        elif isinstance(at, Array | Map):
            name += "[]" if isinstance(at, Array) else "{}"
        try:
            at = _inside(at, step)
        except PlaceMissing:
            break
    return name.removeprefix(".")


def _steps(place: str) -> Iterator[str]:
    """Yields the steps of the path `place`, one for each type. A step is `items`, `values`, or the
    number of a field or branch."""
    return (step for step in place.split("/") if step not in ("", "fields", "type"))


def _inside(avro: AvroType, step: str) -> AvroType:
    if isinstance(avro, Record):
        return avro.fields[_number(step, len(avro.fields))].type
    if isinstance(avro, Union):
        return avro.branches[_number(step, len(avro.branches))]
    if isinstance(avro, Array) and step == "items":
        return avro.items
    if isinstance(avro, Map) and step == "values":
        return avro.values
    raise PlaceMissing(step)


def _number(step: str, count: int) -> int:
    if not step.isdigit() or int(step) >= count:
        raise PlaceMissing(step)
    return int(step)
