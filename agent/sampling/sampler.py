"""Keeps in the state the byte ranges of files that were chosen at random. When a sampling period
has ended, sends the audit samples, which say what the records of the chosen ranges must contain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from skidway.agent import events
from skidway.agent.accounts.mail import Mail
from skidway.agent.batches.program_versions import at_present
from skidway.agent.batches.range_records import RangeRecords, parts, window
from skidway.agent.batches.recipe import has_refusal
from skidway.agent.delivery.presses import Presses
from skidway.agent.files.handles import Handles, Moved
from skidway.agent.files.tracking import Tracker
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.sampling.draw import Draw, drawn, period_of
from skidway.agent.settings import AgentSettings
from skidway.agent.state.changes import Changes
from skidway.agent.values.drawn import Drawn
from skidway.agent.values.intents import GIVEN_UP, crc_of
from skidway.agent.values.tracked import Flight, TrackedFile
from skidway.audit.topic.sample import Sample

AGAIN_AFTER_S = 10.0
ATTEMPTS_MAX = 12
"""The agent tries at most this many times to read a file that cannot be read right now, for example
because rotation has just renamed the file. Then the agent reports the file's range as gone."""

_CHANGED = "the file does not have the bytes any more that were sent"


class Sampler:
    """Owns the rows of the table `drawn`, which has the byte ranges of files that were chosen for
    samples."""

    def __init__(
        self,
        agent: int,
        host: str,
        settings: AgentSettings,
        presses: Presses,
        tracker: Tracker,
        handles: Handles,
        mail: Mail,
        known: Iterable[Drawn],
    ) -> None:
        self._agent, self._host = agent, host
        self._presses, self._tracker, self._handles = presses, tracker, handles
        self._mail = mail
        self._limit, self._period_ms = settings.sample_ranges, settings.sample_interval_ms
        by_order = sorted(known, key=lambda each: each.order)
        self._due = [each for each in by_order if each.count]
        rest = [each for each in by_order if not each.count]
        periods = groupby(rest, key=lambda each: (each.period, each.period_ms))
        self._draws = {key: Draw(key[0], max(self._limit, 1), [*own]) for key, own in periods}
        self._attempts = 0
        self._again_at = 0.0
        self._is_dropping = False

    def take_settings(self, settings: AgentSettings) -> None:
        """Uses the reloaded settings from now on. If the length of a period has changed, the choice
        begins anew with a new period. If the new settings forbid sampling, drops the ranges that
        were chosen: an operator may have turned sampling off because an audit of an older version
        does not know the messages.
        """
        self._limit, self._period_ms = settings.sample_ranges, settings.sample_interval_ms
        if not self._limit:
            self._draws.clear()
            self._due.clear()
            self._is_dropping = True

    def passed(self, flights: Iterable[Flight], now_ms: int, changes: Changes) -> None:
        """Chooses at random, for samples, some of the intents that the checkpoint passes in this
        transaction, and stores them."""
        if not self._limit:
            return
        period = period_of(now_ms, self._period_ms)
        key = period, self._period_ms
        draw = self._draws.setdefault(key, Draw(period, self._limit))
        for flight in flights:
            intent = flight.intent
            if not _is_whole(flight):
                continue
            recipe = self._presses.recipe(intent.recipe)
            if intent.recipe == GIVEN_UP or recipe is None or has_refusal(recipe):
                continue
            each = drawn(self._agent, period, self._period_ms, intent)
            is_drawn, replaced = draw.offer(each)
            if is_drawn:
                changes.put_recipe(recipe)
                changes.put_drawn([each])
            if replaced is not None:
                changes.forget_drawn([replaced])

    def turn(self, now: float, now_ms: int, changes: Changes) -> None:
        """Makes a sample of one of the ranges that were chosen in a period that has ended, and
        publishes the sample. Does nothing if there is no such range."""
        if self._is_dropping:
            changes.forget_all_drawn()
            self._is_dropping = False
        self._end_periods(now_ms, changes)
        if not self._due or now < self._again_at:
            return
        each = self._due[0]
        try:
            sample = self._sampled(each, now_ms)
        except (Moved, OSError) as error:
            self._attempts += 1
            self._again_at = now + AGAIN_AFTER_S
            if self._attempts < ATTEMPTS_MAX:
                return
            words = "another file is at its path" if isinstance(error, Moved) else str(error)
            sample = self._gone(each, now_ms, f"the file cannot be read: {words}")
        self._attempts = 0
        del self._due[0]
        changes.forget_drawn([each])
        self._mail.stage(sample)
        events.sampled(sample)

    def _end_periods(self, now_ms: int, changes: Changes) -> None:
        """Finds the sampling periods that are over by the clock, and gives the ranges that were
        chosen in each of them the numbers 1, 2, 3 and so on."""
        for key in [key for key in self._draws if sum(key) <= now_ms]:
            kept = self._draws.pop(key).kept
            numbered = [
                replace(each, number=number, count=len(kept)) for number, each in enumerate(kept, 1)
            ]
            changes.put_drawn(numbered)
            self._due += numbered

    def _sampled(self, each: Drawn, now_ms: int) -> Sample:
        """Returns the sample of a range: what its records must contain, or why they cannot be made
        again. Raises Moved or OSError if the file cannot be read right now."""
        intent = each.intent
        tracked = self._tracker.files.get(intent.file)
        if tracked is None or tracked.is_deleted:
            return self._gone(each, now_ms, "the file is not on the host any more")
        recipe = self._presses.recipe(intent.recipe)
        if recipe is None or recipe != at_present(recipe):
            return self._gone(each, now_ms, "another version of the program had made its records")
        if tracked.labels and tracked.labels[0].first > intent.first:
            return self._gone(each, now_ms, "the agent has forgotten the labels of its lines")
        if not self._presses.can_press(recipe):
            return self._gone(each, now_ms, "the program cannot make its records any more")
        data = self._read(tracked, each)
        if data is None:
            return self._gone(each, now_ms, _CHANGED)
        records = self._presses.records(recipe, [tracked.reading(intent, data)])
        return self._told(each, now_ms, records)

    def _read(self, tracked: TrackedFile, each: Drawn) -> bytes | None:
        """Returns the range's bytes; None if they were changed or truncated."""
        intent = each.intent
        was_open = self._handles.held(tracked.file) is not None
        data = self._handles.get(tracked).read(intent.length, intent.first)
        if not was_open:
            self._handles.drop(tracked.file)
        is_same = len(data) == intent.length and crc_of(data) == intent.crc
        return data if is_same else None

    def _told(self, each: Drawn, now_ms: int, records: Sequence[RangeRecords]) -> Sample:
        intent = each.intent
        begin, end = window(records, intent.first, intent.end, each.rank)
        made = self._sample(each, now_ms)
        return replace(made, first=begin, end=end, parts=parts(records, begin, end))

    def _gone(self, each: Drawn, now_ms: int, reason: str) -> Sample:
        return replace(self._sample(each, now_ms), gone=reason)

    def _sample(self, each: Drawn, now_ms: int) -> Sample:
        tracked = self._tracker.files.get(each.intent.file)
        return Sample(
            time_ms=now_ms,
            agent=self._agent,
            host=self._host if tracked is None else tracked.birth.host,
            period=each.period,
            period_ms=each.period_ms,
            number=each.number,
            count=each.count,
            file=each.intent.file,
            path="" if tracked is None else tracked.birth.path,
            first=each.intent.first,
            end=each.intent.end,
            recipe=each.intent.recipe,
        )


def _is_whole(flight: Flight) -> bool:
    """Whether the records of a flight (an intent that was sent) can be made again: brokers have
    acknowledged all of them, and the intent has at most READ_BYTES, so that one read returns its
    bytes."""
    outcome = flight.outcome
    assert outcome is not None
    apart = flight.lost_bytes or flight.uncertain_bytes
    has_records = outcome.delivered_bytes or outcome.rejected_bytes
    return bool(has_records and not apart and flight.intent.length <= READ_BYTES)
