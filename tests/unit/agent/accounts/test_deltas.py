"""The chain of `previous` numbers is one per bucket, however deltas fall into transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from agent.accounts.deltas import Deltas
from agent.accounts.mail import Mail
from agent.state.changes import Changes
from agent.state.database import State, create_tables
from audit.counts import BucketKey, Counts, Sums
from audit.messages import Delta, Sender, Tier, decode
from skidway.kafka.source import Source
from support.promises import promise

SOURCE = Source("dc1", "cluster", "logs", "00" * 16)
KEY: BucketKey = (SOURCE, 7, 60_000)


def nothing_stored(_keys: Iterable[BucketKey]) -> Mapping[BucketKey, int]:
    return {}


def one_more() -> Counts:
    counts = Counts(60_000)
    counts.put(KEY, Sums(1, 100, 5))
    return counts


def deltas_of(mail: Mail) -> list[Delta]:
    changes = Changes()
    mail.write(changes)
    mail.committed()
    found = [decode(value) for _, value in mail.pending(0, 100)]
    return [each for each in found if isinstance(each, Delta)]


def test_two_deltas_of_one_transaction_follow_each_other() -> None:
    """A second delta of the same turn names the first one, which no database knows yet."""
    mail, changes = Mail([]), Changes()
    sender = Sender(Tier.AGENT, "dc1", "7", "host", 1)
    deltas = Deltas(sender, 10, 60_000, mail, nothing_stored)
    for _ in range(2):
        deltas.passed([one_more()], changes)
        deltas.cut(1_000, changes)
    chain = [(delta.number, delta.counts[0].previous) for delta in deltas_of(mail)]
    assert chain == [(11, 0), (12, 11)]


def test_behind_the_transaction_the_database_is_asked() -> None:
    """What is durable is read back and not remembered for ever."""
    mail, changes = Mail([]), Changes()
    sender = Sender(Tier.AGENT, "dc1", "7", "host", 1)
    deltas = Deltas(sender, 10, 60_000, mail, lambda keys: dict.fromkeys(keys, 9))
    deltas.passed([one_more()], changes)
    deltas.cut(1_000, changes)
    deltas.committed()
    deltas.passed([one_more()], changes)
    deltas.cut(1_000, changes)
    assert [delta.counts[0].previous for delta in deltas_of(mail)] == [9, 9]


@promise("2 checkpoint")
def test_what_was_counted_is_durable_with_each_checkpoint() -> None:
    """Killed before a delta is cut: of each bucket the whole sum is there, of all checkpoints."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(connection, "machine")
    state, mail = State(connection), Mail([])
    sender = Sender(Tier.AGENT, "dc1", "7", "host", 1)
    deltas = Deltas(sender, 10, 60_000, mail, nothing_stored)
    for _ in range(3):
        changes = Changes()
        deltas.passed([one_more(), one_more()], changes)
        state.commit(changes)
    assert [sums for _, sums in state.sums()] == [Sums(6, 600, 30)]
    changes = Changes()
    deltas.cut(1_000, changes)
    state.commit(changes)
    assert state.sums() == []
