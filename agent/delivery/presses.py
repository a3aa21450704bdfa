"""Makes batches of readings. A reading is a promised byte range (intent) with its bytes. A recipe
is everything that decides which records are made from the bytes, and a press is a compiled recipe.
This module stores the recipes, and a press for each recipe in use.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from skidway.agent import events
from skidway.agent.batches.fieldless import Fieldless
from skidway.agent.batches.press import Press
from skidway.agent.batches.records import Int64s
from skidway.agent.batches.rejections import Rejections
from skidway.agent.cluster.topics import Topics
from skidway.agent.delivery.outbound import Outbound
from skidway.agent.delivery.read_back import Records, outcome_of
from skidway.agent.files.reading import Taken
from skidway.agent.parsing.framing import READ_BYTES, READ_LINES
from skidway.agent.recipe import Recipe, with_refusal
from skidway.agent.state.changes import Changes
from skidway.agent.values.intents import Intent, Reading
from skidway.agent.values.tracked import ReadingOutcome
from skidway.errors import ConfigurationRefused
from skidway.kafka.batch import seal
from skidway.kafka.codecs import Codec
from skidway.kafka.columns import decode_headers, unpack
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

PRESSES_MAX = 64

FAILURES = (MemoryError, RecursionError, ArithmeticError, ValueError, pa.ArrowException)
"""With these errors, a press shows that it cannot make records by a recipe that it could compile.
They stop one topic, because a team's settings may cause them."""

TOGETHER_BYTES = READ_BYTES
"""One call of a press gets readings of at most this many bytes together, because the press needs
much memory for each line that it rejects.
"""


class Presses:
    """Owns the recipes, and the set of those recipes that are stored in the state."""

    def __init__(
        self,
        agent: int,
        codec: Codec,
        bucket_ms: int,
        topics: Topics,
        recipes: Mapping[bytes, Recipe],
        kept: set[bytes],
        rejections: Rejections,
        fieldless: Fieldless,
    ) -> None:
        """kept: the fingerprints (hashes) of those recipes that the state already contains, because
        intents name them."""
        # This method has eight arguments: `recipes` and `kept` say what the state already contains,
        # and the method `press` needs the other six.
        self._agent = agent
        self._codec = codec
        self._bucket_ms = bucket_ms
        self._topics = topics
        self._recipes = dict(recipes)
        self._kept = set(kept)
        self._rejections = rejections
        self._fieldless = fieldless
        self._failed: set[bytes] = set()
        self._unflagged: list[Intent] = []
        self.stopped: dict[str, str] = {}
        """By data topic: why its records cannot be made. Until the agent starts again, it reads no
        more files of the topic, so that nothing of them is left out."""
        self._presses: OrderedDict[bytes, Press] = OrderedDict()

    def take_codec(self, codec: Codec) -> None:
        """From now on, compresses batches with this codec. The records stay the same."""
        if codec is not self._codec:
            self._codec = codec
            self._presses.clear()

    def recipe(self, fingerprint: bytes) -> Recipe | None:
        """Returns the recipe with this fingerprint (hash), if `learn` added it or a durable intent
        names it; otherwise None."""
        return self._recipes.get(fingerprint)

    def learn(self, recipe: Recipe) -> None:
        """Adds a recipe, for example the recipe for the bytes that are read from now on."""
        self._recipes[recipe.fingerprint] = recipe

    def promise(self, changes: Changes, taken: Sequence[Taken]) -> None:
        """Writes the intents of new readings into the transaction, and the recipes that these
        intents name. If the labels of a file's pod change at the first byte of a new reading, also
        writes the new labels.
        """
        new = [one.reading.intent for one in taken if one.is_new]
        for fingerprint in {intent.recipe for intent in new} - self._kept:
            changes.put_recipe(self._recipes[fingerprint])
            self._kept.add(fingerprint)
        changes.put_intents(new)
        changes.put_labels(one.tracked for one in taken if one.is_new and _begins_labels(one))

    def mark_refused(self, changes: Changes, intents: Iterable[Intent]) -> None:
        """Flags, in the state, the intents of which a broker refused a record (see `with_refusal`).
        After a crash, the agent asks the brokers which records of a flagged intent they have,
        before it sends any part of the intent again.
        """
        for intent in intents:
            recipe = with_refusal(self._recipes[intent.recipe])
            changes.put_recipe(recipe)
            changes.forget_intents([intent.sequence])
            changes.put_intents([replace(intent, recipe=recipe.fingerprint)])

    def can_press(self, recipe: Recipe) -> bool:
        """Returns whether this program can compile the recipe, and has not failed to make records
        by it. Also adds the recipe, as `learn` does."""
        self.learn(recipe)
        if self.has_failed(recipe):
            return False
        try:
            self._press_of(recipe.fingerprint)
        except ConfigurationRefused:
            return False
        return True

    def has_failed(self, recipe: Recipe) -> bool:
        """Whether this program has failed to make records by the recipe."""
        return recipe.fingerprint in self._failed

    def can_make(self, recipe: Recipe, reading: Reading) -> bool:
        """Returns whether this program can make the records of a reading by the recipe, which it
        can compile."""
        press, sources = self._press_of(recipe.fingerprint), self._sources(recipe)
        try:
            press.press(self._agent, [reading], sources, self._bucket_ms)
        except FAILURES as error:
            self._failed.add(recipe.fingerprint)
            events.press_failed(recipe.data.name, error)
            return False
        return True

    def flag_failed(self, changes: Changes) -> None:
        """Flags, in the state, the intents whose records could not be made. After the next start,
        the agent makes them by the settings that it has then."""
        self.mark_refused(changes, self._unflagged)
        self._unflagged = []

    def places(
        self, recipe: Recipe, readings: Sequence[Reading]
    ) -> Iterator[tuple[TopicPartition, Int64s]]:
        """Finds the partitions to which the records of these readings would go, without sending
        them. Yields, for each batch, its partition and the positions of its records in the file.
        """
        press, sources = self._press_of(recipe.fingerprint), self._sources(recipe)
        for reading in readings:
            pressed = press.press(self._agent, [reading], sources, self._bucket_ms)
            for batch in pressed.batches:
                origins = decode_headers([unpack(seal(batch.encoded))]).origins
                assert origins is not None
                yield batch.tp, origins.first

    def arrived(self, recipe: Recipe, file: int, records: Records) -> ReadingOutcome:
        """Returns the outcome (bytes and counts) of these records. They belong to one file, and
        were found in the recipe's topics."""
        return outcome_of(records, self._agent, file, self._sources(recipe), self._bucket_ms)

    def weight(self, reading: Reading) -> int:
        """Returns for how many lines of READ_LINES the lines of a reading count."""
        return self._press_of(reading.intent.recipe).framer.lines.weight(reading.data)

    def press(self, taken: Iterable[Taken], outbound: Outbound, now: float) -> None:
        """Makes batches of readings whose intents are durable, and gives the batches to
        `outbound`."""
        for group in _groups(taken, self.weight):
            press = self._press_of(group[0].reading.intent.recipe)
            recipe = press.recipe
            sources = self._sources(recipe)
            readings = [one.reading for one in group]
            try:
                pressed = press.press(self._agent, readings, sources, self._bucket_ms)
            except FAILURES as error:
                self._failed.add(recipe.fingerprint)
                self._unflagged += [each.intent for each in readings]
                self.stopped[recipe.data.name] = f"its records cannot be made: {error!r}"[:500]
                events.press_failed(recipe.data.name, error)
                continue
            events.pressed(recipe.data.name, pressed)
            taken_in = pressed.records + (0 if pressed.filtered is None else len(pressed.filtered))
            self._rejections.saw(recipe.data.name, taken_in, pressed.rejected, now)
            self._fieldless.saw(recipe.data.name, pressed.fieldless)
            outbound.add(pressed, [one.flight for one in group], sources)

    def _sources(self, recipe: Recipe) -> tuple[Source, Source]:
        topics = self._topics
        return topics.source(recipe.data.name), topics.source(recipe.rejected.name)

    def _press_of(self, fingerprint: bytes) -> Press:
        press = self._presses.get(fingerprint)
        if press is None:
            press = Press(self._recipes[fingerprint], self._codec)
            self._presses[fingerprint] = press
            if len(self._presses) > PRESSES_MAX:
                self._presses.popitem(last=False)
        self._presses.move_to_end(fingerprint)
        return press


def _begins_labels(one: Taken) -> bool:
    """Whether the newest labels of the file's pod apply from the first byte of this reading on."""
    labels = one.tracked.labels
    return bool(labels) and labels[-1].first == one.reading.intent.first


def _groups(taken: Iterable[Taken], weight: Callable[[Reading], int]) -> Iterator[list[Taken]]:
    """Groups neighbouring readings that have the same recipe and the same moment of reading. A
    group has at most TOGETHER_BYTES, and lines that weigh READ_LINES, and one call of the press
    makes the batches of the whole group. An over-long line is a group of its own.
    """
    group: list[Taken] = []
    size = lines = 0
    for one in taken:
        own_size, own_lines = len(one.reading.data), weight(one.reading)
        size, lines = size + own_size, lines + own_lines
        is_full = size > TOGETHER_BYTES or lines > READ_LINES
        if group and (is_full or not _go_together(group[-1], one)):
            yield group
            group, size, lines = [], own_size, own_lines
        group.append(one)
    if group:
        yield group


def _go_together(left: Taken, right: Taken) -> bool:
    if left.reading.is_overlong or right.reading.is_overlong:
        return False
    a, b = left.reading.intent, right.reading.intent
    return (a.recipe, a.read_ms) == (b.recipe, b.read_ms)
