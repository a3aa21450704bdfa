"""Tries a source's parser on the first and last lines of the source's files, for `agent validate`.

The lines go through the same press that makes batches of lines in a running agent. Here the batches
are neither sent nor kept. The last lines are tried because a format may change in the middle of a
file.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Final

import numpy as np

from skidway.agent.batches import fieldless
from skidway.agent.batches.press import Press
from skidway.agent.batches.rejected import RejectedLine
from skidway.agent.files.host import Host, shown
from skidway.agent.files.patterns import patterns_of
from skidway.agent.parsing.byte_order import UTF_16BE, WIDE, order_of
from skidway.agent.parsing.framing import READ_BYTES, Framer
from skidway.agent.settings import SourceSettings
from skidway.agent.validation.excerpts import excerpt
from skidway.agent.validation.pattern_uses import PatternUse, uses
from skidway.agent.values.found import FileKey, Found
from skidway.agent.values.intents import Intent, Reading
from skidway.dataclass import dataclass
from skidway.kafka.source import Source

FILES_MAX: Final = 20
EXAMPLES_MAX: Final = 3
EXAMPLE_CHARACTERS_MAX: Final = 200
BUCKET_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Misfit:
    """A line that is rejected. line: the line's number in the file, from 1; None for one of the
    last lines, whose numbers are unknown. first: the position in the file at which the line begins.
    text: the line's first characters.
    """

    path: str
    line: int | None
    first: int
    reason: str
    detail: str
    text: str


@dataclass(slots=True)
class Trial:
    """The result for one source. taken: the patterns of this source may also match files that an
    earlier source takes; by the topic of the earlier source, how many these are. `files` does not
    count them. replaced: how many lines had invalid bytes that were replaced, so that the lines are
    not rejected. coloured: from how many lines codes for terminals were taken. pieces: how many
    records are only a part of what the program wrote as one. patterns: what each pattern of the
    source does. special: (path, kind) of each FIFO, socket or device that the patterns match.
    filtered: how many records each rule left out. untried: why no line was tried; None if lines
    were tried. reserved: the fields whose names the loader needs for its own columns; because of
    these fields, the loader refuses the topic. ignored: a sentence for each logical type of the
    schema that has no effect. fieldless: by name, in how many lines members or keys are left out,
    because the schema has no field for them. lines, rejected: numbers of records, which may have
    several lines. examples: at least one of each reason.
    """

    topic: str
    files: int
    taken: dict[str, int] = field(default_factory=dict)
    tried: int = 0
    lines: int = 0
    replaced: int = 0
    coloured: int = 0
    pieces: int = 0
    filtered: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    examples: list[Misfit] = field(default_factory=list)
    patterns: list[PatternUse] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    special: list[tuple[str, str]] = field(default_factory=list)
    untried: str | None = None
    reserved: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    fieldless: dict[str, int] = field(default_factory=dict)

    @property
    def rejected(self) -> int:
        """How many lines were rejected."""
        return sum(self.reasons.values())

    @property
    def marks(self) -> list[str]:
        """What the reader should look at, although the configuration can be run."""
        of_patterns = [str(each) for each in self.patterns if each.is_mark]
        unreadable = [f"cannot read {path}: {why}" for path, why in self.unreadable]
        special = [f"{path} is a {kind}, and is not read" for path, kind in self.special]
        return [*of_patterns, *unreadable, *special, *self.ignored]

    @property
    def share(self) -> float:
        """The share of rejected lines among all tried lines, from 0 to 1."""
        return self.rejected / self.lines if self.lines else 0.0


def find(
    source: SourceSettings, host: Host, owners: dict[FileKey, str]
) -> tuple[list[Found], Trial]:
    """Returns the files of a source that can be opened, and a `Trial` (the result for the source)
    in which no lines have been tried yet. The file that changed last comes first.

    owners: the topic to which each file of the earlier sources goes. The agent gives a file to the
    first source that matches it. So `find` does not return the files in `owners`, and adds to
    `owners` the files that it returns.
    """
    scan = host.scan(patterns_of(source.paths, source.exclude))
    found = sorted(scan.found, key=lambda each: each.changed_ns, reverse=True)
    taken = Counter(owners[each.key] for each in found if each.key in owners)
    found = [each for each in found if each.key not in owners]
    owners.update((each.key, source.topic) for each in found)
    closed = dict(_closed(found, host))
    opened = [each for each in found if each.path not in closed]
    unread = *scan.unreadable, *dict(scan.refused).items(), *closed.items()
    return opened, Trial(
        source.topic,
        len(found),
        dict(taken),
        patterns=uses(source, host),
        unreadable=[(shown(path), why) for path, why in unread],
        special=[(shown(path), kind) for path, kind in scan.special],
    )


def run(
    press: Press,
    files: list[Found],
    trial: Trial,
    host: Host,
    lines_max: int,
    big_endian: Press | None = None,
) -> None:
    """Tries the first FILES_MAX of `files`: of each, at most lines_max first lines and lines_max
    last lines. Also adds to `trial` the files whose bytes cannot be read. big_endian: the press for
    files that begin with a big-endian byte order mark; `press` is for all other files.
    """
    for each in files[:FILES_MAX]:
        try:
            handle = host.open(each.path)
            try:
                head = handle.read(READ_BYTES, 0)
                tail_begin = max(each.size - READ_BYTES, 0) // 2 * 2
                tail = handle.read(READ_BYTES, tail_begin) if tail_begin else head
            finally:
                handle.close()
        except OSError as error:
            trial.unreadable.append((shown(each.path), error.strerror or str(error)))
            continue
        trial.tried += 1
        is_other = big_endian is not None and order_of(head) == UTF_16BE
        used = big_endian if big_endian is not None and is_other else press
        data, end = _first_records(used.framer, head, each.size, lines_max)
        if data:
            _press(used, each.path, data, 0, end, trial)
        begin, last = _last_records(used.framer, tail, tail_begin, end, lines_max)
        if last:
            _press(used, each.path, last, begin, begin + len(last), trial)
    trial.examples = _chosen(trial.examples)


def _closed(files: Iterable[Found], host: Host) -> Iterator[tuple[str, str]]:
    for each in files:
        try:
            host.open(each.path).close()
        except OSError as error:
            yield each.path, error.strerror or str(error)


def _first_records(framer: Framer, head: bytes, size: int, records_max: int) -> tuple[bytes, int]:
    """Returns the first whole records of a file, and the position at which they end. If the file
    has several records and its last record may still be incomplete, leaves the last record out.
    """
    is_cut = len(head) == READ_BYTES
    whole = (framer if is_cut else framer.lines).whole_records_end(head)
    if whole:
        ends = framer.frame(head[:whole], np.array([whole])).borders
        end = int(ends[min(records_max, len(ends)) - 1])
        return head[:end], end
    return head, max(size, len(head)) if is_cut else len(head)


def _last_records(
    framer: Framer, tail: bytes, begin: int, behind: int, records_max: int
) -> tuple[int, bytes]:
    """Returns the last whole records of a file, and the position at which the first of these
    records begins. Leaves out records that begin before the position `behind`. Also leaves out a
    first record whose beginning may be missing.
    """
    is_cut = behind < begin
    at = (framer.lines.end_inside(tail) or 0) if is_cut else behind - begin
    end = at + framer.lines.whole_records_end(tail[at:])
    if end <= at:
        return begin + at, b""
    frames = framer.frame(tail[at:end], np.array([end - at]))
    least = 1 if is_cut and not frames.are_lines else 0
    borders = np.append(0, frames.borders)[:-1]
    first = borders[max(len(borders) - records_max, least) :]
    at += int(first[0]) if len(first) else end - at
    return begin + at, tail[at:end]


def _press(press: Press, path: str, data: bytes, begin: int, end: int, trial: Trial) -> None:
    intent = Intent(0, 0, begin, end, 0, time.time_ns() // 1_000_000, b"")
    topics = press.recipe.topics
    sources = Source("", "", topics[0], ""), Source("", "", topics[1], "")
    pressed = press.press(0, [Reading(intent, data, "", shown(path))], sources, BUCKET_MS)
    trial.lines += pressed.records + len(pressed.rejected)
    if pressed.filtered is not None:
        trial.lines += len(pressed.filtered)
        for rule, (count, _) in pressed.filtered.by_rule.items():
            trial.filtered[rule] = trial.filtered.get(rule, 0) + count
    trial.replaced += pressed.replaced
    trial.coloured += pressed.coloured
    trial.pieces += pressed.pieces
    fieldless.add(trial.fieldless, pressed.fieldless)
    for reason, count in Counter(line.reason for line in pressed.rejected).items():
        trial.reasons[reason] = trial.reasons.get(reason, 0) + count
    known = Counter(each.reason for each in trial.examples)
    encoding = press.recipe.encoding if press.recipe.encoding in WIDE else "utf-8"
    for line in pressed.rejected:
        if known[line.reason] < EXAMPLES_MAX:
            trial.examples.append(_misfit(line, data, begin, encoding))
            known[line.reason] += 1


def _chosen(examples: list[Misfit]) -> list[Misfit]:
    firsts = list({each.reason: each for each in reversed(examples)}.values())
    others = [each for each in examples if each not in firsts]
    room = max(EXAMPLES_MAX - len(firsts), 0)
    return [each for each in examples if each in firsts or each in others[:room]]


def _misfit(line: RejectedLine, data: bytes, begin: int, encoding: str) -> Misfit:
    text = line.line[: 4 * EXAMPLE_CHARACTERS_MAX].decode(encoding, "replace")
    number = None if begin else data.count(b"\n", 0, line.first) + 1
    shown = excerpt(text, EXAMPLE_CHARACTERS_MAX)
    return Misfit(line.path, number, line.first, line.reason, line.detail, shown)
