"""The result of one `send`: the partition and offset of each message, or an error."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import accumulate
from typing import Any, NamedTuple, overload

from skidway.kafka.types import TopicPartition


class RecordMetadata(NamedTuple):
    """Where a message is in the log. `offset` is -1 if the broker does not return the offset (with
    acks 0, or for a repeat of a batch that the broker already had). `timestamp` is in ms.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int


class _Piece(NamedTuple):
    """Consecutive messages of one call of `send` that are in one batch. `first` is the index of the
    first of these messages among all messages of the call.
    """

    first: int
    tp: TopicPartition
    base_offset: int
    timestamps: Sequence[int]

    def metadata(self, index: int) -> RecordMetadata:
        """Returns the metadata of a message. `index` is 0 for the first message of the piece."""
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        return RecordMetadata(self.tp.topic, self.tp.partition, offset, self.timestamps[index])


class SetMetadata(Sequence[RecordMetadata]):
    """The RecordMetadata of each message of a set (the messages of one call of `send`), in order.
    Each RecordMetadata is made only when the caller reads it, because few callers read it.
    """

    __slots__ = ("_ends", "_pieces")

    def __init__(self, pieces: list[_Piece]) -> None:
        self._pieces = sorted(pieces, key=lambda piece: piece.first)
        self._ends = list(accumulate(len(piece.timestamps) for piece in self._pieces))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> RecordMetadata: ...

    @overload
    def __getitem__(self, index: slice) -> list[RecordMetadata]: ...

    def __getitem__(self, index: int | slice) -> RecordMetadata | list[RecordMetadata]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        at = range(len(self))[index]  # raises IndexError; negative indexes count from the end
        piece = self._pieces[bisect_right(self._ends, at)]
        return piece.metadata(at - piece.first)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


class Sending:
    """The messages of one call of `send`, perhaps in several batches. `future` is done when the
    last of these batches is delivered or refused.

    The future's result is RecordMetadata for a single message, and SetMetadata for a set. If a
    message was refused, the future raises the first error as soon as every message is delivered or
    refused. Several threads may report the outcomes of messages; the thread that reports the last
    outcome completes the future.
    """

    __slots__ = ("_error", "_found", "_left", "_lock", "_single", "future", "number")

    def __init__(self, number: int, count: int, *, single: bool) -> None:
        """`number` is the number of this call of `send`, counted over all calls of one producer.
        `count` is the number of messages."""
        self.number = number
        self.future: Future[Any] = Future()
        self._found: list[_Piece] = []
        self._left = count
        self._lock = threading.Lock()
        self._single = single
        self._error: Exception | None = None
        if count == 0:
            self._end()

    def delivered(
        self, first: int, tp: TopicPartition, base_offset: int, timestamps: list[int]
    ) -> bool:
        """Notes that the messages from index `first` on have the offsets from `base_offset` on.
        `timestamps` has one value for each of these messages. Returns whether every message of this
        call of `send` is now delivered or failed."""
        self._found.append(_Piece(first, tp, base_offset, timestamps))
        return self._less(len(timestamps))

    def failed(self, count: int, error: Exception) -> bool:
        """Notes that `count` messages will not be delivered. Returns whether every message of this
        call of `send` is now delivered or failed."""
        return self._less(count, error)

    def abandon(self, error: Exception) -> None:
        """Completes the future with an error if messages have no outcome yet. The producer calls
        this method when it ends, because nobody will report these outcomes."""
        self._less(None, error)

    def _less(self, count: int | None, error: Exception | None = None) -> bool:
        with self._lock:
            gone = self._left if count is None else min(count, self._left)
            self._left -= gone
            self._error = self._error or error
            is_last = gone > 0 and self._left == 0
        if is_last:
            self._end()
        return is_last

    def _end(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return  # the application has cancelled the future
        if self._error is not None:
            self.future.set_exception(self._error)
        else:
            self.future.set_result(
                self._found[0].metadata(0) if self._single else SetMetadata(self._found)
            )
