"""Proposes an Avro schema for the lines of a log in one pass, and counts how many lines have each
field. Does no I/O itself."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, Final

from skidway.dataclass import dataclass
from skidway.schemas.avro_schema import Array, AvroType, Map, Record, Union, parse, type_name
from skidway.schemas.canonical import canonical
from skidway.schemas.inference.formats import (
    FormatUnknown,
    LineFormat,
    LineReader,
    Unfit,
    detect,
)
from skidway.schemas.inference.lines import LINE_BYTES_MAX
from skidway.schemas.inference.naming import EXTRA, EXTRA_FIELD
from skidway.schemas.inference.proposal import Proposal
from skidway.schemas.inference.shapes import Budget, Shape
from skidway.text_file import foreign_encoding

SAMPLE_LINES: Final = 100
"""Inference detects the format from at most this many lines at the beginning of the file."""


@dataclass(frozen=True, slots=True)
class FieldFound:
    """A field of the proposed schema. `place`: the field's path in a line, such as
    `order.lines[].price`, with the names as they are in the log."""

    place: str
    type: str
    lines: int
    share: float
    """The share of lines that have the field, among the lines that fit the log's format (0 to
    1)."""


@dataclass(frozen=True, slots=True)
class Inference:
    """A proposed schema, made from the lines of a log that fit the log's format. `lines`: the
    number of lines that were read, without blank lines and headers. `fitting`: how many of these
    lines fit the format."""

    schema: dict[str, Any]
    format: LineFormat
    lines: int
    fitting: int
    unfit: dict[str, int]
    """Number of lines that do not have the format, by reason."""
    fields: tuple[FieldFound, ...]
    left_out: int
    """Number of values for which the schema has no field, because the log has more than
    `SHAPES_MAX` different fields, or because a name is too long or cannot be encoded."""

    @property
    def text(self) -> str:
        """Returns the schema as indented JSON. The registry accepts this text."""
        return json.dumps(self.schema, indent=2, ensure_ascii=False) + "\n"


def infer(
    lines: Iterable[bytes],
    *,
    name: str,
    namespace: str | None = None,
    kind: LineFormat | None = None,
) -> Inference:
    """Proposes a schema for these lines, which `read_lines` yields. `name`: the name of the record
    in the proposed schema.

    `kind`: the format of the lines. If `kind` is None, detects the format from the first lines.
    Raises `FormatUnknown` if it finds no format, and `SchemaInvalid` for an invalid namespace.
    """
    stream = iter(lines)
    sample = [*islice(stream, SAMPLE_LINES)]
    if sample and (encoding := foreign_encoding(sample[0])):
        raise FormatUnknown(f"The log is {encoding}: convert it to UTF-8 (iconv).")
    texts = [line.decode("utf-8-sig", "replace") for line in sample if len(line) <= LINE_BYTES_MAX]
    kind = kind or detect(texts)
    count, made = _Count(), kind.reader(texts)
    count.read(chain(sample, stream), made)
    if kind.has_extra:
        count.shape.members.pop(EXTRA, None)  # the field EXTRA takes such a member, too
    proposed = Proposal(name, namespace, typed=made.typed).of(count.shape, count.fitting)
    if kind.has_extra:
        proposed["fields"].append(EXTRA_FIELD)
    avro = parse(proposed)
    return Inference(
        json.loads(canonical(avro)),
        kind,
        count.lines,
        count.fitting,
        dict(count.unfit.most_common()),
        tuple(_fields(count.shape, avro, "", count.fitting)),
        count.budget.refused,
    )


class _Count:
    """Counts the lines that are read, and merges their shapes (the types of their values)."""

    def __init__(self) -> None:
        self.shape, self.budget = Shape(is_root=True), Budget()
        self.lines = self.fitting = 0
        self.unfit: Counter[str] = Counter()

    def read(self, lines: Iterable[bytes], made: LineReader) -> None:
        """Splits each line into values with the reader `made`, and merges the types of these
        values. Does not count blank lines and headers."""
        for line in lines:
            if not line.strip():
                continue
            try:
                values = made.values(_text(line))
            except Unfit as unfit:
                self.unfit[str(unfit)] += 1
                self.lines += 1
                continue
            if values is not None:
                self.shape.add(values, self.lines, self.budget, typed=made.typed)
                self.lines += 1
                self.fitting += 1


def _text(line: bytes) -> str:
    if len(line) > LINE_BYTES_MAX:
        raise Unfit(f"longer than {LINE_BYTES_MAX} bytes")
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unfit("not UTF-8") from None


def _fields(shape: Shape, avro: AvroType, place: str, lines: int) -> Iterator[FieldFound]:
    """Yields the fields of the type `avro` of the proposed schema, each with the share of the lines
    that have the field."""
    if isinstance(avro, Union):
        for branch in avro.branches:
            yield from _fields(shape, branch, place, lines)
    elif isinstance(avro, Record):
        # At the end, a log's record has a field EXTRA, which stands for no member.
        for (name, each), field in zip(shape.members.items(), avro.fields, strict=False):
            here = f"{place}.{name}" if place else name
            share = each.lines / lines if lines else 0.0
            yield FieldFound(here, type_name(field.type), each.lines, share)
            yield from _fields(each, field.type, here, lines)
    elif isinstance(avro, Array) and shape.items is not None:
        yield from _fields(shape.items, avro.items, f"{place}[]", lines)
    elif isinstance(avro, Map) and "" in shape.members:
        yield from _fields(shape.members[""], avro.values, f"{place}{{}}", lines)
