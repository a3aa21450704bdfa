"""Makes the output of `skidway agent validate` about the lines that it tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from skidway import invocation
from skidway.agent.batches.fieldless import sentences
from skidway.agent.validation.excerpts import counted

if TYPE_CHECKING:  # `agent run` tries no lines, and so does not load the module `trial`
    from skidway.agent.validation.trial import Trial

REGISTRY_TIMEOUT_S: Final = 2.0
MARKS_MAX: Final = 20
MARK: Final = "  ! "
"""The beginning of a line that the reader should look at, although the configuration is good."""


def document(trials: Sequence[Trial], share_max: float) -> dict[str, Any]:
    """Returns the results of the trials, as a JSON document for programs. The member `ok` of the
    document is true if no source rejects more than `share_max` of its lines."""
    sources = [
        {
            **asdict(each),
            "rejected": each.rejected,
            "share": round(each.share, 4),
            "marks": each.marks,
        }
        for each in trials
    ]
    return {"ok": refusal(trials, share_max) is None, "sources": sources}


def render(trials: Sequence[Trial]) -> str:
    """Returns the results of the trials, as text for people: each source, with examples of rejected
    lines."""
    return "".join(f"{line}\n" for each in trials for line in _of_source(each))


def refusal(trials: Sequence[Trial], share_max: float) -> str | None:
    """Returns a sentence that names the sources that reject more than `share_max` of their lines;
    None if there are no such sources."""
    refused = [each.topic for each in trials if each.share > share_max]
    if not refused:
        return None
    return (
        f"the configuration can be run, but {', '.join(refused)} would reject more than "
        f"{share_max:.0%} of its records (rejected.share.max)"
    )


def strict_refusal(trials: Sequence[Trial]) -> str | None:
    """Returns a sentence that names the sources with marks; None if there are no such sources."""
    but = _look(trials)
    return f"the configuration can be run{but}" if but else None


def goodness(trials: Sequence[Trial]) -> str:
    """Returns a sentence about a configuration that is not refused. It names the sources with
    marks, whose files may be missing or unreadable only now."""
    return f"the configuration is good{_look(trials)}"


def _look(trials: Sequence[Trial]) -> str:
    marked = [each.topic for each in trials if each.marks]
    return f", but look at the lines with ! of {', '.join(marked)}" if marked else ""


def of_reserved(names: Sequence[str]) -> list[str]:
    """Returns sentences that warn of fields whose names the loader needs for its own columns.
    names: the names of these fields."""
    return [
        f"the loader will refuse the topic: the field {name} has the name of one of the loader's "
        "own columns; rename it"
        for name in names
    ]


def of_pieces(count: int) -> str:
    """Returns a sentence about records that are pieces."""
    return (
        f"{counted(count, 'record', 'is')} only a part of what the program wrote as one: cut at "
        "multiline.max.lines or max.line.bytes, or before the first line that begins a record"
    )


def _of_source(each: Trial) -> list[str]:
    lines = [f"{each.topic}: {_sum(each)}"]
    lines += [f"  {_of_taken(topic, count)}" for topic, count in sorted(each.taken.items())]
    lines += [f"  {words}" for words in of_reserved(each.reserved)]
    lines += [f"  {use}" for use in each.patterns if not use.is_mark]
    marks = each.marks
    lines += [f"{MARK}{mark}" for mark in marks[:MARKS_MAX]]
    if len(marks) > MARKS_MAX:
        lines.append(f"{MARK}and {len(marks) - MARKS_MAX} more")
    for misfit in each.examples:
        place = f"byte {misfit.first:,}" if misfit.line is None else f"line {misfit.line}"
        lines.append(f"  {misfit.path} {place}: {misfit.reason}: {misfit.detail}")
        lines.append(f"      {misfit.text}")
    if (more := each.rejected - len(each.examples)) and each.examples:
        test = invocation.of_this_process().command(
            "agent test", "FILE", "--limit", str(each.lines)
        )
        lines.append(f"  {more:,} more; `{test}` shows those of a file")
    if each.coloured:
        count = counted(each.coloured, "record")
        lines.append(f"  in {count} are codes for terminals (colours), which are taken out")
    if each.pieces:
        lines.append(f"  {of_pieces(each.pieces)}")
    lines += [f"  {words}" for words in sentences(each.fieldless, each.lines)]
    lines += [f"  {count:,} filtered by {rule}" for rule, count in sorted(each.filtered.items())]
    return lines


def _of_taken(topic: str, count: int) -> str:
    go = "file that its paths match goes" if count == 1 else "files that its paths match go"
    return f"{count:,} {go} to the source of topic {topic}, which comes first"


def _sum(each: Trial) -> str:
    if not each.files:
        return "no file is left for it" if each.taken else "no file matches its paths now"
    files = counted(each.files, "file")
    if each.untried is not None:
        return f"{files}; no line was tried, {each.untried}"
    if each.tried < each.files:
        files += f", {each.tried:,} of them tried"
    replaced = f"; in {each.replaced:,} something is not UTF-8, replaced" if each.replaced else ""
    if not each.rejected:
        return f"{files}; all of {counted(each.lines, 'record')} fit{replaced}"
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(each.reasons.items()))
    return (
        f"{files}; {each.rejected:,} of {counted(each.lines, 'record')} ({each.share:.1%}) do not "
        f"fit: "
        f"{reasons}{replaced}"
    )
