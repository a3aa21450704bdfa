"""Reports the result of a comparison as tables, sentences and JSON documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from skidway.audit.comparison.lines import FileLines
from skidway.audit.comparison.matching import BAD, Fate, Records, Result, Span
from skidway.audit.comparison.notes import Counted, Unnoted
from skidway.cli.moments import shown

COLUMNS: Final = ("file", "lines", "shipped", *(x.value.replace(" ", "_") for x in list(Fate)[1:]))
SPAN_COLUMNS: Final = ("what", "file", "first", "end", "lines", "first_line")
TEXT_CHARACTERS_MAX: Final = 100
LATE_SHOWN: Final = 20
UNNOTED_SHOWN: Final = 5
STOPPED_AFTER_MS: Final = 300_000
"""`skidway agent count` normally notes at least once a minute that it looked for files. If the
command has noted no look for this long, it has stopped, or cannot read all files."""

_NO_LINE: Final = "records have no line in these files: their lines were deleted or changed"
_NOT_NOTED: Final = (
    "records have no line in the notes: their lines are older than the notes, could not be read, or"
    " are not noted yet"
)


def is_good(result: Result) -> bool:
    """Whether the comparison found nothing wrong: lines are shipped, none is missing, doubled or
    changed, and the shipper is not late with any line (see FileResult)."""
    counts = [each.counts for each in result.files]
    compared = sum(x[Fate.SHIPPED] for x in counts)
    is_late = any(each.late for each in result.files)
    return compared > 0 and not is_late and not any(x[fate] for x in counts for fate in BAD)


def rows(result: Result) -> list[dict[str, Any]]:
    """Returns the rows of the table of files: a row for each file."""
    return [
        {
            "file": each.path,
            "lines": sum(each.counts.values()),
            **{fate.value.replace(" ", "_"): count for fate, count in each.counts.items()},
        }
        for each in result.files
    ]


def span_rows(result: Result, files: Sequence[FileLines], limit: int) -> list[dict[str, Any]]:
    """Returns at most `limit` rows, each for a range of bytes whose lines are missing, doubled or
    changed."""
    bad = [span for span in result.spans if span.fate in BAD]
    return [_row(span, files[span.file]) for span in bad[:limit]]


def sentences(
    result: Result, records: Records, limit: int, *, is_counted: bool = False
) -> Iterator[str]:
    """Yields sentences that say how many lines are missing, doubled, changed or shipped, and which
    lines and records were not compared. limit: how many ranges the table shows at most. is_counted:
    whether the lines are from notes, and not from the files."""
    total = {fate: sum(x.counts[fate] for x in result.files) for fate in Fate}
    extra = sum(each.extra for each in result.files)
    bad = sum(1 for span in result.spans if span.fate in BAD)
    if bad > limit:
        yield f"{bad:,} ranges are missing, doubled or changed; {limit:,} are shown."
    if not sum(total.values()) - total[Fate.NOT_YET] - total[Fate.NOT_COMPARED]:
        yield "Nothing was compared: no record of the topic has a line of these files."
    else:
        yield (
            f"{total[Fate.MISSING]:,} lines are missing, {total[Fate.DOUBLED]:,} are doubled"
            f" ({extra:,} records too many), {total[Fate.CHANGED]:,} are changed;"
            f" {total[Fate.SHIPPED]:,} are shipped once."
        )
    if total[Fate.NOT_YET]:
        yield f"{total[Fate.NOT_YET]:,} lines are behind the last shipped line: not shipped yet."
    for each in [x for x in result.files if x.late][:LATE_SHOWN]:
        yield (
            f"{each.late:,} of them, in {each.path}, were noted more than an hour ago: does the"
            " shipper read this file?"
        )
    if total[Fate.NOT_COMPARED]:
        yield (
            f"{total[Fate.NOT_COMPARED]:,} lines were not compared: they are before the first line"
            " that was shipped, and older records have expired or were not read (--since)."
        )
    left_out = (
        (result.unknown, _NOT_NOTED if is_counted else _NO_LINE),
        (records.other_files, "records of other files were left out"),
        (records.other_hosts, "records of other hosts were left out"),
        (records.shapeless, "records do not have this shape"),
    )
    yield from (f"{count:,} {words}." for count, words in left_out if count)


def has_stopped(counted: Counted, now_ms: int) -> bool:
    """Whether `skidway agent count` has stopped, or cannot read all files: more than
    STOPPED_AFTER_MS have passed since it last looked for files and could read all of them."""
    return now_ms - counted.until_ms > STOPPED_AFTER_MS


def sentences_of_notes(counted: Counted, now_ms: int) -> Iterator[str]:
    """Yields sentences that say from when until when all lines are noted, and which bytes could not
    be noted."""
    if not counted.until_ms:
        yield (
            "skidway agent count could not read all files at any time: its log says which it cannot"
            " read. Their lines were not compared."
        )
    else:
        yield (
            f"The notes have all lines of the files from {shown(counted.from_ms)} to"
            f" {shown(counted.until_ms)}."
        )
    if counted.until_ms and has_stopped(counted, now_ms):
        yield (
            "Since then, skidway agent count does not run, or there is a file that it cannot read:"
            " its log says which. The lines that it could not note were not compared."
        )
    for each in counted.unnoted[:UNNOTED_SHOWN]:
        end = "an unknown end" if each.end is None else f"byte {each.end:,}"
        yield f"Not noted: {each.path} from byte {each.first:,} to {end}: {each.reason}."
    more = len(counted.unnoted) - UNNOTED_SHOWN
    if more > 0:
        yield f"{more:,} more ranges of files are not noted."
    for each in counted.uncertain[:UNNOTED_SHOWN]:
        yield (
            f"Uncertain: {each.path} from byte {each.first:,} to byte {each.end:,}: {each.reason}."
            " A line that an older file has at the same byte was compared only once."
        )
    more = len(counted.uncertain) - UNNOTED_SHOWN
    if more > 0:
        yield f"{more:,} more ranges of files are uncertain."


def document_of_notes(counted: Counted) -> dict[str, Any]:
    """Returns the facts about the notes, as a part of the JSON document."""
    return {
        "counted_from_ms": counted.from_ms,
        "counted_until_ms": counted.until_ms,
        "not_noted": list(map(_range, counted.unnoted)),
        "uncertain": list(map(_range, counted.uncertain)),
    }


def document(
    result: Result, files: Sequence[FileLines], records: Records, limit: int
) -> dict[str, Any]:
    """Returns the result of the comparison as a JSON document."""
    return {
        "ok": is_good(result),
        "files": [
            {**row, "extra": each.extra, "late": each.late}
            for row, each in zip(rows(result), result.files, strict=True)
        ],
        "ranges": span_rows(result, files, limit),
        "more_ranges": max(0, sum(1 for x in result.spans if x.fate in BAD) - limit),
        "unknown": result.unknown,
        "other_files": records.other_files,
        "other_hosts": records.other_hosts,
        "shapeless": records.shapeless,
        "sentences": list(sentences(result, records, limit)),
    }


def _range(found: Unnoted) -> dict[str, Any]:
    return {
        "file": found.path, "first": found.first, "end": found.end, "reason": found.reason
    }  # fmt: skip


def _row(span: Span, lines: FileLines) -> dict[str, Any]:
    text = lines.text_at(span.first, span.first_length).decode("utf-8", "replace")
    printable = "".join(x if x.isprintable() else "\N{REPLACEMENT CHARACTER}" for x in text)
    place = None if span.place is None else f"{span.place[0]}@{span.place[1]}"
    return {
        "what": span.fate.value,
        "file": lines.path,
        "first": span.first,
        "end": span.end,
        "lines": span.lines,
        "first_line": printable[:TEXT_CHARACTERS_MAX],
        "record": place,
    }
