"""Proposes edits of a new schema that can mend an incompatibility. The edit that keeps most of the
schema comes first.

Each edit consists of a sentence for the author and a function that changes a draft of the new
schema. `repair` finds out whether the edit mends anything. No edit can change the old schema,
because the registry keeps every schema permanently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from skidway.schemas.advice.backward import (
    add_default,
    alias_type,
    drop_aliases,
    keep_symbols,
    widen,
)
from skidway.schemas.advice.draft import Draft, PlaceMissing
from skidway.schemas.advice.edit import Edit, keep_size
from skidway.schemas.advice.forward import drop_symbols, former_name, leave_out, narrow, put_back
from skidway.schemas.avro_schema import AvroType
from skidway.schemas.compatibility import Incompatibility


def edits(fault: Incompatibility, new: AvroType, old: AvroType) -> Iterator[Edit]:
    """Yields the edits to try for `fault`, an incompatibility of `new` with `old`."""
    try:
        if fault.reader == "new":
            yield from _NEW_READS[fault.kind](fault, new, old)
        else:
            yield from _OLD_READS[fault.kind](fault, new, old)
    except PlaceMissing:
        return


Finder = Callable[[Incompatibility, AvroType, AvroType], Iterator[Edit]]

_NEW_READS: Final[dict[str, Finder]] = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": add_default,
    "READER_FIELD_AMBIGUOUS": drop_aliases,
    "TYPE_MISMATCH": widen,
    "MISSING_UNION_BRANCH": widen,
    "MISSING_ENUM_SYMBOLS": keep_symbols,
    "NAME_MISMATCH": alias_type,
    "FIXED_SIZE_MISMATCH": lambda fault, new, old: keep_size(
        fault.reader_place, Draft(old).type_at(fault.writer_place)
    ),
}
_OLD_READS: Final[dict[str, Finder]] = {
    "READER_FIELD_MISSING_DEFAULT_VALUE": put_back,
    "READER_FIELD_AMBIGUOUS": leave_out,
    "TYPE_MISMATCH": narrow,
    "MISSING_UNION_BRANCH": narrow,
    "MISSING_ENUM_SYMBOLS": drop_symbols,
    "NAME_MISMATCH": former_name,
    "FIXED_SIZE_MISMATCH": lambda fault, new, old: keep_size(
        fault.writer_place, Draft(old).type_at(fault.reader_place)
    ),
}
