"""A delta is a message with the counts of records in some buckets. For each bucket it contains the
number of the bucket's previous delta. So all deltas of a bucket form one chain, whether one
transaction or several transactions stored the deltas."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

from skidway.agent.accounts.deltas import Deltas
from skidway.agent.accounts.mail import Mail
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase, create_tables, open_state
from skidway.audit.counts.counts import BucketKey, Counts, Sums
from skidway.audit.topic.messages import Certainty, Delta, Heartbeat, Loss, Sender, Tier, decode
from skidway.audit.topic.seal_columns import SealedTopic
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
    """If one transaction stores two deltas of a bucket, the second delta contains the number of the
    first, although the first is not in the database yet."""
    mail, changes = Mail([]), Changes()
    sender = Sender(Tier.AGENT, "dc1", "7", "host", 1)
    deltas = Deltas(sender, 10, 60_000, mail, nothing_stored)
    for _ in range(2):
        deltas.passed([one_more()], changes)
        deltas.cut(1_000, changes)
    chain = [(delta.number, delta.counts[0].previous) for delta in deltas_of(mail)]
    assert chain == [(11, 0), (12, 11)]


def test_behind_the_transaction_the_database_is_asked() -> None:
    """After the transaction with a delta is committed, the agent reads the delta's number from the
    database when it makes the bucket's next delta. So it does not have to keep the numbers of all
    buckets in memory."""
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
    """The transaction that stores a checkpoint also stores, for each bucket, the sums of the
    records that the agent has counted but not yet put into a delta. So a kill before the next delta
    loses no count."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(connection, "machine")
    state, mail = StateDatabase(connection), Mail([])
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


SENDER = Sender(Tier.AGENT, "dc1", "7", "host", 1)
LOSS = Loss(SOURCE, 7, 3, 0, 10, Certainty.LOST, "it vanished", 60_000, 60_000)


def _opened(state: StateDatabase, mail: Mail) -> Deltas:
    sums, losses = state.sums(), state.losses(undeclared=True)
    return Deltas(SENDER, state.number, 60_000, mail, state.touched, sums, losses)


def _one(state: StateDatabase) -> Counts:
    counts = Counts(60_000)
    counts.put((SOURCE, state.agent, 60_000), Sums(1, 100, 5))
    return counts


def test_what_is_in_no_delta_yet_is_counted_after_a_crash_as_before(tmp_path: Path) -> None:
    """If the agent crashes before it has put sums and losses into a delta, the first delta after
    the crash contains each of them once."""
    for counted in (0, 2):
        state, changes = open_state(tmp_path), Changes()
        deltas = _opened(state, Mail([]))
        assert deltas.is_empty == (counted == 0)
        deltas.passed([_one(state), _one(state)], changes)
        if counted:
            deltas.lost(LOSS, 5, changes)
        state.commit(changes)
        state.close()
    state, mail = open_state(tmp_path), Mail([])
    _opened(state, mail).cut(1_000, Changes())
    (found,) = deltas_of(mail)
    assert (found.number, found.counts[0].count) == (1, 4)
    assert [each.reason for each in found.losses] == ["it vanished"]
    state.close()


def test_what_is_in_a_delta_is_in_no_other(tmp_path: Path) -> None:
    """The agent stores the sums and losses that are in no delta yet. The transaction that stores a
    delta also removes the delta's sums and losses from these stored values, and stores the delta's
    message number. The numbers of the next messages continue from this number."""
    state, mail, changes = open_state(tmp_path), Mail([]), Changes()
    deltas = _opened(state, mail)
    deltas.passed([_one(state)], changes)
    deltas.lost(LOSS, 5, changes)
    deltas.cut(1_000, changes)
    deltas.seal([SealedTopic(SOURCE, 900, 1)], 1_000, changes)
    deltas.prove_life(1_100)
    mail.write(changes)
    state.commit(changes)
    assert deltas.is_empty
    state.close()
    state, mail = open_state(tmp_path), Mail([])
    assert (state.number, state.sums(), state.losses(undeclared=True)) == (2, [], [])
    assert [message.number for message in state.outbox()] == [1, 2, None]
    assert decode(state.outbox()[2].value) == Heartbeat(SENDER, 2, 1_100)
    deltas = _opened(state, mail)
    for number, previous in ((3, 1), (4, 3)):
        assert deltas.is_empty
        deltas.passed([_one(state)], changes)
        deltas.cut(2_000, changes)
        newest = deltas_of(mail)[-1]
        (count,) = newest.counts
        assert (newest.number, newest.losses) == (number, ())
        assert (count.count, count.previous) == (1, previous)
    state.close()
