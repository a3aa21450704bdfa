"""Defines positions: for each topic and partition, the offset of the next record to read. Converts
positions to JSON and back.

    {"dc1.nginx": {"id": "8f14e45fceea467fa2b1c0d5e6f70812", "0": 1200, "1": 1187,
                   "from": {"0": 1000, "1": 1187}}}

`id` is the id of the topic (32 hexadecimal digits). `id` is left out if the topic's id is unknown.
A topic that was deleted and created again has another id, and its offsets mean other records.

If a stream's batch ends at these positions, `from` has the offsets at which the batch begins.
Partitions that `from` leaves out begin at 0. After a crash, Spark repeats a batch with the same
start and end positions. But if this batch is the first batch of the stream, Spark asks for new
start positions, and these may be higher than before the crash. Therefore the end positions of each
batch store, in `from`, where the batch really begins.

In options, -2 stands for the first offset of a partition, and -1 for the offset after its last
record, as in Spark's own Kafka source. Positions of a stream never have negative offsets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skidway.errors import UsageError
from skidway.loader.planning.plan import Bounds
from skidway.loader.planning.topic import SourceTopic

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
FIRST: Final = -2
"""The value that stands for the first offset of a partition."""
END: Final = -1
"""The value that stands for the offset after the last record of a partition."""

_ID: Final = "id"
_FROM: Final = "from"


@dataclass(frozen=True, slots=True)
class TopicPositions:
    """The position in each partition of one topic. topic_id: the id of the topic, or an empty text
    if it is unknown. begins: the offsets at which a batch begins, if these are the end positions of
    the batch; None for all other positions."""

    topic_id: str
    offsets: Mapping[int, int]
    begins: Mapping[int, int] | None = None

    def is_of(self, topic_id: str) -> bool:
        """Returns whether these are positions in the topic with this id. If one of the two ids is
        unknown, returns True."""
        return not self.topic_id or not topic_id or self.topic_id == topic_id


Positions = Mapping[str, TopicPositions]
Given = str | Positions
"""The value of `startingOffsets` or `endingOffsets`: EARLIEST, LATEST, or positions."""


def to_json(positions: Positions) -> dict[str, dict[str, Any]]:
    """Returns the positions as a JSON document. Equal positions always become the same text,
    because Spark compares the texts."""
    return {name: _document(topic) for name, topic in sorted(positions.items())}


def from_json(document: Any) -> dict[str, TopicPositions]:
    """Returns the positions in a document that has the form that `to_json` returns. Raises
    UsageError if the document has another form."""
    if not isinstance(document, dict):
        raise UsageError("it is no object of topics")
    return {name: _topic(name, each) for name, each in document.items()}


def given(option: str, text: str) -> Given | None:
    """Parses the text of the option `option`. Returns None if the text is empty. Raises UsageError
    if the text is invalid."""
    if not text:
        return None
    if text.lower() in (EARLIEST, LATEST):
        return text.lower()
    try:
        return from_json(json.loads(text))
    except (UsageError, ValueError) as error:
        raise UsageError(
            f"option {option} is {EARLIEST}, {LATEST}, or JSON such as "
            f'{{"logs": {{"0": 1200, "1": -2}}}}: {error}'
        ) from error


def resolved(option: str, value: Given, topics: Iterable[SourceTopic]) -> dict[str, TopicPositions]:
    """Returns the positions that an option means, with an offset for every partition of the topics.
    If the option is JSON and does not list exactly these topics and their partitions, raises
    UsageError."""
    topics = list(topics)
    if isinstance(value, str):
        number = FIRST if value == EARLIEST else END
        everywhere = {each.name: dict.fromkeys(_partitions(each), number) for each in topics}
        return {
            each.name: TopicPositions(each.topic_id, _resolved(everywhere[each.name], each.bounds))
            for each in topics
        }
    if value.keys() != {each.name for each in topics}:
        named, read = ", ".join(sorted(value)), ", ".join(sorted(each.name for each in topics))
        raise UsageError(f"option {option} must name the topics that are read: {read}, not {named}")
    for each in topics:
        _check_partitions(option, each, value[each.name])
    return {
        each.name: TopicPositions(
            value[each.name].topic_id or each.topic_id,
            _resolved(value[each.name].offsets, each.bounds),
        )
        for each in topics
    }


def _check_partitions(option: str, topic: SourceTopic, positions: TopicPositions) -> None:
    if set(positions.offsets) != set(_partitions(topic)):
        last = len(topic.bounds) - 1
        raise UsageError(
            f"option {option} must have an offset for each partition (0 to {last}) of "
            f"{topic.name}; -2 stands for the first offset, -1 for the end"
        )


def _partitions(topic: SourceTopic) -> list[int]:
    return [each.partition for each in topic.bounds]


def _resolved(offsets: Mapping[int, int], bounds: Iterable[Bounds]) -> dict[int, int]:
    found = {}
    for each in bounds:
        offset = offsets[each.partition]
        special = {FIRST: each.log_start, END: each.high_watermark}
        found[each.partition] = special.get(offset, offset)
    return found


def _document(topic: TopicPositions) -> dict[str, Any]:
    document: dict[str, Any] = {_ID: topic.topic_id} if topic.topic_id else {}
    document |= _texts(topic.offsets)
    if topic.begins is not None:
        document[_FROM] = _texts(topic.begins)
    return document


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(number): offsets[number] for number in sorted(offsets)}


def _topic(name: str, document: Any) -> TopicPositions:
    if not isinstance(document, dict):
        raise UsageError(f"{name} is no object of partitions")
    topic_id = document.get(_ID, "")
    if not isinstance(topic_id, str):
        raise UsageError(f"the id of {name} is no text")
    begins = _offsets(name, document[_FROM]) if _FROM in document else None
    offsets = {key: each for key, each in document.items() if key not in (_ID, _FROM)}
    return TopicPositions(topic_id, _offsets(name, offsets), begins)


def _offsets(name: str, document: Any) -> dict[int, int]:
    if not isinstance(document, dict):
        raise UsageError(f"{name} is no object of partitions")
    for key, offset in document.items():
        if not (key.isascii() and key.isdigit()):
            raise UsageError(f"{name} has no partition {key!r}")
        if type(offset) is not int or offset < FIRST:
            raise UsageError(f"{offset!r} is no offset")
    return {int(key): offset for key, offset in document.items()}
