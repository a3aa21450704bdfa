"""The outbox of audit messages: a transaction stores each message, the publisher publishes the
message, and a later transaction removes it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from skidway.agent.state.changes import Changes
from skidway.agent.state.database import Message
from skidway.audit.topic.messages import Announcement, Delta, Heartbeat, Seal, encode
from skidway.audit.topic.notes import Note


class Mail:
    """Implements `skidway.audit.topic.publisher.Outbox`: a message is pending (ready to be
    published) only once the transaction that stores it is durable."""

    def __init__(self, waiting: Iterable[Message], last_id: int = 0) -> None:
        self._durable = deque(waiting)
        self._last_id = max([last_id, *(message.id for message in self._durable)])
        self._staged: list[Message] = []
        self._forgetting: list[Message] = []
        self._published: list[Message] = []

    @property
    def is_empty(self) -> bool:
        """Whether all messages were published, and the state no longer has them."""
        return not (self._durable or self._staged or self._published or self._forgetting)

    def stage(
        self,
        message: Announcement | Delta | Seal | Heartbeat | Note,
        *,
        number: int | None = None,
    ) -> int:
        """Adds a message to the outbox. The message becomes durable with the next transaction.
        Returns the message's id."""
        self._last_id += 1
        file = message.file if isinstance(message, Announcement) else None
        self._staged.append(Message(self._last_id, number, file, encode(message)))
        return self._last_id

    def has(self, id_: int) -> bool:
        """Whether the message with this id waits to be published."""
        waiting = self._durable[0] if self._durable else next(iter(self._staged), None)
        return waiting is not None and waiting.id <= id_

    def write(self, changes: Changes) -> None:
        """Adds to `changes` (this turn's transaction) the rows of the new messages, and the removal
        of the rows of published messages.
        """
        for message in self._staged:
            changes.put_message(message.id, message.value, number=message.number, file=message.file)
        changes.forget_messages(message.id for message in self._forgetting)

    def committed(self) -> None:
        """Notes that the transaction of this turn of the agent's loop is durable."""
        self._durable.extend(self._staged)
        self._staged = []
        self._forgetting = []

    def take_published(self) -> list[Message]:
        """Returns the published messages, which the next transaction removes."""
        self._forgetting += self._published
        self._published = []
        return self._forgetting

    def announced_files(self) -> set[int]:
        """Returns the ids of the files whose announcement waits to be published."""
        return {message.file for message in self._durable if message.file is not None}

    # --- audit.topic.publisher.Outbox ---------------------------------------------------------

    def pending(self, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """Returns the first `limit` durable messages with an id above `after`, as (id, message)."""
        found: list[tuple[int, bytes]] = []
        for message in self._durable:
            if len(found) >= limit:
                break
            if message.id > after:
                found.append((message.id, message.value))
        return found

    def published(self, up_to: int) -> None:
        """Notes that all in-sync replicas of the audit topic have the messages up to this id."""
        while self._durable and self._durable[0].id <= up_to:
            self._published.append(self._durable.popleft())
