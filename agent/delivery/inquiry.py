"""Handles intents that cannot be sent again unchanged. An intent is a promised byte range of a
file, with the recipe by which its bytes become records. The module finds out which records of the
intents the brokers have, and then decides about the missing records.

    asked  -> search     which of the records the brokers have (search.py says how long it waits)
    search -> parts      arrived, missing, doubtful (read_back)
    arrived              counted and passed like acknowledged records
    missing, in file     sent by the present program with the intent's time of reading. If the
                         present program can still use the intent's settings, it uses them. So each
                         record gets the partition and audit bucket that it would have had, and
                         readers drop its late copies as repeats
    missing, bytes gone  lost: no broker has the records
    missing, too late    lost: the record's partition has later records of the file, so readers
                         would drop the record as a repeat
    doubtful             uncertain: the log has the bytes in different records
    log unreadable       uncertain: the part of the log that may have the records cannot be read

If only a part of an intent is sent, the intent is divided: one transaction replaces the intent's
row by one row for each part. Parts that are not sent keep their recipe. So after a crash, the agent
looks for their records in the brokers' logs again. A part keeps the `read_ms` of its intent.

The agent sends a part only if the present program begins a record at the part's first byte and ends
a record at the part's end. The agent does not send a record if its partition already has later
records of the file. This rule concerns only two kinds of records: those that a broker had refused,
and those that the present program sends to another partition than the earlier program. The present
program sends a record to another partition if it rejects other lines or finds another key.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from skidway.agent.batches.parsers import framer_of
from skidway.agent.batches.program_versions import at_present
from skidway.agent.delivery.evidence import Evidence, proven_bytes
from skidway.agent.delivery.presses import Presses
from skidway.agent.delivery.progress import Progress
from skidway.agent.delivery.read_back import (
    Fate,
    Found,
    Int64s,
    Part,
    Records,
    divide,
    dropped,
    reach,
    reach_of_any,
    split,
)
from skidway.agent.delivery.search import Logs, Search
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.reading import TURN_BYTES, Taken
from skidway.agent.files.tracking import Tracker
from skidway.agent.parsing.framing import READ_BYTES, READ_LINES, Framer
from skidway.agent.recipe import Recipe, has_refusal
from skidway.agent.state.changes import Changes
from skidway.agent.values.identity import GUARD_BYTES
from skidway.agent.values.intents import Intent, Numbers, Reading, crc_of
from skidway.agent.values.room import Room
from skidway.agent.values.set_apart import SetApart
from skidway.agent.values.tracked import Checkpoint, Flight, ReadingOutcome, TrackedFile
from skidway.audit.counts.counts import Counts
from skidway.audit.topic.messages import Certainty
from skidway.dataclass import dataclass
from skidway.kafka.types import TopicPartition

AGAIN_AFTER_S = 2.0

SEARCH_BYTES = 16 << 20
"""One search looks for the records of about this many bytes of files, because the search keeps in
memory all records that it finds.
"""

TURN_INTENTS = 200
"""In one turn of its loop, the agent decides about at most this many of the intents that cannot be
sent again unchanged."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """An intent whose records the agent looks for in the brokers' logs. reason: why the intent
    cannot be sent again unchanged. reach: the partitions that may have its records. recipe: the
    recipe by which the intent was sent. If that recipe is unknown, `recipe` is the present recipe
    of the intent's file, or None if no source sends the file to the same topic any more.
    """

    intent: Intent
    recipe: Recipe | None
    reason: str
    reach: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What the agent does with a part of an intent. sending: the reading (intent and bytes) with
    which the part is sent; None if it is not sent. certainty: whether the part is declared lost or
    uncertain, for `reason`; None if it is not declared. If both are None, the part has arrived.
    """

    part: Part
    sending: Reading | None = None
    certainty: Certainty | None = None
    reason: str = ""


class Inquiry:
    """Owns the intents whose records are looked for in the brokers' logs."""

    def __init__(
        self,
        tracker: Tracker,
        handles: Handles,
        presses: Presses,
        progress: Progress,
        numbers: Numbers,
        logs: Logs,
        agent: int,
        past_at: float,
    ) -> None:
        """past_at: the monotonic time after which a batch that was sent before the agent started
        can no longer arrive.
        """
        # This method has eight arguments, because what becomes of an intent changes several other
        # objects: those that own files, recipes and the progress of partitions.
        self._tracker = tracker
        self._handles = handles
        self._presses = presses
        self._progress = progress
        self._numbers = numbers
        self._search = Search(logs, Found(agent, []))
        self._agent = agent
        self._past_at = past_at
        self._asked: list[_Asked] = []
        self._searching: list[_Asked] = []  # the intents of the present search

        # By file: the value of `Found.news` when the file's records were last gathered, and these
        # records
        self._records: dict[int, tuple[int, Records]] = {}
        self._again_at = 0.0
        self._files: Counter[int] = Counter()  # by file: how many intents are undecided
        self._divided: dict[int, None] = {}
        self._kept: list[Intent] = []

    @property
    def is_over(self) -> bool:
        """Whether the inquiry has decided about all its intents, which cannot be sent again
        unchanged."""
        return not self._asked and not self._searching

    @property
    def has_news(self) -> bool:
        """Whether the search has new results, so that the agent's loop should begin its next turn
        at once."""
        return self._search.has_news

    def has(self, file: int) -> bool:
        """Whether an intent of the file is still undecided."""
        return file in self._files

    def ask(self, intent: Intent, tracked: TrackedFile, recipe: Recipe | None, reason: str) -> None:
        """Takes over an intent that cannot be sent again unchanged. reason: why the intent cannot
        be sent again, in words. recipe: the recipe by which the intent was sent; None if it is
        unknown. The intents of a file must come in the order of the file's bytes.
        """
        if recipe is not None:
            places = reach(recipe, intent)
        else:
            recipe = self._recipe_now(tracked)
            places = set() if recipe is None else reach_of_any(recipe)
        self._files[intent.file] += 1
        self._asked.append(_Asked(intent, recipe, reason, frozenset(places)))

    def turn(self, now: float) -> None:
        """Processes the responses that have arrived from brokers, without waiting for more
        responses. Begins a search if none is under way and an intent waits for one."""
        if not self._searching and self._asked:
            self._begin(now)
        self._search.turn(now, is_past=now >= self._past_at)

    def take(self, now: float, room: Room) -> list[Taken]:
        """Decides about each intent as soon as the search has found all that the decision depends
        on, and the topic of the intent's file has room. Returns the parts of intents that have to
        be sent.
        """
        taken: list[Taken] = []
        if not self._searching or now < self._again_at:
            return taken
        undecided: list[_Asked] = []
        stuck: set[int] = set()
        waiting: set[int] = set()
        left = TURN_BYTES
        for index, asked in enumerate(self._searching):
            if left <= 0 or len(taken) >= TURN_INTENTS or index - len(undecided) >= TURN_INTENTS:
                undecided += self._searching[index:]
                break
            file = asked.intent.file
            if not room.has(self._topic(asked)):
                stuck.add(file)
            if file in stuck or file in waiting or not self._search.knows(asked.reach):
                waiting.add(file)
                undecided.append(asked)
                continue
            try:
                found = self._decide(asked)
            except OSError as error:
                tracked = self._tracker.files[file]
                self._tracker.cannot_read(tracked, error)
                self._handles.drop(tracked.file)
                self._again_at = now + AGAIN_AFTER_S
                stuck.add(file)
                undecided.append(asked)
                continue
            taken += found
            room.take(self._topic(asked), sum(len(each.reading.data) for each in found))
            left -= min(asked.intent.length, READ_BYTES)
            self._files[file] -= 1
            if not self._files[file]:
                del self._files[file]
        self._searching = undecided
        if self._search.is_over:
            self._make_way(stuck, room)
        if not self._searching:
            self._records = {}
            self._search.end()
        return taken

    def write(self, changes: Changes) -> None:
        """Deletes the divided intents from the state, and adds those of their parts that are not
        sent. `Presses.promise` adds the parts that are sent, in the same transaction."""
        if self._divided:
            changes.forget_intents(self._divided)
            changes.put_intents(self._kept)
            self._divided, self._kept = {}, []

    def status(self, now: float) -> dict[str, object] | None:
        """Returns, for /health, how many bytes the undecided intents have, and what the search of
        the brokers' logs waits for; None if no intent is undecided."""
        if self.is_over:
            return None
        size = sum(each.intent.length for each in (*self._searching, *self._asked))
        return {"bytes": size, **self._search.status(self._past_at, now)}

    def silent_s(self, now: float) -> dict[TopicPartition, float]:
        """Returns the partitions that the search has not read up to their high watermarks, each
        with the time (s) since the search last made progress in any partition."""
        return self._search.silent_s(now)

    def _make_way(self, stuck: set[int], room: Room) -> None:
        """If only stuck files still have undecided intents in this search, ends the search, so that
        a search for the intents of other files can begin. The agent tries the stuck files again
        after that search. A file's intents stay in their order. stuck: the files that cannot be
        read now, and those whose topic has no room.
        """
        others: list[_Asked] = []
        own: list[_Asked] = []
        for each in self._asked:
            is_stuck = each.intent.file in stuck or not room.has(self._topic(each))
            (own if is_stuck else others).append(each)
        if others and all(each.intent.file in stuck for each in self._searching):
            self._asked = [*others, *self._searching, *own]
            self._searching = []

    def _topic(self, asked: _Asked) -> str:
        return self._tracker.files[asked.intent.file].birth.topic

    # --- searching ------------------------------------------------------------------------------

    def _begin(self, now: float) -> None:
        room = SEARCH_BYTES
        count = 0
        while count < len(self._asked) and room > 0:
            room -= min(self._asked[count].intent.length, READ_BYTES)
            count += 1
        self._searching, self._asked = self._asked[:count], self._asked[count:]
        places = {tp for asked in self._searching for tp in asked.reach}
        floors = self._progress.floors_of(places)
        wanted = [asked.intent for asked in self._searching if asked.reach]
        self._search.begin(Found(self._agent, wanted), floors, now)

    def _recipe_now(self, tracked: TrackedFile) -> Recipe | None:
        """Returns the recipe by which the agent now sends bytes of the file. Returns None if no
        source has the file, if the topic's id is not known, or if the file was announced under
        another topic or topic id. If the file cannot be opened, returns the recipe that the source
        has without a look at the file's first bytes.
        """
        if tracked.source is None:
            return None
        source = self._tracker.sources[tracked.source]
        birth = tracked.birth
        if not birth.topic_id or (source.topic, source.topic_id) != (birth.topic, birth.topic_id):
            return None
        try:
            manner = source.manner_of(tracked, self._handles.get(tracked))
        except (Moved, OSError):
            return self._presses.recipe(source.recipe)
        return self._presses.recipe(manner.recipe)

    # --- deciding -------------------------------------------------------------------------------

    def _decide(self, asked: _Asked) -> list[Taken]:
        """Adds a flight for every part of an intent. (A flight is a byte range that the checkpoint
        still has to pass.) Returns the parts that have to be sent. Raises OSError if the file
        cannot be read now.
        """
        intent = asked.intent
        tracked = self._tracker.files[intent.file]
        evidence = self._evidence(tracked, intent)
        found = self._search.found
        news = found.news[intent.file]
        if intent.file not in self._records or self._records[intent.file][0] != news:
            self._records[intent.file] = news, found.records(intent.file)
        parts = divide(intent, self._records[intent.file][1])
        if len(parts) > 1 and intent.length > READ_BYTES:  # an over-long line has only one record
            parts = [Part(intent.first, intent.end, Fate.DOUBTFUL)]
        if evidence is None:
            tracked.verified = False  # the tracker checks the file's bytes before the next read
            self._tracker.doubts[tracked.birth.topic] += 1
        verdicts = self._verdicts(asked, parts, tracked, evidence)
        taken = []
        for verdict in verdicts:
            one = self._launch(asked, verdict, tracked, evidence, is_whole=len(verdicts) == 1)
            if one is not None:
                taken.append(one)
        return taken

    def _evidence(self, tracked: TrackedFile, intent: Intent) -> Evidence | None:
        """Returns the intent's bytes; None if they are gone or changed. Raises OSError if the file
        cannot be read now, for example because it was renamed again while the agent searched for
        it.
        """
        try:
            return proven_bytes(self._handles, tracked, intent)
        except Moved:
            if not self._tracker.find_again(tracked):
                return None
        try:
            return proven_bytes(self._handles, tracked, intent)
        except Moved:
            raise FileNotFoundError(errno.ENOENT, "it moved while it was looked at") from None

    def _verdicts(
        self,
        asked: _Asked,
        parts: list[Part],
        tracked: TrackedFile,
        evidence: Evidence | None,
    ) -> list[_Verdict]:
        """Returns what the agent does with each part of an intent, in the order of the bytes. A
        part whose records are missing from the logs may be divided by `_plans`; the result then has
        the smaller parts.
        """
        why, unsure = asked.reason, Certainty.UNCERTAIN
        missing = [part for part in parts if part.fate is Fate.MISSING]
        certainty, finding = self._search.verdict(asked.reach)
        if asked.recipe is None:
            certainty, finding = unsure, ""
        plans: list[tuple[Part, Reading | str]] = [(part, "") for part in missing]
        if missing and certainty is Certainty.LOST and evidence is not None:
            plans = self._plans(asked, missing, tracked, evidence)
        verdicts = [_Verdict(part) for part in parts if part.fate is Fate.ARRIVED]
        doubtful = f"{why}, and the brokers hold it in more than one way"
        verdicts += [
            _Verdict(part, certainty=unsure, reason=doubtful)
            for part in parts
            if part.fate is Fate.DOUBTFUL
        ]
        for piece, plan in plans:
            if isinstance(plan, Reading):
                verdicts.append(_Verdict(piece, sending=plan))
            else:
                reason = f"{why}{finding}{plan}"
                verdicts.append(_Verdict(piece, certainty=certainty, reason=reason))
        return sorted(verdicts, key=lambda verdict: verdict.part.first)

    def _plans(
        self,
        asked: _Asked,
        missing: list[Part],
        tracked: TrackedFile,
        evidence: Evidence,
    ) -> list[tuple[Part, Reading | str]]:
        """Divides each part that is missing from the logs into smaller parts. Each of these is sent
        as a whole or not at all. Returns each smaller part with the reading that sends it, or with
        the reason (a text) why it cannot be sent.
        """
        recipe = self._sendable(asked, tracked, evidence)
        if recipe is None:
            return [(p, "; the settings do not say any more how to send it") for p in missing]
        framer = framer_of(recipe)
        most = min(READ_LINES, framer.lines.lines_max)
        bounds = _record_bounds(asked.intent, evidence, framer)
        ends = set(bounds.tolist())
        plans: list[tuple[Part, Reading | str]] = []
        readings: dict[Part, Reading] = {}
        for part in missing:
            if {part.first, part.end} <= ends:
                for small in _smaller(part, bounds, most):
                    reading = self._reading(asked.intent, small, tracked, evidence, recipe)
                    readings[small] = reading
            else:
                plans.append((part, "; lines end elsewhere for this version of the program"))
        behind = list(self._dropped(recipe, list(readings.values())))
        is_dropped = np.zeros(len(bounds) - 1, np.bool_)
        is_dropped[np.searchsorted(bounds, behind, side="right") - 1] = True
        for piece, would_be in (p for part in readings for p in split(part, bounds, is_dropped)):
            if would_be:
                plans.append((piece, "; it cannot be sent behind what they have of the file"))
            else:
                reading = self._reading(asked.intent, piece, tracked, evidence, recipe)
                plans.append((piece, reading))
        return plans

    def _sendable(self, asked: _Asked, tracked: TrackedFile, evidence: Evidence) -> Recipe | None:
        """Returns the recipe by which missing records are sent: the intent's settings with the
        versions of the present program, or else the file's present settings. Returns None if the
        present program can use neither of these settings. Raises OSError if it can compile the
        present settings, but fails to make records by them: they may be mended.
        """
        assert asked.recipe is not None
        now = self._recipe_now(tracked)
        reading = tracked.reading(asked.intent, evidence.data)
        for recipe in (at_present(asked.recipe), now):
            if recipe is None or not self._presses.can_press(recipe):
                continue
            if not has_refusal(asked.recipe) or self._presses.can_make(recipe, reading):
                return recipe
        if now is not None and self._presses.has_failed(now):
            raise OSError(
                errno.EINVAL, "no records can be made of it by the settings of its source"
            )
        return None

    def _reading(
        self, whole: Intent, part: Part, tracked: TrackedFile, evidence: Evidence, recipe: Recipe
    ) -> Reading:
        fingerprint, intent, data = recipe.fingerprint, whole, evidence.data
        if (part.first, part.end) != (whole.first, whole.end):
            data = _cut(whole, part, evidence)
            intent = replace(whole, first=part.first, end=part.end, crc=crc_of(data))
        if intent is not whole or fingerprint != whole.recipe:
            intent = replace(intent, sequence=self._numbers.next(), recipe=fingerprint)
        return tracked.reading(intent, data)

    def _dropped(self, recipe: Recipe, readings: list[Reading]) -> Iterator[int]:
        """Yields the positions in the file of those records of `readings` that consumers would drop
        as repeats, because the partition already has later records of the file."""
        if not readings:
            return
        places = {tp for reading in readings for tp in reach(recipe, reading.intent)}
        file = readings[0].intent.file
        tops = {tp: self._search.found.marks.top(file, tp) for tp in places}
        if max(tops.values()) > readings[0].intent.first:
            yield from dropped(self._presses.places(recipe, readings), tops)

    # --- launching ------------------------------------------------------------------------------

    def _launch(
        self,
        asked: _Asked,
        verdict: _Verdict,
        tracked: TrackedFile,
        evidence: Evidence | None,
        *,
        is_whole: bool,
    ) -> Taken | None:
        """Adds a flight (a byte range that the checkpoint still has to pass) for a part of an
        intent, after the flights of the file's earlier bytes. Returns the part if it has to be
        sent, else None.
        """
        whole, part = asked.intent, verdict.part
        intent = self._intent_of(whole, verdict, evidence, is_whole=is_whole)
        after = _advance(tracked, whole, part, evidence)
        size = part.end - part.first
        flight = Flight(intent, after)
        self._tracker.launch(tracked, flight)
        if verdict.sending is not None:
            reading = replace(verdict.sending, intent=intent)
            return Taken(tracked, reading, flight, is_new=intent is not whole)
        flight.outcome = ReadingOutcome(0, 0, Counts())
        if verdict.certainty is None:
            assert asked.recipe is not None
            records = self._records[whole.file][1].of(part)
            flight.outcome = self._presses.arrived(asked.recipe, whole.file, records)
        elif verdict.certainty is Certainty.LOST:
            flight.lost_bytes = size
        else:
            flight.uncertain_bytes = size
        if verdict.certainty is not None:
            apart = SetApart(tracked, part.first, part.end, verdict.certainty, verdict.reason)
            self._tracker.news.set_apart.append(apart)
        return None

    def _intent_of(
        self, whole: Intent, verdict: _Verdict, evidence: Evidence | None, *, is_whole: bool
    ) -> Intent:
        """Returns the intent of a part: `whole` itself if the part is the whole intent and is not
        sent by another recipe, or else a new intent. The new intents of all parts together replace
        `whole`."""
        part = verdict.part
        if verdict.sending is not None:
            intent = verdict.sending.intent
        elif is_whole:
            intent = whole
        else:
            # If the part's bytes are gone, the part gets the CRC of the whole intent. So bytes that
            # may later be in the part's range do not match this CRC.
            crc = whole.crc if evidence is None else crc_of(_cut(whole, part, evidence))
            number = self._numbers.next()
            intent = replace(whole, sequence=number, first=part.first, end=part.end, crc=crc)
            self._kept.append(intent)
        if intent is not whole:
            self._divided[whole.sequence] = None
            self._progress.forget([whole.sequence])
            self._progress.divided([intent.sequence])
        return intent


def _record_bounds(intent: Intent, evidence: Evidence, framer: Framer) -> Int64s:
    """Returns the positions, in the byte range of an intent, at which the range may be divided: a
    record begins or ends there if the agent's present version divides the range. (The version that
    made the intent may have divided it otherwise.)"""
    if intent.length > READ_BYTES:
        return np.array([intent.first, intent.end])
    frames = framer.frame(evidence.data, np.array([len(evidence.data)]))
    return np.append(intent.first, frames.borders + intent.first)


def _smaller(part: Part, bounds: Int64s, most: int) -> Iterator[Part]:
    """Divides a part into parts of at most `most` records. An earlier version of the agent may
    have made intents with more lines than this version reads at a time."""
    low, high = np.searchsorted(bounds, [part.first, part.end]).tolist()
    for begin, end in pairwise([*range(low, high, most), high]):
        yield replace(part, first=int(bounds[begin]), end=int(bounds[end]))


def _cut(whole: Intent, part: Part, evidence: Evidence) -> bytes:
    return evidence.data[part.first - whole.first : part.end - whole.first]


def _advance(
    tracked: TrackedFile, whole: Intent, part: Part, evidence: Evidence | None
) -> Checkpoint:
    if evidence is None:
        return tracked.skip_to(part.end)
    if (part.first, part.end) == (whole.first, whole.end):
        return tracked.read_on(evidence.prefix_crc, evidence.tail, part.end)
    data = _cut(whole, part, evidence)
    tail = ((tracked.tail or b"") + data[-GUARD_BYTES:])[-GUARD_BYTES:]
    return tracked.read_on(crc_of(data, tracked.read_crc), tail, part.end)
