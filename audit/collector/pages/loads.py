"""The page of loads: what the audit knows about each output and topic.

The loader's deltas report how many records of which offsets became rows. The loader's notes
(messages that change no verdict) report the rows, files and duration of each load that read
records. The audit keeps the notes of the newest loads. `skidway load history` shows all loads,
including loads that only replaced files.
"""

from __future__ import annotations

from collections.abc import Iterator

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.evidence.evidence import Coverage
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.explanation.next_command import command_of
from skidway.audit.judgement.cause import Run
from skidway.audit.judgement.sender_states import SenderState
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report
from skidway.audit.reports.topic_names import topic_name
from skidway.audit.topic.load_note import KEPT, KIND, Load, load_of
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.notes import Note
from skidway.kafka.source import Source

LOADS_SHOWN = 50
NOT_TOLD = Cell("not told")


def loads_table(facts: Facts) -> Table:
    """Returns a table with a row for each topic of each output."""
    states = {x.key: x for x in facts.senders if x.key.tier is Tier.HDFS}
    return Table(
        "loads",
        "What was loaded, by output and topic",
        (
            Column("output", "Output"),
            Column("topic", "Topic"),
            Column("state", "State"),
            Column("loads", "Messages", "number", 3),
            Column("offsets", "Records loaded", "number", 2),
            Column("behind", "Behind the brokers", "number"),
            Column("host", "Host", rank=4),
            Column("command", "Next", "code"),
        ),
        tuple(
            _row(facts, state, *each) for key, state in states.items() for each in _of(facts, key)
        ),
        empty="No loader has sent counts yet.",
    )


def newest_loads_table(facts: Facts) -> Table:
    """Returns a table of the newest loads of all outputs and topics."""
    found = [(x, load_of(x)) for x in facts.notes if x.kind == KIND]
    found.sort(key=lambda x: (-x[0].time_ms, x[0].producer, -x[0].number))
    return Table(
        "newest_loads",
        f"The newest loads, at most {KEPT} of each output and topic",
        (
            Column("topic", "Topic"),
            Column("time", "Committed at", "time"),
            Column("rows", "Rows", "number"),
            Column("seconds", "Took", "number"),
            Column("files", "Files", "number", 2),
            Column("bytes", "Bytes", "number", 2),
            Column("rows_per_second", "Rows a second", "number", 3),
            Column("rejects", "Rejects", "number", 3),
            Column("load", "Load", "number", 4),
            Column("output", "Output", rank=3),
        ),
        tuple(_load_row(facts, note, load) for note, load in found if load is not None),
        empty="No loader has told of a load yet.",
        shown_max=LOADS_SHOWN,
        note="skidway load history shows all loads, also those that replaced files.",
    )


def recounts_table(facts: Facts) -> Table:
    """Returns a table with a row for each topic in each output: the newest recount of its files."""
    found = [(topic, x) for topic in facts.standing.topics for x in topic.recounts]
    return Table(
        "recounts",
        "The newest recount of the files",
        (
            Column("output", "Output"),
            Column("topic", "Topic"),
            Column("verdict", "Result"),
            Column("time", "Counted again at", "time"),
            Column("loads", "Loads", "number", 2),
            Column("files", "Files", "number", 2),
            Column("rows", "Rows", "number", 2),
            Column("faults", "Faults", "number", 3),
            Column("differences", "Differences", "number", 3),
            Column("why", "Why"),
        ),
        tuple(
            (
                Cell(x.output),
                Cell(facts.names[topic.source]),
                Cell(
                    report.recount_word(x),
                    status=(Status.COMPLETE if x.is_good else Status.INCOMPLETE).word,
                ),
                Cell(words.near(x.time_ms, facts.now_ms), x.time_ms),
                *(Cell(f"{n:,}", n) for n in (x.loads, x.files, x.rows, x.faults, x.differences)),
                Cell(report.reasons_text(x.reasons)),
            )
            for topic, x in found
        ),
        empty="Nobody has counted the files again; skidway audit recount --tell does.",
    )


def _load_row(facts: Facts, note: Note, load: Load) -> tuple[Cell, ...]:
    name = facts.names.get(load.source, topic_name(load.source))
    rows, seconds = load.rows, load.seconds
    rate = None if rows is None or seconds is None or seconds < 0.001 else round(rows / seconds)
    took = NOT_TOLD if seconds is None else Cell(words.duration(seconds), seconds)
    size = NOT_TOLD if load.bytes is None else Cell(words.size(load.bytes), load.bytes)
    return (
        Cell(name, href=words.link("/buckets", topic=name)),
        Cell(words.near(note.time_ms, facts.now_ms), note.time_ms),
        _told(rows),
        took,
        _told(load.files),
        size,
        _told(rate),
        _told(load.rejects),
        Cell(f"{load.number:,}", load.number),
        Cell(note.producer.rpartition("/")[0] or note.producer),
    )


def _told(count: int | None) -> Cell:
    return NOT_TOLD if count is None else Cell(f"{count:,}", count)


def _of(facts: Facts, key: SenderKey) -> Iterator[tuple[Source | None, int, int | None]]:
    """Yields three values for each topic that a sender has counted: the topic, the number of
    offsets that the sender has counted, and how many more offsets the counters of the tier broker
    have counted. The last value is None if no counter of this tier has counted the topic. If the
    sender has counted no topic, yields (None, 0, None).
    """
    found = [
        (source, topic) for source, topic in facts.evidence.topics.items() if key in topic.coverage
    ]
    if not found:
        yield None, 0, None
    for source, topic in found:
        ours = topic.coverage[key]
        brokers = [x for k, x in topic.coverage.items() if k.tier is Tier.BROKER]
        yield source, _counted(ours), behind(ours, brokers)


def behind(ours: dict[int, Coverage], theirs: list[dict[int, Coverage]]) -> int | None:
    """Returns how many offsets other senders have counted beyond the ends of `ours`, in all
    partitions together. ours: by partition, the offsets that one sender has counted. theirs: for
    each other sender, by partition, the offsets that it has counted. Returns None if no other
    sender has counted.
    """
    if not theirs:
        return None
    ends: dict[int, int] = {}
    for covered in theirs:
        for partition, each in covered.items():
            ends[partition] = max(ends.get(partition, 0), each.end)
    return sum(
        max(end - (ours[partition].end if partition in ours else 0), 0)
        for partition, end in ends.items()
    )


def _counted(found: dict[int, Coverage]) -> int:
    return sum(each.end - each.first for each in found.values())


def _row(
    facts: Facts, state: SenderState, source: Source | None, offsets: int, late: int | None
) -> tuple[Cell, ...]:
    output = state.key.producer.rpartition("/")[0] or state.key.producer
    name = "" if source is None else facts.names.get(source, topic_name(source))
    return (
        Cell(output),
        Cell(name, href=words.link("/buckets", topic=name) if name else ""),
        Cell(state.words, status=state.status if state.status in words.GLYPHS else ""),
        Cell(f"{state.numbers.last:,}", state.numbers.last),
        Cell(f"{offsets:,}", offsets),
        Cell("unknown") if late is None else Cell(words.counted(late, "record"), late),
        Cell(state.numbers.host),
        Cell(_command(facts, state)),
    )


def _command(facts: Facts, state: SenderState) -> str:
    host, name = state.numbers.host, state.key.producer
    return str(command_of(facts.programs, Run("loader", "load status"), host, name))
