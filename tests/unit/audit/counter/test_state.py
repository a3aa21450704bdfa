"""Tests the counter's durable state: each commit is stored as a whole or not at all, even if the
program ends in the middle of it."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from typing import Any

from skidway.audit.counter.state import BatchId, CounterState, Position, Progress
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Range, Sender, Tier, encode
from support.audit_senders import LOGS
from support.promises import promise

SENDER = Sender(Tier.BROKER, "dc1", "broker-dc1", "c1", 1)


class Ended(BaseException):
    """Raised to end the simulated program."""


class Ending:
    """A database connection that lets the program execute `at` SQL statements, and ends the program
    at the next statement."""

    def __init__(self, connection: sqlite3.Connection, at: int) -> None:
        self._connection, self._left = connection, at
        self.in_transaction = False  # an ended program rolls nothing back

    def execute(self, *given: Any) -> sqlite3.Cursor:
        self._count()
        return self._connection.execute(*given)

    def executemany(self, *given: Any) -> sqlite3.Cursor:
        self._count()
        return self._connection.executemany(*given)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Ended


def _delta(number: int) -> Delta:
    count = Count(LOGS, 7, 0, 60_000, 5, 50, 9, previous=number - 1)
    ranges = (Range(LOGS, 0, 5 * number - 5, 5 * number),)
    return Delta(SENDER, number, number, ranges, (count,))


def _commit(state: CounterState, number: int) -> None:
    position = Position(5 * number, BatchId(5 * number - 5, number, 0))
    state.commit(
        Progress({(LOGS, 0): position}, {(LOGS, 0): {(7, 1): 50 * number}}),
        [_delta(number)],
        {(LOGS, 7, 0): number},
    )


def _known(state: CounterState) -> tuple[object, ...]:
    return (
        state.number, state.position((LOGS, 0)), state.marks((LOGS, 0)),
        state.touched([(LOGS, 7, 0)]), state.pending(-1, 10),
    )  # fmt: skip


@promise("6 numbers")
def test_a_commit_is_there_whole_or_not_at_all_wherever_the_program_ends(tmp_path: Path) -> None:
    """Whichever statement is the last one before the program ends, a commit is stored as a whole or
    not at all. If only the new positions were stored, records would be lost. If only the delta (the
    message with the counts) were stored, records would be counted twice."""
    for at in itertools.count():
        path = tmp_path / f"{at}.db"
        state = CounterState(path)
        _commit(state, 1)
        before, connection = _known(state), state._connection
        state._connection = Ending(connection, at)  # type: ignore[assignment]
        try:
            _commit(state, 2)
            has_ended = False
        except Ended:
            has_ended = True
        connection.close()
        state = CounterState(path)
        after = _known(state)
        state.close()
        if not has_ended:
            break
        assert after == before, f"ended before statement {at + 1}"
    assert at > 4
    assert after == (
        2, Position(10, BatchId(5, 2, 0)), {(7, 1): 100}, {(LOGS, 7, 0): 2},
        [(number, encode(_delta(number))) for number in (1, 2)],
    )  # fmt: skip
