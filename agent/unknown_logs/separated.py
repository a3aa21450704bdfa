"""Proposes settings for values with a delimiter between them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from skidway.agent.parsing import csv_lines
from skidway.agent.unknown_logs import written_times
from skidway.agent.unknown_logs.shares import LOOKED_AT_MAX, SHARE_LEAST
from skidway.schemas.inference.naming import RESERVED

COLUMNS_LEAST: Final = 3
DELIMITERS: Final = ("\t", ";", ",", "|")

_CLOCK = re.compile(r"\d:\d\d")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
_SPELLINGS: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ß": "ss"}
)


def proposed(texts: Sequence[str]) -> dict[str, Any] | None:
    """Returns settings for values with a delimiter. A log has such values if at least SHARE_LEAST
    of the lines have the same number of values, and this number is at least COLUMNS_LEAST.
    """
    lines = texts[:LOOKED_AT_MAX]
    best: tuple[bool, int, str] | None = None
    time = written_times.first_time(lines)
    for delimiter in DELIMITERS:
        if delimiter in time:
            continue
        cut = [csv_lines.split(line, delimiter) for line in lines]
        counts = Counter(len(each) for each in cut if isinstance(each, list))
        count, lines_of_count = counts.most_common(1)[0] if counts else (0, 0)
        is_regular = lines_of_count >= SHARE_LEAST * len(lines)
        # Prefer a delimiter by which the first line has as many values as the other lines. The
        # other lines may have decimal commas, which look like delimiters. If the first line is a
        # header, it has no decimal commas.
        found = len(cut[0]) == count if cut else False, count, delimiter
        if count >= COLUMNS_LEAST and is_regular and (best is None or found[:2] > best[:2]):
            best = found
    if best is None:
        return None
    _, count, delimiter = best
    rows = [csv_lines.split(line, delimiter) for line in lines]
    whole = [row for row in rows if isinstance(row, list) and len(row) == count]
    header = lines[0] if rows[0] == whole[0] else None
    parser: dict[str, Any] = {"type": "csv", **_columns(whole[0], header)}
    if delimiter != ",":
        parser["delimiter"] = "tab" if delimiter == "\t" else delimiter
    named = parser["columns"][0] != "column_1"
    stamp = written_times.of_columns(parser["columns"], whole[1:], delimiter, are_named=named)
    return {"parser": parser} | ({} if stamp is None else {"timestamp": stamp})


def _columns(first: Sequence[str], header: str | None) -> dict[str, Any]:
    """Returns the settings that name the columns. If the first line looks like a header, it gives
    the names; otherwise the names are `column_1`, `column_2` and so on. header: the text of the
    first line; None if the first line cannot be a header.
    """
    texts = first[:-1] if first[-1] == "" else first  # no value follows the last delimiter
    has_time = any(map(_CLOCK.search, texts))
    is_header = (
        header is not None
        and not has_time
        and all(
            len(value) <= 40
            and not _NUMBER.fullmatch(value)
            and not written_times.is_rfc3339(value)
            and _name(value)
            for value in texts
        )
    )
    if not is_header:
        return {"columns": [f"column_{number}" for number in range(1, len(first) + 1)]}
    names: list[str] = []
    for number, value in enumerate(first, 1):
        name = _name(value) or f"column_{number}"
        is_taken = name in names or name.lower() in RESERVED
        names.append(f"{name}_{number}" if is_taken else name)
    return {"columns": names} | ({} if names == list(first) else {"header": header})


def _name(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.strip().translate(_SPELLINGS))
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    name = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_")
    return name if re.match(r"[A-Za-z]", name) and len(name) * 2 > len(text) else ""
