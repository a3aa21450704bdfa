"""Tests the agent's outbox of audit messages. A transaction stores each message, and the message is
published after this transaction's commit."""

import sqlite3

from skidway.agent.accounts.mail import Mail
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import Message, StateDatabase, create_tables
from skidway.audit.topic.messages import Delta, Sender, Tier, decode

SENDER = Sender(Tier.AGENT, "main", "5", "host", 1)


def delta(number: int) -> Delta:
    return Delta(SENDER, number, 1)


def committed(mail: Mail, state: StateDatabase) -> None:
    changes = Changes()
    mail.write(changes)
    state.commit(changes)
    mail.committed()


def test_only_what_is_durable_is_published() -> None:
    """A message is published only after the commit of the transaction that stores it. After the
    publication, a later transaction removes the message from the outbox."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(connection, "m")
    state = StateDatabase(connection)
    mail = Mail([])
    mail.stage(delta(1), number=1)
    mail.stage(delta(2), number=2)
    assert mail.pending(-1, 10) == []
    committed(mail, state)
    assert [decode(value) for _, value in mail.pending(-1, 10)] == [delta(1), delta(2)]
    (first, _), (second, _) = mail.pending(-1, 10)
    assert [id_ for id_, _ in mail.pending(first, 10)] == [second]
    assert len(mail.pending(-1, 1)) == 1
    mail.published(first)
    assert len(state.outbox()) == 2
    assert [message.number for message in mail.take_published()] == [1]
    committed(mail, state)
    assert [message.number for message in state.outbox()] == [2]
    mail.published(second)
    assert not mail.is_empty
    mail.take_published()
    committed(mail, state)
    assert mail.is_empty


def test_what_was_published_while_the_disk_was_full_is_forgotten_later() -> None:
    """If messages are published while a failed transaction waits to be retried, the first
    transaction after the retry removes these messages from the outbox."""
    mail = Mail([Message(4, 1, None, b"a"), Message(5, None, 9, b"b")])
    mail.take_published()
    waiting = Changes()
    mail.write(waiting)
    mail.published(5)
    mail.committed()
    assert [message.id for message in mail.take_published()] == [4, 5]
    changes = Changes()
    mail.write(changes)
    assert changes.statements[-1][1] == [(4,), (5,)]


def test_ids_go_on_behind_those_of_the_state() -> None:
    """After a start of the agent, the ids of new messages are higher than the ids in the outbox,
    because the ids give the order of the messages."""
    mail = Mail([Message(4, 1, None, b"a"), Message(7, None, 9, b"b")])
    assert mail.announced_files() == {9}
    mail.stage(delta(2), number=2)
    mail.write(changes := Changes())
    mail.committed()
    assert [id_ for id_, _ in mail.pending(-1, 10)] == [4, 7, 8]
    assert changes
