"""Turns sums and progress into a numbered delta, which is a message that reports counts. If one
delta would be too large, makes several deltas.

The message numbers of a sender must have no gaps. So a sender uses a number only in the transaction
that also makes the progress durable. Each count in a delta names, as `previous`, the sender's last
earlier delta with counts of the same bucket, so the deltas of a bucket form a chain. If one call
makes several deltas, each (source topic, agent, bucket) is in only one of them. A declared loss
puts every bucket in doubt that the agent counted after its last seal, up to the loss's own delta
(see judgement.rules.losses). Later deltas are not considered. So `number_deltas` puts all losses
after all counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache

from skidway.audit.counts.counts import BucketKey, Counts
from skidway.audit.topic.count_columns import COLUMNS, Count
from skidway.audit.topic.messages import Delta, Gap, Loss, Range, Seal, Sender
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.dataclass import dataclass
from skidway.kafka.source import Source

LIMIT_BYTES = 900_000
"""The greatest size of one message in bytes. This size is less than the smallest usual
max.message.bytes (1 MiB), so that the record batch with the message also fits."""

# A long takes at most this many bytes in Avro. A string begins with its length, which is a long.
_LONG_BYTES = 10
_ESCAPED_BYTES = 6
"""A character takes at most this many bytes in JSON. Messages contain the names of source topics as
JSON.
"""
_COUNT_BYTES = 8 * len(COLUMNS)
_SEAL_BYTES = 3 * 8
_HEAD_BYTES = 400


@dataclass(frozen=True, slots=True)
class Numbered:
    """The result of `number_deltas`. deltas: the deltas in the order of their numbers; empty if
    there was nothing to report.

    touched: the buckets of which these deltas have counts, each with the number that the bucket's
    next delta needs as `previous`. last: the last number that was used.
    """

    deltas: tuple[Delta, ...]
    touched: dict[BucketKey, int]
    last: int


def number_deltas(  # arguments: the fields of a delta, and a limit
    sender: Sender,
    time_ms: int,
    last: int,
    counts: Counts,
    previous: Mapping[BucketKey, int],
    *,
    ranges: Sequence[Range] = (),
    losses: Sequence[Loss] = (),
    gaps: Sequence[Gap] = (),
    limit_bytes: int = LIMIT_BYTES,
) -> Numbered:
    """Makes deltas, numbered from `last` + 1 on. previous: for each bucket of which an earlier
    delta has counts, the number of the last such delta, from the sender's durable state."""
    parts: list[_Part] = [*ranges, *gaps, *counts.to_messages(previous), *losses]
    deltas: list[Delta] = []
    touched: dict[BucketKey, int] = {}
    for group in _groups(parts, limit_bytes):
        last += 1
        delta = _delta(sender, last, time_ms, group)
        deltas.append(delta)
        touched.update({(x.source, x.agent, x.bucket): last for x in delta.counts})
    return Numbered(tuple(deltas), touched, last)


def number_seals(
    sender: Sender,
    time_ms: int,
    last: int,
    topics: Sequence[SealedTopic],
    *,
    limit_bytes: int = LIMIT_BYTES,
) -> tuple[Seal, ...]:
    """Returns seals of these topics, numbered from `last` + 1 on. Normally there is only one seal;
    there are several if one message would be too large."""
    return tuple(
        Seal(sender, last + index, time_ms, tuple(x for x in group if isinstance(x, SealedTopic)))
        for index, group in enumerate(_groups(list(topics), limit_bytes), start=1)
    )


_Part = Range | Loss | Gap | Count | SealedTopic


def _delta(sender: Sender, number: int, time_ms: int, parts: Sequence[_Part]) -> Delta:
    return Delta(
        sender,
        number,
        time_ms,
        ranges=tuple(x for x in parts if isinstance(x, Range)),
        counts=tuple(x for x in parts if isinstance(x, Count)),
        losses=tuple(x for x in parts if isinstance(x, Loss)),
        gaps=tuple(x for x in parts if isinstance(x, Gap)),
    )


def _groups(parts: Sequence[_Part], limit_bytes: int) -> Iterator[list[_Part]]:
    group: list[_Part] = []
    size = _HEAD_BYTES
    counted: set[Source] = set()
    for part in parts:
        part_bytes = _bytes_at_most(part, counted)
        if group and size + part_bytes > limit_bytes:
            yield group
            group, size, counted = [], _HEAD_BYTES, set()
            part_bytes = _bytes_at_most(part, counted)
        group.append(part)
        size += part_bytes
        if isinstance(part, Count):
            counted.add(part.source)
    if group:
        yield group


def _bytes_at_most(part: _Part, counted: Collection[Source]) -> int:
    """Returns an upper bound for the number of bytes that the part takes in a message. counted: the
    source topics that earlier counts of the same message have named already. A message names each
    source topic of its counts only once.
    """
    if isinstance(part, Count):
        filtered = sum(4 * _LONG_BYTES + 4 * len(x.rule) for x in part.filtered)
        source = 0 if part.source in counted else _source_bytes(part.source)
        return _COUNT_BYTES + source + filtered
    if isinstance(part, SealedTopic):
        return _source_bytes(part.source) + _SEAL_BYTES * (1 + len(part.offsets))
    return sum(_field_bytes_at_most(getattr(part, field.name)) for field in fields(part))


def _field_bytes_at_most(value: object) -> int:
    if isinstance(value, Source):
        return _source_bytes(value)
    if isinstance(value, str):
        return _LONG_BYTES + 4 * len(value)
    return _LONG_BYTES + 1


@lru_cache(maxsize=64)
def _source_bytes(source: Source) -> int:
    texts = (source.cluster, source.cluster_id, source.topic, source.topic_id)
    return sum(3 + _ESCAPED_BYTES * len(text) for text in texts)
