"""Makes valid Avro names from any texts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from skidway.row_columns import columns

RESERVED: Final = frozenset({each.name for each in columns()} | {"dt", "hour"})
"""The names of the columns that Skidway adds to loaded rows and to the results of queries. No field
of a record may have such a name, whether in upper or in lower case. Queries refuse a topic whose
schema has such a field. The loader also refuses it, unless the field is `_topic` or `_headers`."""

EXTRA: Final = "_extra"
"""The name of a map of strings. The agent puts the members of a line there that have no field."""

EXTRA_FIELD: Final = {"name": EXTRA, "type": {"type": "map", "values": "string"}, "default": {}}

_NO_NAME = re.compile(r"[^A-Za-z0-9_]")


def avro_name(text: str) -> str:
    """Returns a valid name that is similar to `text`. Replaces each character that is not allowed
    in a name by `_`, and puts `_` before a leading digit.
    """
    made = _NO_NAME.sub("_", text)
    return made if made and not made[0].isdigit() else f"_{made}"


def avro_names(texts: Iterable[str], reserved: frozenset[str] = frozenset()) -> dict[str, str]:
    """Returns a valid name for each text. No two of these names are equal, and no two differ only
    in upper and lower case. No name is in `reserved`. A text that is already a valid name and is
    not reserved stays unchanged, unless it differs only in case from an earlier text of this kind.
    A reserved name loses its leading `_`. For example, `@timestamp` would become `_timestamp`,
    which is reserved, so it becomes `timestamp`.
    """
    texts = [*texts]
    first: dict[str, str] = {}
    for text in texts:
        if avro_name(text) == text and text.lower() not in reserved:
            first.setdefault(text.lower(), text)
    taken = {*first}
    names = {}
    for text in texts:
        name = made = avro_name(text)
        if made.lower() in reserved:
            name = made = made.lstrip("_")
        number = 2
        while first.get(text.lower()) != text and name.lower() in taken | reserved:
            name, number = f"{made}_{number}", number + 1
        taken.add(name.lower())
        names[text] = name
    return names
